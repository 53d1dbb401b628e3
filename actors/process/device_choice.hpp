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

/// The machine on which devices and plug-ins are searched for. Only tests use another than this
/// machine.
struct DeviceMachine {
  std::string root{};  ///< the folder that has /dev
  pjrt::Variable variable = ::getenv;
};

/// The chips that a job has on this machine.
struct DeviceDemand {
  int num_workers = 1;
  int chips_per_worker = 1;
  bool is_in_trainer = false;  ///< the loop runs in the trainer's process
};

/// Chooses the kind that is asked for. Without a request it chooses the first of TPU and GPU that
/// the machine has, if there is a plug-in of this kind for it and it suits the demand, and else the
/// CPU. The trainer's process, which would keep the devices until its end, takes the CPU then. It
/// finds devices and plug-ins by their files and by the variables that hide devices, and opens no
/// device. Throws invalid_argument if fields ask for different kinds, or if the kind doesn't suit
/// the demand. Throws unavailable if the machine lacks the kind that is asked for, or if there is
/// no plug-in for it; the text says what was found and what to install.
DeviceChoice choose_device(const ScalingConfig& scaling, const DeviceDemand& demand = {},
                           const DeviceMachine& machine = {});

}  // namespace weft
