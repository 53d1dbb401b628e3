#include <weft/sharding/device.hpp>

#include <fmt/format.h>

namespace weft {

std::string_view to_string(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::automatic: return "automatic";
    case DeviceKind::cpu: return "cpu";
    case DeviceKind::gpu: return "gpu";
    case DeviceKind::tpu: return "tpu";
    case DeviceKind::pjrt_cpu: return "pjrt:cpu";
    case DeviceKind::pjrt_mirrored: return "pjrt:mirrored";
  }
  return "unknown";
}

std::string Device::to_string() const { return fmt::format("{}:{}", weft::to_string(kind), id); }

}  // namespace weft
