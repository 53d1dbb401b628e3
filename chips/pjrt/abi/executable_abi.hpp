#pragma once
/// Programs, executables and their runs in the PJRT C ABI (abi.hpp).

#include "chips/pjrt/abi/abi.hpp"

namespace weft::pjrt {

struct Code {
  Head head;
  const char* code;
  std::size_t size;
  const char* format;
  std::size_t format_size;
};
struct CompileArgs {
  Head head;
  void* client;
  const Code* program;
  const char* options;
  std::size_t options_size;
  void* loaded;
};
inline constexpr Function<CompileArgs> kCompile{20, "PJRT_Client_Compile"};

/// `executable` is either an executable or a loaded executable, depending on the function.
struct ExecutableArgs {
  Head head;
  void* executable;
};
struct GetExecutableArgs {
  Head head;
  void* loaded;
  void* executable;
};
struct CountArgs {
  Head head;
  void* executable;
  std::size_t count;
};
/// The bytes that a program needs on a device. Later fields, which weft doesn't read, are left out.
struct CompiledMemoryArgs {
  Head head;
  void* executable;
  std::int64_t code_bytes;
  std::int64_t argument_bytes;
  std::int64_t output_bytes;
  std::int64_t alias_bytes;
  std::int64_t temporary_bytes;
};
struct SerializeArgs {
  Head head;
  void* executable;
  const char* bytes;
  std::size_t size;
  void* owner;
  void (*free)(void* owner);
};
struct DeserializeArgs {
  Head head;
  void* client;
  const char* bytes;
  std::size_t size;
  void* loaded;
  const char* options;
  std::size_t options_size;
};
inline constexpr Function<ExecutableArgs> kExecutableDestroy{40, "PJRT_Executable_Destroy"};
inline constexpr Function<CountArgs> kNumOutputs{44, "PJRT_Executable_NumOutputs"};
inline constexpr Function<SerializeArgs> kSerialize{49, "PJRT_Executable_Serialize"};
inline constexpr Function<ExecutableArgs> kLoadedDestroy{50, "PJRT_LoadedExecutable_Destroy"};
inline constexpr Function<GetExecutableArgs> kGetExecutable{51,
                                                            "PJRT_LoadedExecutable_GetExecutable"};
inline constexpr Function<DeserializeArgs> kDeserialize{56, "PJRT_Executable_DeserializeAndLoad"};

struct ExecuteOptions {
  Head head;
  void* sends;
  void* receives;
  std::size_t send_count;
  std::size_t receive_count;
  int launch_id;
  const std::int64_t* kept_inputs;  ///< arguments whose buffers the run must not take for results
  std::size_t kept_count;
  void* context;
};
struct ExecuteArgs {
  Head head;
  void* loaded;
  ExecuteOptions* options;
  void* const* const* arguments;  ///< a row of buffers for each device
  std::size_t device_count;
  std::size_t argument_count;
  void** const* outputs;  ///< a row of buffers for each device
  void** done_events;     ///< an event for each device
  void* device;           ///< null: runs on the devices for which the program was compiled
};
inline constexpr Function<ExecuteArgs> kExecute{55, "PJRT_LoadedExecutable_Execute"};

inline constexpr Function<CompiledMemoryArgs> kCompiledMemory{
    96, "PJRT_Executable_GetCompiledMemoryStats"};

}  // namespace weft::pjrt
