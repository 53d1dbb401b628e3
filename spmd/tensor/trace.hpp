#pragma once
/// Trace: the program that a thread's tensor calls are recording. Internal to this folder.

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <weft/tensor/tensor.hpp>

#include "spmd/ops/builder.hpp"
#include "spmd/program/philox.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "spmd/tensor/loc_table.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/recording.hpp"
#include "spmd/tensor/regions.hpp"
#include "spmd/tensor/runtime.hpp"
#include "spmd/tensor/step_watch.hpp"

namespace weft {

/// Each RuntimeScope has one Trace, which only the scope's thread uses.
class Trace {
 public:
  Trace(Runtime& runtime, bool is_eager);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Returns the calling thread's trace. Outside of a RuntimeScope it throws as fail_off_thread().
  static Trace& current(const std::source_location& loc);
  static Trace* find_current();  ///< null outside of a loop or session
  static void set_current(Trace* trace);
  /// Returns the tensor's row-major elements. Needs a trace only if recorded ops must run first.
  static std::vector<std::byte> read(const NodePtr& node, const std::source_location& loc);

  Runtime& runtime() const { return *runtime_; }
  Builder& builder() { return builder_; }
  const std::optional<TraceSite>& site() const { return site_; }
  void enter(const TraceSite& site);
  /// In an eager job, runs the ops of the call and throws their errors.
  void leave();
  /// The function of weft::compile that is being traced, if any.
  std::optional<TracedFunction>& function() { return function_; }
  TraceModes& modes() { return modes_; }
  std::uint64_t id() const { return id_; }  ///< unique among all traces of the process

  /// Returns the node's value in this trace. Makes the node an input if no recorded op computes it.
  /// Throws invalid_argument for a tensor whose trace ended before the tensor was computed.
  ValueId value_of(const NodePtr& node, const std::source_location& loc);
  /// Returns a tensor for the value. If the tensor is alive at the next run, it is an output.
  Tensor record(ValueId value);
  /// Assigns the value to a node, which must have a value in this trace.
  void assign(const NodePtr& node, ValueId value);
  /// Returns whether ops or inputs were recorded since the last run.
  bool has_recorded() const { return program_.num_ops() > 0 || !inputs_.empty(); }
  /// Returns whether ops recorded since the last run use or compute the node.
  bool is_recorded(const TensorNode& node) const { return node.trace == serial_; }
  /// Returns whether the node's present value was recorded or assigned since the last run.
  bool is_pending(const TensorNode& node) const;
  /// Returns the state's value at the last sync. Throws invalid_argument if recorded ops change it.
  static Binding synced_value(const NodePtr& of, const std::source_location& loc);
  /// Requests this sharding for a node on the host, also if the node is already a program input.
  void mark(TensorNode& node, const Sharding& sharding);
  /// Claims the kept value of an interrupted loop for a parameter that was just made.
  static void claim_kept(TensorNode& node);

  /// Returns whether the labels, or data they are computed from, contain kIgnoreIndex.
  bool has_ignored(ValueId labels) const;
  Regions& regions() { return regions_; }
  /// Returns whether a gradient can flow from the node: whether this step's ops compute the node.
  bool is_differentiable(const TensorNode& node) const;
  /// Records again the ops that ran for reads in this step, if a gradient of the loss flows through
  /// them to one of `wrt`. Tensors keep their values. Throws invalid_argument if this fails.
  void record_again(const NodePtr& loss, std::span<const NodePtr> wrt);
  /// Returns u32 words that depend on the thread's seed, the step and its number of earlier calls.
  ValueId random_bits(const Shape& shape, const std::source_location& loc);

  /// Runs the recorded ops if any tensor needs them, and begins a new program. Outputs are assigned
  /// parameters and live tensors. `whole` (may be null) and tensors of one element are replicated.
  void run(const RunSite& site, const TensorNode* whole = nullptr);
  /// Does what run() does, but only `results` are outputs. Returns the program for run_again().
  TracedProgram run_function(const RunSite& site, std::span<const Tensor> results);
  /// Runs the program with its inputs' present values and updates its outputs.
  void run_again(const TracedProgram& traced, const RunSite& site);
  void discard();  ///< drops the recorded ops; parameters get back the values of the last run
  void warn_of_unrun() const;  ///< warns of recorded ops, at the end of the loop
  std::uint64_t run_count() const { return run_count_; }
  std::uint64_t work() const { return work_; }  ///< see recorded_work()
  void end_step();                              ///< also runs the closures of earlier steps
  StepClosures& closures() { return closures_; }

 private:
  void restore(TensorNode& node);
  ValueId add_input(const NodePtr& node, const std::source_location& loc);
  void add_parameter_outputs();
  void add_output(const NodePtr& node, bool whole);
  void execute(const Program& program, const Fingerprint& key, std::span<const Binding> bindings,
               std::span<const NodePtr> inputs, std::span<const NodePtr> outputs,
               const RunSite& site);
  std::vector<Binding> bindings() const;
  HostData random_words();
  std::shared_ptr<Recording> keep(const std::source_location& read);
  void keep_made(const std::shared_ptr<Recording>& kept);
  std::uint64_t first_crossed(const NodePtr& loss, std::span<const NodePtr> wrt) const;
  void take_back(std::uint64_t first);
  void append(Recording& kept);
  void append_present(const Recording& present, std::uint64_t before);
  ValueId input_again(const Recording::Input& input);
  [[noreturn]] void refuse(const std::string& why) const;
  void begin();
  void reset();

  Runtime* runtime_;
  std::uint64_t serial_;  // identifies the program that is being recorded
  const std::uint64_t id_ = serial_;
  Program program_;
  Builder builder_;
  LocTable locs_;
  std::optional<TraceSite> site_;
  std::optional<TracedFunction> function_;
  TraceModes modes_;
  std::vector<NodePtr> inputs_;    // inputs in the program's order
  std::vector<HostData> scalars_;  // indexed by input: value of a runtime scalar, or null
  std::vector<NodePtr> outputs_;   // outputs in the program's order; used during a run
  std::vector<NodePtr> nodes_;     // the recorded tensors, then unused nodes for reuse
  std::size_t recorded_ = 0;
  std::unordered_set<std::string_view> names_;  // names of the parameters among inputs_
  Regions regions_;
  std::uint64_t run_count_ = 0, work_ = 0, recording_count_ = 0;
  std::uint64_t tensor_count_ = 0;  // tensors recorded since the last run
  StepClosures closures_;
  Recordings recordings_;
  ChangingNumbers numbers_;
  std::vector<std::weak_ptr<TensorNode>> taken_back_;  // tensors of this trace with stored values
  NodePtr random_state_;            // an input of this trace; null before it is needed
  std::uint32_t random_calls_ = 0;  // random calls in this program
  std::uint32_t random_count_ = 0;  // random calls in the step before this program
  std::uint64_t random_step_ = 0;   // the step to which `random_count_` belongs
  int data_count_ = 0, scalar_count_ = 0;
  const int thread_;
  StepWatch watch_;
};

}  // namespace weft
