#pragma once
/// Makes this process's client of the plug-in for a kind of accelerator.

#include <memory>

#include <weft/sharding/device.hpp>

#include "chips/pjrt/client.hpp"

namespace weft {

/// Returns the process's client for `kind`, which has at least `chips` devices. The first call
/// makes and tests the client, which lives until the process ends. For DeviceKind::pjrt_mirrored,
/// the devices are those of a plug-in for CPUs. Throws unavailable if there is no plug-in, if it
/// has fewer devices, or if its devices are of another kind. The text says what to install or to
/// change. Also throws the errors of Plugin::load(), Client::make() and test_plugin(). Any thread
/// may call it.
std::shared_ptr<pjrt::Client> accelerator_client(DeviceKind kind, int chips);

}  // namespace weft
