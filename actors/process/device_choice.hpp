#pragma once
/// Chooses the kind of a job's chips from what the job asks for and what the machine has.

#include <string>

#include <weft/job/scaling_config.hpp>

namespace weft {

struct DeviceChoice {
  DeviceKind kind = DeviceKind::cpu;
  bool falls_back = false;  ///< the chosen kind isn't the one that was asked for
  std::string why{};        ///< the request, the places searched and the result
};

/// `root` is the folder in which /dev is looked up; only tests pass another one than "". Throws
/// invalid_argument if fields ask for different kinds, unavailable if require_device is set and the
/// device is absent.
DeviceChoice choose_device(const ScalingConfig& scaling, const std::string& root = "");

}  // namespace weft
