#pragma once
/// The typed interface of device actors. Their messages never leave the process.

#include "actors/caf/names.hpp"

namespace weft {

using DeviceActor =
    caf::typed_actor<On<load_a, DeviceLoadPtr>, On<run_a, DeviceRunPtr>, On<call_a, DeviceCallPtr>>;

}  // namespace weft
