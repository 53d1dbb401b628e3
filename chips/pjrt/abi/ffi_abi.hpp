#pragma once
/// The part that weft uses of XLA's C interface for functions that running programs call (abi.hpp).

#include "chips/pjrt/abi/abi.hpp"

namespace weft::pjrt {

/// The value of Extension::type for FfiExtension.
inline constexpr int kFfiExtension = 5;
struct FfiExtension {
  Extension head;
  void* (*register_type)(void* arguments);
  void* (*add_user_data)(void* arguments);
  void* (*register_handler)(void* arguments);
};
/// The functions with which a plug-in handles data of a type. Later versions of XLA added the
/// functions in `more`.
struct FfiTypeInfo {
  void (*destroy)(void* data);
  const void* more[7];
};
struct RegisterTypeArgs {
  Head head;
  const char* name;
  std::size_t name_size;
  std::int64_t type_id;  ///< 0: the plug-in chooses an id
  const FfiTypeInfo* info;
};
struct AddUserDataArgs {
  Head head;
  void* context;
  std::int64_t type_id;
  void* data;
  void (*destroy)(void* data);
};
/// Unlike other blocks, this one has no extension.
struct RegisterHandlerArgs {
  struct {
    std::size_t struct_size;
  } head;
  const char* target;
  std::size_t target_size;
  void* handler;
  const char* platform;
  std::size_t platform_size;
  int traits;
};

struct ContextArgs {
  Head head;
  void* context;
};
inline constexpr Function<ContextArgs> kContextCreate{98, "PJRT_ExecuteContext_Create"};
inline constexpr Function<ContextArgs> kContextDestroy{99, "PJRT_ExecuteContext_Destroy"};

struct FfiBuffer {
  Head head;
  int type;  ///< the value of an ElementType; 16 for bf16
  void* data;
  std::int64_t rank;
  const std::int64_t* dims;
};
struct FfiBuffers {
  Head head;
  std::int64_t size;
  const int* kinds;
  FfiBuffer* const* buffers;
};
struct FfiText {
  const char* begin;
  std::size_t size;
};
struct FfiScalar {
  int type;
  const void* value;
};
struct FfiAttributes {
  enum Kind : int { array = 1, dictionary, scalar, text };
  Head head;
  std::int64_t size;
  const int* kinds;
  const FfiText* const* names;
  const void* const* values;  ///< FfiScalar or FfiText, depending on the kind
};

struct FfiErrorArgs {
  Head head;
  const char* message;
  int code;
};
struct FfiContextArgs {
  Head head;
  void* context;
  const std::int64_t* type_id;
  void* data;
};
/// The functions that a handler may call.
struct FfiApi {
  Head head;
  Head version_head;
  int major;
  int minor;
  const void* internal;
  void* (*create_error)(FfiErrorArgs* arguments);
  const void* between[5];
  void* (*get_user_data)(FfiContextArgs* arguments);
};

/// The argument of a handler.
struct FfiFrame {
  static constexpr int kExecute = 3;
  Head head;
  const FfiApi* api;
  void* context;
  int stage;
  FfiBuffers operands;
  FfiBuffers results;
  FfiAttributes attributes;
};
/// The version of the interface that a handler uses. A plug-in asks for it by a call whose frame
/// has this extension, and the handler fills it in.
struct FfiMetadata {
  std::size_t struct_size;
  Head version_head;
  int major;
  int minor;
};
struct FfiMetadataExtension {
  static constexpr int kType = 1;
  Extension head;
  FfiMetadata* metadata;
};

}  // namespace weft::pjrt
