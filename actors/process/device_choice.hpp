#pragma once
/// DeviceChoice: what the chips of a job are, of what it asks for and what the machine has.

#include <string>

#include <weft/scaling_config.hpp>

namespace weft {

struct DeviceChoice {
  DeviceKind kind = DeviceKind::cpu;
  bool falls_back = false;  ///< another kind was asked for
  std::string why{};        ///< what was asked for, looked for and found
};

/// `root`: the folder in which /dev is looked for; "" but in tests. Throws invalid_argument for
/// fields that ask for different kinds, unavailable for what isn't there with require_device.
DeviceChoice choose_device(const ScalingConfig& scaling, const std::string& root = "");

}  // namespace weft
