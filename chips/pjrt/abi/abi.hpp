#pragma once
/// The PJRT C ABI: the numbers of its functions and the layouts of their argument blocks. The
/// headers of this folder declare the part that weft uses, so building weft needs no file of
/// OpenXLA.
///
/// A plug-in has a table of functions: a head of 40 bytes, then a pointer for each function. Each
/// function takes one block of arguments, which begins with its size. Later versions of the ABI
/// only append functions and arguments. A plug-in refuses a block that is smaller than the block of
/// its own version, and ignores additional bytes at the end. Therefore weft's blocks have 512
/// bytes, zero unless set, which suit plug-ins that are older or newer than weft.
///
/// Weft chose the names of blocks and fields. Handles (void*) are the plug-in's objects. The test
/// unit_pjrt compares these headers with the header in a plug-in's package, if CMake finds one.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weft::pjrt {

inline constexpr std::size_t kBlockBytes = 512;

/// The beginning of every block.
struct Head {
  std::size_t struct_size;
  void* extension;
};

/// The beginning of the table of functions.
struct Api {
  Head head;  ///< `head.struct_size` is the size of the whole table
  Head version_head;
  int major;
  int minor;
};
static_assert(sizeof(Api) == 40);

/// The arguments of a call, zeroed and padded.
template <typename Fields>
class Block {
 public:
  Block() { fields_.head.struct_size = kBlockBytes; }
  Fields* operator->() { return &fields_; }
  Fields* get() { return &fields_; }

 private:
  static_assert(sizeof(Fields) < kBlockBytes);
  Fields fields_{};
  [[maybe_unused]] std::byte padding_[kBlockBytes - sizeof(Fields)]{};
};

/// A function of the table, with the type of its arguments. It returns an error, or null.
template <typename Fields>
struct Function {
  std::size_t slot;
  std::string_view name;

  constexpr std::size_t offset() const { return sizeof(Api) + slot * sizeof(void*); }
};

/// An extension of the table. The extensions form a linked list.
struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};

/// An option or an attribute. Arrays of NamedValue have its size as stride, so it isn't padded to
/// 512 bytes.
struct NamedValue {
  enum Kind : int { text, integer, integers, real, flag };
  Head head;
  const char* name;
  std::size_t name_size;
  Kind kind;
  union {
    const char* text_value;
    std::int64_t integer_value;
    const std::int64_t* integers_value;
    float real_value;
    bool flag_value;
  };
  std::size_t size;  ///< the number of characters or of integers; 1 for other kinds
};
static_assert(sizeof(NamedValue) == 56);

struct ErrorArgs {
  Head head;
  void* error;
};
struct ErrorMessageArgs {
  Head head;
  void* error;
  const char* message;
  std::size_t size;
};
struct ErrorCodeArgs {
  Head head;
  void* error;
  int code;
};
inline constexpr Function<ErrorArgs> kErrorDestroy{0, "PJRT_Error_Destroy"};
inline constexpr Function<ErrorMessageArgs> kErrorMessage{1, "PJRT_Error_Message"};
inline constexpr Function<ErrorCodeArgs> kErrorGetCode{2, "PJRT_Error_GetCode"};

struct InitializeArgs {
  Head head;
};
struct AttributesArgs {
  Head head;
  const NamedValue* attributes;
  std::size_t count;
};
inline constexpr Function<InitializeArgs> kPluginInitialize{3, "PJRT_Plugin_Initialize"};
inline constexpr Function<AttributesArgs> kPluginAttributes{4, "PJRT_Plugin_Attributes"};

struct EventArgs {
  Head head;
  void* event;
};
struct EventReadyArgs {
  Head head;
  void* event;
  bool is_ready;
};
inline constexpr Function<EventArgs> kEventDestroy{5, "PJRT_Event_Destroy"};
inline constexpr Function<EventReadyArgs> kEventIsReady{6, "PJRT_Event_IsReady"};
inline constexpr Function<EventArgs> kEventError{7, "PJRT_Event_Error"};
inline constexpr Function<EventArgs> kEventAwait{8, "PJRT_Event_Await"};

}  // namespace weft::pjrt
