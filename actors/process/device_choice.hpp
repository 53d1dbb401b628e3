#pragma once
/// Chooses the kind of a job's chips from what the job asks for and what the machine has.

#include <string>

#include <weft/job/scaling_config.hpp>

#include "chips/pjrt/discovery.hpp"

namespace weft {

struct DeviceChoice {
  DeviceKind kind = DeviceKind::cpu;
  std::string why{};  ///< what was asked for, where devices were looked for, and the result
};

/// Where to look for devices and their plug-ins. Only tests change it.
struct DeviceMachine {
  std::string root{};  ///< the folder that has /dev
  pjrt::Variable variable = ::getenv;
};

/// Throws invalid_argument if fields ask for different kinds. Throws unavailable if the machine
/// doesn't have that kind, if no plug-in is for it, or if this version can't run programs on it;
/// the message says what was found and what to install.
DeviceChoice choose_device(const ScalingConfig& scaling, const DeviceMachine& machine = {});

}  // namespace weft
