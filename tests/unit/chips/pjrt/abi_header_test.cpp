// Compares weft's declarations of the PJRT C ABI with the header in a plug-in's package. CMake
// compiles this file only if it finds such a header.

#include <gtest/gtest.h>
#include <pjrt_c_api.h>

#include <cstddef>
#include <utility>

#include "chips/pjrt/abi/buffer_abi.hpp"
#include "chips/pjrt/abi/client_abi.hpp"
#include "chips/pjrt/abi/executable_abi.hpp"
#include "chips/pjrt/abi/ffi_abi.hpp"
#include "chips/pjrt/plugin.hpp"

namespace weft::pjrt::abi_header_test {
namespace {

#define EXPECT_SLOT(function, name) static_assert((function).offset() == offsetof(PJRT_Api, name))
#define EXPECT_FIELD(fields, field, args, name)                    \
  static_assert(offsetof(fields, field) == offsetof(args, name) && \
                sizeof(std::declval<fields>().field) == sizeof(std::declval<args>().name))
// weft's declaration of an argument block may lack the last fields of the plug-in's block.
#define EXPECT_PART(fields, args) static_assert(sizeof(fields) <= sizeof(args))
#define EXPECT_WHOLE(fields, args) static_assert(sizeof(fields) == sizeof(args))

EXPECT_SLOT(kErrorDestroy, PJRT_Error_Destroy);
EXPECT_SLOT(kErrorMessage, PJRT_Error_Message);
EXPECT_SLOT(kErrorGetCode, PJRT_Error_GetCode);
EXPECT_SLOT(kPluginInitialize, PJRT_Plugin_Initialize);
EXPECT_SLOT(kPluginAttributes, PJRT_Plugin_Attributes);
EXPECT_SLOT(kEventDestroy, PJRT_Event_Destroy);
EXPECT_SLOT(kEventIsReady, PJRT_Event_IsReady);
EXPECT_SLOT(kEventError, PJRT_Event_Error);
EXPECT_SLOT(kEventAwait, PJRT_Event_Await);
EXPECT_SLOT(kClientCreate, PJRT_Client_Create);
EXPECT_SLOT(kClientDestroy, PJRT_Client_Destroy);
EXPECT_SLOT(kPlatformName, PJRT_Client_PlatformName);
EXPECT_SLOT(kPlatformVersion, PJRT_Client_PlatformVersion);
EXPECT_SLOT(kAddressableDevices, PJRT_Client_AddressableDevices);
EXPECT_SLOT(kCompile, PJRT_Client_Compile);
EXPECT_SLOT(kFromHost, PJRT_Client_BufferFromHostBuffer);
EXPECT_SLOT(kDeviceId, PJRT_DeviceDescription_Id);
EXPECT_SLOT(kDeviceKind, PJRT_DeviceDescription_Kind);
EXPECT_SLOT(kGetDescription, PJRT_Device_GetDescription);
EXPECT_SLOT(kMemoryStats, PJRT_Device_MemoryStats);
EXPECT_SLOT(kExecutableDestroy, PJRT_Executable_Destroy);
EXPECT_SLOT(kNumOutputs, PJRT_Executable_NumOutputs);
EXPECT_SLOT(kSerialize, PJRT_Executable_Serialize);
EXPECT_SLOT(kLoadedDestroy, PJRT_LoadedExecutable_Destroy);
EXPECT_SLOT(kGetExecutable, PJRT_LoadedExecutable_GetExecutable);
EXPECT_SLOT(kExecute, PJRT_LoadedExecutable_Execute);
EXPECT_SLOT(kDeserialize, PJRT_Executable_DeserializeAndLoad);
EXPECT_SLOT(kBufferDestroy, PJRT_Buffer_Destroy);
EXPECT_SLOT(kToHost, PJRT_Buffer_ToHostBuffer);
EXPECT_SLOT(kUnsafePointer, PJRT_Buffer_UnsafePointer);

EXPECT_FIELD(Api, major, PJRT_Api, pjrt_api_version.major_version);
EXPECT_FIELD(Api, minor, PJRT_Api, pjrt_api_version.minor_version);
EXPECT_WHOLE(Extension, PJRT_Extension_Base);
EXPECT_FIELD(Extension, type, PJRT_Extension_Base, type);
EXPECT_FIELD(Extension, next, PJRT_Extension_Base, next);
EXPECT_WHOLE(NamedValue, PJRT_NamedValue);
EXPECT_FIELD(NamedValue, kind, PJRT_NamedValue, type);
EXPECT_FIELD(NamedValue, flag_value, PJRT_NamedValue, bool_value);
EXPECT_FIELD(NamedValue, size, PJRT_NamedValue, value_size);
static_assert(NamedValue::text == static_cast<int>(PJRT_NamedValue_kString));
static_assert(NamedValue::integers == static_cast<int>(PJRT_NamedValue_kInt64List));
static_assert(NamedValue::flag == static_cast<int>(PJRT_NamedValue_kBool));

EXPECT_FIELD(ErrorMessageArgs, message, PJRT_Error_Message_Args, message);
EXPECT_FIELD(ErrorMessageArgs, size, PJRT_Error_Message_Args, message_size);
EXPECT_FIELD(ErrorCodeArgs, code, PJRT_Error_GetCode_Args, code);
EXPECT_FIELD(AttributesArgs, attributes, PJRT_Plugin_Attributes_Args, attributes);
EXPECT_FIELD(EventReadyArgs, is_ready, PJRT_Event_IsReady_Args, is_ready);

EXPECT_WHOLE(ClientCreateArgs, PJRT_Client_Create_Args);
EXPECT_FIELD(ClientCreateArgs, option_count, PJRT_Client_Create_Args, num_options);
EXPECT_FIELD(ClientCreateArgs, client, PJRT_Client_Create_Args, client);
EXPECT_FIELD(ClientCreateArgs, try_get, PJRT_Client_Create_Args, kv_try_get_callback);
EXPECT_FIELD(ClientTextArgs, size, PJRT_Client_PlatformName_Args, platform_name_size);
EXPECT_FIELD(ClientTextArgs, size, PJRT_Client_PlatformVersion_Args, platform_version_size);
EXPECT_FIELD(DevicesArgs, count, PJRT_Client_AddressableDevices_Args, num_addressable_devices);
EXPECT_FIELD(DescriptionArgs, description, PJRT_Device_GetDescription_Args, device_description);
EXPECT_FIELD(DeviceIdArgs, id, PJRT_DeviceDescription_Id_Args, id);
EXPECT_FIELD(DeviceKindArgs, size, PJRT_DeviceDescription_Kind_Args, device_kind_size);
EXPECT_FIELD(MemoryStatsArgs, used_bytes, PJRT_Device_MemoryStats_Args, bytes_in_use);
EXPECT_FIELD(MemoryStatsArgs, limit_bytes.value, PJRT_Device_MemoryStats_Args, bytes_limit);
EXPECT_FIELD(MemoryStatsArgs, limit_bytes.is_set, PJRT_Device_MemoryStats_Args, bytes_limit_is_set);

EXPECT_FIELD(Code, format, PJRT_Program, format);
EXPECT_FIELD(CompileArgs, loaded, PJRT_Client_Compile_Args, executable);
EXPECT_FIELD(CountArgs, count, PJRT_Executable_NumOutputs_Args, num_outputs);
EXPECT_FIELD(GetExecutableArgs, executable, PJRT_LoadedExecutable_GetExecutable_Args, executable);
EXPECT_FIELD(SerializeArgs, free, PJRT_Executable_Serialize_Args, serialized_executable_deleter);
EXPECT_FIELD(DeserializeArgs, loaded, PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
EXPECT_SLOT(kCompiledMemory, PJRT_Executable_GetCompiledMemoryStats);
EXPECT_FIELD(CompiledMemoryArgs, temporary_bytes, PJRT_Executable_GetCompiledMemoryStats_Args,
             temp_size_in_bytes);
EXPECT_PART(ExecuteOptions, PJRT_ExecuteOptions);
EXPECT_FIELD(ExecuteOptions, launch_id, PJRT_ExecuteOptions, launch_id);
EXPECT_FIELD(ExecuteOptions, kept_inputs, PJRT_ExecuteOptions, non_donatable_input_indices);
EXPECT_FIELD(ExecuteOptions, kept_count, PJRT_ExecuteOptions, num_non_donatable_input_indices);
EXPECT_FIELD(ExecuteOptions, context, PJRT_ExecuteOptions, context);
EXPECT_SLOT(kContextCreate, PJRT_ExecuteContext_Create);
EXPECT_SLOT(kContextDestroy, PJRT_ExecuteContext_Destroy);
EXPECT_FIELD(ContextArgs, context, PJRT_ExecuteContext_Create_Args, context);
EXPECT_WHOLE(ExecuteArgs, PJRT_LoadedExecutable_Execute_Args);
EXPECT_FIELD(ExecuteArgs, outputs, PJRT_LoadedExecutable_Execute_Args, output_lists);
EXPECT_FIELD(ExecuteArgs, device, PJRT_LoadedExecutable_Execute_Args, execute_device);

EXPECT_WHOLE(FromHostArgs, PJRT_Client_BufferFromHostBuffer_Args);
EXPECT_FIELD(FromHostArgs, semantics, PJRT_Client_BufferFromHostBuffer_Args, host_buffer_semantics);
EXPECT_FIELD(FromHostArgs, buffer, PJRT_Client_BufferFromHostBuffer_Args, buffer);
EXPECT_FIELD(ToHostArgs, event, PJRT_Buffer_ToHostBuffer_Args, event);
EXPECT_FIELD(ToHostArgs, layout, PJRT_Buffer_ToHostBuffer_Args, host_layout);
EXPECT_WHOLE(HostLayout, PJRT_Buffer_MemoryLayout);
EXPECT_FIELD(HostLayout, minor_to_major, PJRT_Buffer_MemoryLayout, tiled.minor_to_major);
EXPECT_FIELD(HostLayout, rank, PJRT_Buffer_MemoryLayout, tiled.minor_to_major_size);
EXPECT_FIELD(HostLayout, tile_count, PJRT_Buffer_MemoryLayout, tiled.num_tiles);
EXPECT_FIELD(HostLayout, type, PJRT_Buffer_MemoryLayout, type);
static_assert(PJRT_Buffer_MemoryLayout_Type_Tiled == 0);
EXPECT_FIELD(AddressArgs, address, PJRT_Buffer_UnsafePointer_Args, buffer_pointer);
static_assert(static_cast<int>(ElementType::pred) == PJRT_Buffer_Type_PRED);
static_assert(static_cast<int>(ElementType::f32) == PJRT_Buffer_Type_F32);
static_assert(static_cast<int>(ElementType::bf16) == PJRT_Buffer_Type_BF16);
static_assert(static_cast<int>(HostMemory::used_in_place) ==
              PJRT_HostBufferSemantics_kMutableZeroCopy);

TEST(Abi, IsThatOfAPluginsHeader) {
  EXPECT_EQ(PJRT_API_MAJOR, 0);
  EXPECT_GE(PJRT_API_MINOR, Plugin::kMinorMin);
}

}  // namespace
}  // namespace weft::pjrt::abi_header_test
