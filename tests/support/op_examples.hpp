#pragma once
/// An example program for each op.

#include <string>
#include <string_view>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// `body`: lines of a program's text, whose last value is the op's. `inputs`: types of %0, %1, ...
/// f32 stands for the dtype that is tried.
struct OpExample {
  OpKind kind;
  std::vector<std::string_view> inputs;
  std::string_view body;
  /// Of an op that chips run and global programs don't have, on the mesh (2, 2) of data and model:
  /// how its only input is cut, and its result.
  std::string_view cut_input = "";
  std::string_view cut_result = "";
  std::string_view variant = "";  ///< tells examples of one op apart
};

const std::vector<OpExample>& op_examples();

/// The example as text. `dtype` in the place of f32; an input is cut as `cuts` say, open without.
std::string text_of(const OpExample& example, std::string_view dtype = "f32",
                    const std::vector<std::string>& cuts = {});

}  // namespace weft::testing
