#pragma once
/// The text form of a Program. It has one line per op, and is readable and exact:
/// `parse_program(to_text(p))` gives `p` back with names, types, attributes, shardings, constants
/// (to the bit) and locations.
///
///   program(%0: f32[64,64] data "x" [{"data"}, {}],
///           %1: f32[128,64] param "fc1.weight" [{"model"}, {}]) {
///     %2 = dot_general %0, %1 {contracting = [1] x [1]} : f32[64,128]  // digits.cpp:41
///     return %2 "y" [{?}, {?}]
///   }
///
/// White space may be between any tokens, and attributes have the order of to_text. The grammar:
///   program  = "program(" [input {"," input}] ")" "{" {op} "return" [output {"," output}] "}"
///   input    = value ":" type input-kind string sharding
///   op       = value "=" op-kind [value {"," value}] ["{" attributes "}"] ":" type [place]
///   place    = "//" location
///   output   = value string sharding ["updates" input-number]
///   sharding = "[" [dim {"," dim}] "]" ["unreduced" atoms] ["reduce=" reduce-kind]
///              ["replicated" atoms] ["priority{" part "=" number {"," part "=" number} "}"]
///   dim      = "{" [part {"," part}] ["?"] "}"
///   atoms    = "{" part {"," part} "}"
///   part     = axis-name [":" number], an axis, or one atom of it
/// `%n` is the value's id. Strings escape `"`, `\` and control characters (`\xNN`). A NaN is
/// written as its bits.

#include <string>
#include <string_view>

#include <weft/sharding/mesh.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// Returns the text of the program. Shardings are printed with the mesh's axis names.
std::string to_text(const Program& program, const Mesh& mesh);
/// Returns the program that the text describes. Throws invalid_argument, with line and column, if
/// the text isn't a program.
Program parse_program(std::string_view text, const Mesh& mesh);

}  // namespace weft
