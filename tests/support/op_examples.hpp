#pragma once
/// An example program for each op.

#include <string>
#include <string_view>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// `body`: the lines of a program's text; the last value is the op's result. `inputs`: the types of
/// %0, %1, ...; f32 stands for the dtype under test.
struct OpExample {
  OpKind kind;
  std::vector<std::string_view> inputs;
  std::string_view body;
  /// For an op that chips run but global programs don't contain: how its only input and its result
  /// are cut on the mesh (2, 2) of data and model.
  std::string_view cut_input = "";
  std::string_view cut_result = "";
  std::string_view variant = "";  ///< tells examples of one op apart
};

const std::vector<OpExample>& op_examples();

/// Returns the example as text, with `dtype` in place of f32. Inputs are cut as `cuts` say; without
/// cuts they are open.
std::string text_of(const OpExample& example, std::string_view dtype = "f32",
                    const std::vector<std::string>& cuts = {});

}  // namespace weft::testing
