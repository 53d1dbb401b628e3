#pragma once
/// Shrinking removes from a random program everything that its fault doesn't need.

#include <functional>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// Returns whether a program, with the shardings of its inputs, outputs and constraints, shows the
/// fault.
using Fails = std::function<bool(const Program&)>;

/// Returns `program`, which fails, without the ops, outputs, inputs and shardings that the failure
/// doesn't need. They are removed one by one, the shardings last, as long as the program still
/// fails. An op is replaced by an operand of its type or by an input. Failures that can't be
/// caught, such as a WEFT_CHECK, can't be shrunk.
Program shrink(Program program, const Fails& fails);
/// Restricts `fails` to programs that verify() accepts.
Fails of_valid(const Mesh& mesh, Fails fails);

}  // namespace weft::testing
