#pragma once
/// The binary interface of DLPack 1.x, as dmlc/dlpack specifies it. The structs are in a namespace
/// of their own, so that a program may also include <dlpack/dlpack.h>.

#include <cstdint>

namespace weft::dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::uint32_t kMinorVersion = 0;

enum class DeviceType : std::int32_t { cpu = 1 };
/// The kinds of elements. A `boolean` has 8 bits.
enum class TypeCode : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  bfloat = 4,
  boolean = 6
};
/// A bit of ManagedTensorVersioned::flags.
inline constexpr std::uint64_t kReadOnly = 1;

struct Device {
  DeviceType type{};
  std::int32_t id = 0;
};

struct DataType {
  std::uint8_t code = 0;  ///< a TypeCode, or an unknown code
  std::uint8_t bits = 0;
  std::uint16_t lanes = 1;

  friend bool operator==(const DataType&, const DataType&) = default;
};

struct Tensor {
  void* data = nullptr;
  Device device{};
  std::int32_t ndim = 0;
  DataType dtype{};
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  ///< in elements; null if row-major
  std::uint64_t byte_offset = 0;    ///< offset of the first element from `data`
};

struct Version {
  std::uint32_t major = kMajorVersion;
  std::uint32_t minor = kMinorVersion;
};

/// In other major versions, only the first three members are guaranteed to be the same.
struct ManagedTensorVersioned {
  Version version{};
  void* manager_ctx = nullptr;
  void (*deleter)(ManagedTensorVersioned* self) = nullptr;
  std::uint64_t flags = 0;
  Tensor tensor{};
};

/// The struct that DLPack used before version 1.
struct ManagedTensor {
  Tensor tensor{};
  void* manager_ctx = nullptr;
  void (*deleter)(ManagedTensor* self) = nullptr;
};

static_assert(sizeof(void*) != 8 || (sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 &&
                                     sizeof(ManagedTensorVersioned) == 80));

}  // namespace weft::dlpack
