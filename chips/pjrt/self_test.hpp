#pragma once
/// Tests a plug-in for faults that would make training go wrong without an error.

#include "chips/pjrt/client.hpp"

namespace weft::pjrt {

/// Runs small programs, which takes about 0.2 s, and checks that
///  - a product uses the current weights after the host or a run has changed them in place. Some
///    plug-ins keep rearranged copies of weights by address;
///  - a result is written into the memory of an unread argument that has `tf.aliasing_output`;
///  - maximum and minimum return NaN if an operand is NaN.
/// The first two checks are only for CPUs, where weft's arena is the device's memory. If a compiler
/// flag cures a fault, sets that flag in the client. Otherwise throws unavailable with the
/// plug-in's name and the fault.
void test_plugin(Client& client);

}  // namespace weft::pjrt
