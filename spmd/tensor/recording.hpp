#pragma once
/// Recording: what a trace had recorded when something was read in the middle of a step, so that a
/// gradient can be taken through it. TracedProgram: a program that a trace has run, to be run
/// again. For the files of this folder.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <vector>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/program.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/regions.hpp"

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

/// Modes of the calls that follow; scopes of the loop and the job's options set them.
struct TraceModes {
  std::optional<DType> autocast{};
  bool detects_anomaly = false;
  bool is_eager = false;
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

/// The tensors that it made own it, and through its inputs the recordings before it: a recording
/// that no tensor comes from any more takes no memory.
struct Recording {
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  struct Input {
    std::weak_ptr<TensorNode> node;
    NodePtr then;  ///< a copy, with the value that the run read; none if the run wrote over it
  };
  /// Drops all that takes memory.
  void drop();

  Program program;
  std::vector<Input> inputs;                    ///< in the program's order
  std::vector<std::weak_ptr<TensorNode>> made;  ///< their origin is this recording
  Regions regions;
  std::source_location read;  ///< the line for which it ran
  std::uint64_t loop = 0;     ///< Trace::id()
  std::uint64_t step = 0;
  std::uint64_t number = 0;  ///< recordings come in the order of their numbers
  std::size_t bytes = 0;     ///< about what it keeps from being freed
  bool is_dropped = false;   ///< too much was kept
  /// The trace that has recorded this again, and each value's number there (kNoId: it needs state
  /// that was written over). 0: not recorded again.
  std::uint64_t again_in = 0;
  std::vector<ValueId> again;
};

/// The recordings of the present step. Used by the trace's thread.
class Recordings {
 public:
  /// More than this is not kept beside the last recording: the oldest are dropped.
  static constexpr std::size_t kBytesMax = std::size_t{256} << 20;

  void add(const std::shared_ptr<Recording>& recording, std::size_t bytes_max = kBytesMax);
  /// Returns the recordings from this number on that some tensor needs.
  std::vector<std::shared_ptr<Recording>> since(std::uint64_t number) const;
  /// Drops all of them.
  void forget();

 private:
  std::vector<std::weak_ptr<Recording>> all_;  // in order
  std::size_t pruned_ = 0;                     // how many there were after the last pruning
};

/// Values from which others are computed, as far as a gradient flows.
struct GradientPaths {
  std::vector<bool> reached;  ///< by value: it, or what is computed from it, is one of `values`
  std::vector<bool> below;    ///< by value: it is an operand of an op that a gradient flows through

  GradientPaths(const Program& program, std::span<const ValueId> values);
};

/// True for each value that isn't in `given` and can't be computed from it. If one value of a loop
/// or a cond is missing, all of them are.
std::vector<bool> missing_values(const Program& program, const std::vector<ValueId>& given);
/// Appends the ops of `from`, but for those whose values are missing, or given in `values`, which
/// gets the others. Returns, by op and one more, how many ops stand before its place.
std::vector<OpId> append_ops(const Program& from, Program& to, std::vector<ValueId>& values);

}  // namespace weft
