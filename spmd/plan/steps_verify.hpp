#pragma once
/// Verification of a plan's steps. For plan_verify.cpp.

#include "spmd/plan/plan.hpp"

namespace weft {

/// Throws corrupt, naming the step, op or value, unless the steps run every op once and in the
/// program's order, loops and buckets are such, tile buffers suffice for the values that live in
/// them, all chips meet after the last shared value is read, and every output that updates an input
/// is written after the update_wait or held until it. The program and the slots' places have been
/// verified.
void verify_steps(const Plan& plan, const Mesh& mesh);

}  // namespace weft
