#pragma once
/// Chooses the kind of a job's chips from what the job asks for and what the machine has.

#include <string>

#include <weft/job/scaling_config.hpp>

#include "chips/pjrt/discovery.hpp"

namespace weft {

struct DeviceChoice {
  DeviceKind kind = DeviceKind::cpu;
  std::string why{};  ///< the request, the places searched and the result
};

/// The places where devices and their plug-ins are looked up. Only tests change them.
struct DeviceMachine {
  std::string root{};  ///< the folder that has /dev
  pjrt::Variable variable = ::getenv;
};

/// Throws invalid_argument if fields ask for different kinds. Throws unavailable if the machine
/// lacks the kind that is asked for, if there is no plug-in for it, or if this version doesn't run
/// programs on it; the text says what was found and what to install.
DeviceChoice choose_device(const ScalingConfig& scaling, const DeviceMachine& machine = {});

}  // namespace weft
