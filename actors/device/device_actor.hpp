#pragma once
/// The device actor: one per chip, with a thread of its own.

#include <memory>

#include "actors/device/device_link.hpp"
#include "actors/link/system.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// Starts a device. `on_failure` receives the failure that ended its work, on the device's thread.
std::unique_ptr<DeviceLink> spawn_device(System& system, std::unique_ptr<Engine> engine,
                                         BoardWriter board, DeviceFailed on_failure);

}  // namespace weft
