#pragma once
/// Recording: the ops that a trace had recorded when the training loop read a value in the middle
/// of a step. The ops are kept so that a gradient can flow through them. TracedProgram: a program
/// that a trace has run and can run again. Only the files of this folder use these types.

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

/// Modes that apply to the following calls. Scopes in the training loop and the job's options set
/// them.
struct TraceModes {
  std::optional<DType> autocast{};
  bool detects_anomaly = false;
  bool is_eager = false;
};

/// A program, the tensors that it reads, and the tensors that it makes or updates.
struct TracedProgram {
  Program program;
  Fingerprint key;
  std::vector<NodePtr> inputs;
  std::vector<NodePtr> outputs;
  NodePtr random_state = nullptr;  ///< input that random tensors come from, or null
  std::uint32_t random_calls = 0;  ///< number of calls for random bits
};

/// The tensors that a recording made own it, and the recording's inputs own the recordings before
/// it. A recording is therefore freed when no tensor depends on it.
struct Recording {
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording();

  struct Input {
    std::weak_ptr<TensorNode> node;
    NodePtr then;  ///< the input as it was when the run read it; null if the run overwrote the
                   ///< value
  };
  /// Frees all members that take much memory.
  void drop();

  Program program;
  std::vector<Input> inputs;                    ///< in the order of the program's inputs
  std::vector<std::weak_ptr<TensorNode>> made;  ///< tensors whose origin is this recording
  Regions regions;
  std::source_location read;  ///< line whose read caused the run
  std::uint64_t loop = 0;     ///< Trace::id() of the trace
  std::uint64_t step = 0;
  std::uint64_t number = 0;  ///< increases from recording to recording
  std::size_t bytes = 0;     ///< memory that this keeps allocated, approximately
  bool is_dropped = false;   ///< true if drop() was called to save memory
  /// The number of the program in which the ops are recorded again (0: none), and the new number of
  /// each value there (kNoId if the value needs state that was overwritten).
  std::uint64_t again_in = 0;
  std::vector<ValueId> again;
};

/// The recordings of the current step. Only the trace's thread uses it.
class Recordings {
 public:
  /// All recordings except the last may keep at most this many bytes in total. If they keep more,
  /// the oldest recordings are dropped.
  static constexpr std::size_t kBytesMax = std::size_t{256} << 20;

  void add(const std::shared_ptr<Recording>& recording, std::size_t bytes_max = kBytesMax);
  /// Returns the recordings with this number or a higher one that some tensor still needs.
  std::vector<std::shared_ptr<Recording>> since(std::uint64_t number) const;
  /// Drops all recordings.
  void forget();

 private:
  std::vector<std::weak_ptr<Recording>> all_;  // recordings in order
  std::size_t pruned_ = 0;                     // number of recordings after the last pruning
};

/// The values of a program through which a gradient of `values` flows.
struct GradientPaths {
  std::vector<bool> reached;  ///< by value: it is in `values`, or one of these depends on it
  std::vector<bool> below;    ///< indexed by value: a differentiated op reads it

  GradientPaths(const Program& program, std::span<const ValueId> values);
};

/// Returns for each value whether it is missing: neither in `given` nor computable from the values
/// in `given`. If one value of a loop or a cond is missing, all values of the loop or cond are.
std::vector<bool> missing_values(const Program& program, const std::vector<ValueId>& given);
/// Appends the ops of `from` to `to`, except ops whose results are already in `values` or can't be
/// computed from the values there. Stores the results in `values`. Returns for each op of `from`
/// the number of ops in `to` before the op was appended or skipped; the last entry is the final
/// number.
std::vector<OpId> append_ops(const Program& from, Program& to, std::vector<ValueId>& values);

}  // namespace weft
