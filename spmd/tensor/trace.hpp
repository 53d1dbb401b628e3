#pragma once
/// Trace: the program that a thread's tensor calls are recording. For the files of this folder.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <weft/tensor.hpp>

#include "spmd/ops/builder.hpp"
#include "spmd/program/philox.hpp"
#include "spmd/tensor/loc_table.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/regions.hpp"
#include "spmd/tensor/runtime.hpp"
#include "spmd/tensor/step_watch.hpp"
#include "spmd/tensor/traced_program.hpp"

namespace weft {

/// One per RuntimeScope, used by its thread.
class Trace {
 public:
  explicit Trace(Runtime& runtime);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The calling thread's trace. Outside of a RuntimeScope it throws as fail_off_thread().
  static Trace& current(const std::source_location& loc);
  /// The tensor's row-major elements; runs the recorded ops if needed. Needs no trace on the host.
  static std::vector<std::byte> read(const NodePtr& node, const std::source_location& loc);

  Runtime& runtime() { return *runtime_; }
  Builder& builder() { return builder_; }
  const std::optional<TraceSite>& site() const { return site_; }
  void enter(const TraceSite& site);
  void leave();
  const TracedFunction* function() const { return function_ ? &*function_ : nullptr; }
  void enter_function(const TracedFunction& scope) { function_ = scope; }
  void leave_function() { function_.reset(); }
  std::optional<DType> autocast() const { return autocast_; }
  void set_autocast(std::optional<DType> dtype) { autocast_ = dtype; }
  bool detects_anomaly() const { return detects_anomaly_; }
  void set_detects_anomaly(bool on) { detects_anomaly_ = on; }
  /// Unique among all traces of the process.
  std::uint64_t id() const { return id_; }

  /// The node's value in this trace; at its first use a tensor becomes an input. Throws
  /// invalid_argument for a tensor whose trace ended without a run.
  ValueId value_of(const NodePtr& node, const std::source_location& loc);
  /// A tensor for a value of this trace: an output of the next run, if it is alive then.
  Tensor record(ValueId value);
  /// The node must have a value in this trace.
  void assign(TensorNode& node, ValueId value);
  /// Whether ops recorded since the last run use or compute it.
  bool is_recorded(const TensorNode& node) const { return node.trace == serial_; }
  /// Whether its value has yet to be computed: it was recorded or assigned since the last run.
  bool is_pending(const TensorNode& node) const;
  /// The value of state at the last sync. Throws invalid_argument if it was recorded to change.
  static Binding synced_value(const NodePtr& of, const std::source_location& loc);
  /// Requests this sharding of a node on the host, whether or not it is an input already.
  void mark(TensorNode& node, const Sharding& sharding);
  /// Claims the kept value of an interrupted loop for a parameter that was just made.
  static void claim_kept(TensorNode& node);

  /// Whether the labels, or the data they are computed from, contain kIgnoreIndex.
  bool has_ignored(ValueId labels) const;
  Regions& regions() { return regions_; }
  /// An input that the loss depends on and that was computed from one of `wrt` before something was
  /// read; null if there is none.
  const TensorNode* cut_from(std::span<const NodePtr> wrt, ValueId loss) const;
  /// u32 words that no other call returns, from the thread's seed, the runtime's step and the
  /// number of earlier calls in the step.
  ValueId random_bits(const Shape& shape, const std::source_location& loc);

  /// Runs the recorded ops if any tensor needs them: the outputs are the assigned parameters and
  /// the tensors that are alive. The next op begins a new program. `whole` (may be null) comes out
  /// replicated, as tensors of one element do.
  void run(const RunSite& site, const TensorNode* whole = nullptr);
  /// As run(), but of the tensors alive only these are outputs; returns what ran, for run_again().
  TracedProgram run_function(const RunSite& site, std::span<const Tensor> results);
  /// Runs the program with its inputs' present values and updates its outputs.
  void run_again(const TracedProgram& traced, const RunSite& site);
  /// Drops the recorded ops: parameters have the values of the last run.
  void discard();
  std::uint64_t run_count() const { return run_count_; }
  std::uint64_t work() const { return work_; }  ///< see recorded_work()

  /// Ends a step, and runs the closures of earlier steps.
  void end_step();
  void add_closure(std::function<void()> closure) { closures_.push_back(std::move(closure)); }
  /// Runs the closures of ended steps, unless one of them makes this call.
  void catch_up();
  /// Runs the remaining closures.
  void finish();

 private:
  static Trace* find_current();  ///< null outside a loop
  void restore(TensorNode& node);
  ValueId add_input(const NodePtr& node, const std::source_location& loc);
  void add_parameter_outputs();
  void add_output(const NodePtr& node, bool whole);
  void execute(const Program& program, const Fingerprint& key, std::span<const Binding> bindings,
               std::span<const NodePtr> inputs, std::span<const NodePtr> outputs,
               const RunSite& site);
  std::vector<Binding> bindings() const;
  HostData random_words();
  void run_closures(std::size_t count);
  bool carries_gradient(OpId op) const;
  void note_cut(const std::source_location& loc) const;
  void reset();

  Runtime* runtime_;
  std::uint64_t serial_;  // of the program that is being recorded
  const std::uint64_t id_ = serial_;
  Program program_;
  Builder builder_;
  LocTable locs_;
  std::optional<TraceSite> site_;
  std::optional<TracedFunction> function_;
  std::optional<DType> autocast_;
  bool detects_anomaly_ = false;
  std::vector<NodePtr> inputs_;    // in the program's order
  std::vector<HostData> scalars_;  // by input: value of a runtime scalar, or null
  std::vector<NodePtr> outputs_;   // in the program's order; while it is run
  std::vector<NodePtr> nodes_;     // the recorded tensors, then nodes without users, for reuse
  std::size_t recorded_ = 0;
  std::unordered_set<std::string_view> names_;  // of the parameters among inputs_
  Regions regions_;
  std::uint64_t run_count_ = 0;
  std::uint64_t tensor_count_ = 0;  // recorded since the last run
  std::uint64_t work_ = 0;
  std::deque<std::function<void()>> closures_;
  std::size_t closures_before_ = 0;  // how many of them belong to ended steps
  bool in_closure_ = false;
  NodePtr random_state_;            // an input of this trace; null before it is needed
  std::uint32_t random_calls_ = 0;  // for random bits, in this trace
  std::uint64_t random_step_ = 0;   // the step whose traces made `random_count_` of them before
  std::uint32_t random_count_ = 0;
  int data_count_ = 0, scalar_count_ = 0;
  const int thread_;
  StepWatch watch_;
};

}  // namespace weft
