#pragma once
/// Removes from a random program that shows a fault everything that the fault doesn't need.

#include <functional>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// Returns whether a program, with the shardings that it contains, shows the fault.
using Fails = std::function<bool(const Program&)>;

/// Returns `program`, which fails, without the ops, outputs, inputs and shardings that the failure
/// doesn't need. They are removed one by one, shardings last, as long as the program still fails.
/// An op is replaced by an operand of its type or by an input. A failure that ends the process,
/// such as a WEFT_CHECK, can't be shrunk.
Program shrink(Program program, const Fails& fails);
/// Returns a function that returns fails(program), or false if verify() rejects the program.
Fails of_valid(const Mesh& mesh, Fails fails);

}  // namespace weft::testing
