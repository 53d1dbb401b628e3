#pragma once
/// Makes this process's client of the plug-in for a kind of accelerator.

#include <memory>

#include <weft/sharding/device.hpp>

#include "chips/pjrt/client.hpp"

namespace weft {

/// Returns the process's client for the kind, which has at least `chips` devices. It is made and
/// tested at the first call, and lives until the process ends. DeviceKind::pjrt_mirrored takes the
/// devices of a plug-in for CPUs. Throws unavailable if there is no plug-in, if it has fewer
/// devices, or if its devices are of another kind; the text says what to install or to change. Also
/// throws the errors of Plugin::load(), Client::make() and test_plugin(). Any thread may call it.
std::shared_ptr<pjrt::Client> accelerator_client(DeviceKind kind, int chips);

}  // namespace weft
