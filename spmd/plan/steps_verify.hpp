#pragma once
/// Verification of a plan's steps. For plan_verify.cpp.

#include "spmd/plan/plan.hpp"

namespace weft {

/// Throws corrupt, naming the step, op or value, unless the steps run every op once and in order
/// (stored fills before their loop), loops and buckets contain only ops that can run together,
/// values that live at once have different tile buffers, all chips meet after the last read of a
/// shared value, every update is after the update_wait or held until it, and donations are legal.
/// The program and the slots' places must be verified already.
void verify_steps(const Plan& plan, const Mesh& mesh);
/// The part of it about barriers, updates and donations.
void verify_updates(const Plan& plan, const Mesh& mesh);

}  // namespace weft
