#pragma once
/// Tests a plug-in for faults that would make training wrong without an error.

#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

/// Runs small programs, which takes about 0.2 s. They find out whether
///  - a product uses weights that the host or a run has changed in place. Some plug-ins keep
///    rearranged copies of weights by address;
///  - a result is written where an unread input with `tf.aliasing_output` lies;
///  - maximum and minimum return NaN if an operand is NaN.
/// The first two are for CPUs, where weft's arena is the device's memory. A fault that a compiler
/// flag cures sets that flag in the client. Otherwise this throws unavailable with the plug-in's
/// name and the fault.
void test_plugin(Client& client);

}  // namespace weft::pjrt
