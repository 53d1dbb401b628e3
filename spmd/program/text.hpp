#pragma once
/// The text form of a Program: one line an op, readable and exact. `parse(to_text(p))` gives `p`
/// back (names, types, attributes, shardings, constants, locations).
///
///   program(%0: f32[64,64] data "x" [{"data"}, {}],
///           %1: f32[128,64] param "fc1.weight" [{"model"}, {}]) {
///     %2 = dot_general %0, %1 {contracting = [1] x [1]} : f32[64,128]  // digits.cpp:41
///     return %2 "y" [{?}, {?}]
///   }

#include <string>
#include <string_view>

#include <weft/spmd/mesh/mesh.hpp>
#include <weft/spmd/program/program.hpp>

namespace weft {

/// Shardings are printed with the mesh's axis names.
std::string to_text(const Program& program, const Mesh& mesh);
/// Throws invalid_argument with line and column for text that isn't a program on this mesh.
Program parse_program(std::string_view text, const Mesh& mesh);

}  // namespace weft
