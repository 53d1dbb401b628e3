#pragma once
/// Shrinking: what is left of a random program when all that its fault doesn't need is taken away.

#include <functional>

#include <weft/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// Whether a program, with the shardings of its inputs, outputs and constraints, shows the fault.
using Fails = std::function<bool(const Program&)>;

/// `program`, which fails, without the ops, outputs and inputs, and then without the shardings,
/// that it fails without: they go one by one, as long as what is left still fails. An op goes by an
/// operand of its type or an input in its place. What can't be caught, such as a WEFT_CHECK, can't
/// be shrunk.
Program shrink(Program program, const Fails& fails);
/// `fails`, of programs that verify() accepts.
Fails of_valid(const Mesh& mesh, Fails fails);

}  // namespace weft::testing
