#pragma once
/// Example programs for each op.

#include <string>
#include <string_view>
#include <vector>

#include "spmd/program/program.hpp"

namespace weft::testing {

/// An example of an op. `body` is the lines of a program's text. The last line gives the op's
/// result. `inputs` are the types of %0, %1, ...; f32 in both stands for the dtype under test.
struct OpExample {
  OpKind kind;
  std::vector<std::string_view> inputs;
  std::string_view body;
  /// The shardings of the only input and of the result on the mesh (2, 2) of data and model. They
  /// are set only for ops that occur only in programs of single chips.
  std::string_view cut_input = "";
  std::string_view cut_result = "";
  std::string_view variant = "";  ///< distinguishes examples of one op

  /// Returns whether the op occurs only in programs of single chips.
  bool is_of_chips() const { return !cut_input.empty(); }
  bool is_of_shard_map() const {
    return kind == OpKind::enter || kind == OpKind::leave || kind == OpKind::vary;
  }
};

const std::vector<OpExample>& op_examples();

/// Returns the example as text, with `dtype` in place of f32. `cuts` are the shardings of inputs;
/// without `cuts` they are open.
std::string text_of(const OpExample& example, std::string_view dtype = "f32",
                    const std::vector<std::string>& cuts = {});

}  // namespace weft::testing
