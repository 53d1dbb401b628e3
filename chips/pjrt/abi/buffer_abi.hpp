#pragma once
/// Buffers in the PJRT C ABI (abi.hpp).

#include "chips/pjrt/abi/abi.hpp"

namespace weft::pjrt {

/// Types of elements.
enum class ElementType : int {
  pred = 1,
  s8,
  s16,
  s32,
  s64,
  u8,
  u16,
  u32,
  u64,
  f16,
  f32,
  f64,
  bf16,
};

/// The time for which the plug-in may read the host's memory, and its right to write there.
enum class HostMemory : int {
  only_during_call,
  until_transfer,  ///< until the event that the plug-in returns is ready
  read_in_place,   ///< as long as the buffer lives; only on CPUs
  used_in_place,   ///< as read_in_place, but a run that takes the buffer may write its result there
};

struct FromHostArgs {
  Head head;
  void* client;
  const void* data;
  ElementType type;
  const std::int64_t* dims;
  std::size_t rank;
  const std::int64_t* strides;
  std::size_t stride_count;
  HostMemory semantics;
  void* device;
  void* memory;
  void* layout;
  void* done_event;
  void* buffer;
};
/// The order of elements in the host's memory, without tiles.
struct HostLayout {
  Head head;
  Head tiled_head;
  const std::int64_t* minor_to_major;  ///< dims from the fastest-varying to the slowest
  std::size_t rank;
  const std::int64_t* tile_dims;
  const std::size_t* tile_sizes;
  std::size_t tile_count;
  int type;  ///< 0: the layout is given by dims and tiles, as here
};
struct ToHostArgs {
  Head head;
  void* buffer;
  const HostLayout* layout;  ///< null: the order that the buffer has on its device
  void* to;
  std::size_t size;
  void* event;
};
struct BufferArgs {
  Head head;
  void* buffer;
};
struct AddressArgs {
  Head head;
  void* buffer;
  std::uintptr_t address;
};
inline constexpr Function<FromHostArgs> kFromHost{22, "PJRT_Client_BufferFromHostBuffer"};
inline constexpr Function<BufferArgs> kBufferDestroy{58, "PJRT_Buffer_Destroy"};
inline constexpr Function<ToHostArgs> kToHost{70, "PJRT_Buffer_ToHostBuffer"};
inline constexpr Function<AddressArgs> kUnsafePointer{73, "PJRT_Buffer_UnsafePointer"};

}  // namespace weft::pjrt
