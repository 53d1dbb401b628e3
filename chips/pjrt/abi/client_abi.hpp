#pragma once
/// Clients and devices in the PJRT C ABI (abi.hpp).

#include "chips/pjrt/abi/abi.hpp"

namespace weft::pjrt {

struct ClientCreateArgs {
  Head head;
  const NamedValue* options;
  std::size_t option_count;
  void* get;
  void* get_argument;
  void* put;
  void* put_argument;
  void* client;
  void* try_get;
  void* try_get_argument;
};
struct ClientArgs {
  Head head;
  void* client;
};
struct ClientTextArgs {
  Head head;
  void* client;
  const char* text;
  std::size_t size;
};
struct DevicesArgs {
  Head head;
  void* client;
  void* const* devices;
  std::size_t count;
};
inline constexpr Function<ClientCreateArgs> kClientCreate{10, "PJRT_Client_Create"};
inline constexpr Function<ClientArgs> kClientDestroy{11, "PJRT_Client_Destroy"};
inline constexpr Function<ClientTextArgs> kPlatformName{12, "PJRT_Client_PlatformName"};
inline constexpr Function<ClientTextArgs> kPlatformVersion{14, "PJRT_Client_PlatformVersion"};
inline constexpr Function<DevicesArgs> kAddressableDevices{16, "PJRT_Client_AddressableDevices"};

struct DeviceIdArgs {
  Head head;
  void* description;
  int id;
};
struct DeviceKindArgs {
  Head head;
  void* description;
  const char* kind;
  std::size_t size;
};
struct DescriptionArgs {
  Head head;
  void* device;
  void* description;
};
struct Statistic {
  std::int64_t value;
  bool is_set;
};
/// The arguments of kMemoryStats, which plug-ins for CPUs lack.
struct MemoryStatsArgs {
  Head head;
  void* device;
  std::int64_t used_bytes;
  Statistic peak_bytes;
  Statistic allocations;
  Statistic largest_bytes;
  Statistic limit_bytes;
};
inline constexpr Function<DeviceIdArgs> kDeviceId{23, "PJRT_DeviceDescription_Id"};
inline constexpr Function<DeviceKindArgs> kDeviceKind{26, "PJRT_DeviceDescription_Kind"};
inline constexpr Function<DescriptionArgs> kGetDescription{29, "PJRT_Device_GetDescription"};
inline constexpr Function<MemoryStatsArgs> kMemoryStats{34, "PJRT_Device_MemoryStats"};

}  // namespace weft::pjrt
