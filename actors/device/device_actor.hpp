#pragma once
/// Starts device actors, one per chip, each on its own thread.

#include <memory>

#include "actors/device/device_link.hpp"
#include "actors/link/system.hpp"
#include "transport/blackbox/recorder.hpp"

namespace weft {

/// Starts a device on a new thread, which is named after `chip`. If the device's work fails, that
/// thread calls `on_failure` with the failure.
std::unique_ptr<DeviceLink> spawn_device(System& system, std::unique_ptr<Engine> engine,
                                         const Recorder& recorder, int chip,
                                         DeviceFailed on_failure);

}  // namespace weft
