#pragma once
/// TracedProgram: a program that a trace has run, to be run again. For the files of this folder.

#include <cstdint>
#include <source_location>
#include <string_view>
#include <vector>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/program.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {

/// The call that is being recorded; see Call.
struct TraceSite {
  std::string_view function;
  std::source_location loc;
};

/// A function of weft::compile that is being traced.
struct TracedFunction {
  std::source_location loc;
  bool full_graph = false;
};

/// A program with the tensors that it reads and those that it makes or updates.
struct TracedProgram {
  Program program;
  Fingerprint key;
  std::vector<NodePtr> inputs;
  std::vector<NodePtr> outputs;
  NodePtr random_state = nullptr;  ///< the input that random tensors come from, if there are any
  std::uint32_t random_calls = 0;  ///< for random bits
};

}  // namespace weft
