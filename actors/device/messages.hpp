#pragma once
/// The messages to device actors, and their typed interface.

#include <memory>

#include <caf/fwd.hpp>
#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>

namespace weft {

using load_a = caf::atom_constant<caf::atom("load")>;
using run_a = caf::atom_constant<caf::atom("run")>;
using call_a = caf::atom_constant<caf::atom("call")>;

struct DeviceLoad;
struct DeviceRun;
struct DeviceCall;
/// These messages stay within the process, so plans and offsets are passed by pointer.
using DeviceLoadPtr = std::shared_ptr<const DeviceLoad>;
using DeviceRunPtr = std::shared_ptr<const DeviceRun>;
using DeviceCallPtr = std::shared_ptr<const DeviceCall>;
using DeviceActor =
    caf::typed_actor<caf::reacts_to<load_a, DeviceLoadPtr>, caf::reacts_to<run_a, DeviceRunPtr>,
                     caf::reacts_to<call_a, DeviceCallPtr>>;

}  // namespace weft

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceLoadPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceRunPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(weft::DeviceCallPtr)
