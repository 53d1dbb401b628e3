#include "spmd/tensor/trace.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include <weft/tensor/error.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/tensor/loop_threads.hpp"

namespace weft {
namespace {

thread_local Trace* current_trace = nullptr;

/// Returns a number that is unique in the process, so that a tensor of another thread's trace isn't
/// mistaken for a value of this one.
std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

void require_no_recorded_use(const Tensor& state, const std::source_location& loc) {
  const TensorNode& node = *node_of(state, loc);
  if (!Trace::current(loc).is_recorded(node)) return;
  fail(Errc::invalid_argument,
       "{} is used by ops that were recorded since the last sync: load it before these ops, or "
       "after their sync() (at {})",
       node.label(), file_line(loc));
}

void set_source(const Tensor& state, SourcePtr source, const std::optional<Sharding>& laid_out,
                const std::source_location& loc) {
  require_no_recorded_use(state, loc);
  TensorNode& node = *node_of(state, loc);
  current_trace->runtime().changes_state({.name = node.name, .loc = loc});
  if (std::holds_alternative<BufferPtr>(node.storage)) {
    node.marked = node.input_sharding();
  } else if (!node.marked) {
    node.marked = laid_out;
  }
  node.storage = std::move(source);
  node.origin.reset();
}

namespace {

/// Sets the state's elements now, on the chips if the thread has chips.
void store_elements(const Tensor& state, std::span<const std::byte> elements,
                    const std::source_location& loc) {
  TensorNode& node = *node_of(state, loc);
  const auto bytes =
      std::make_shared<const std::vector<std::byte>>(elements.begin(), elements.end());
  WEFT_CHECK(static_cast<std::int64_t>(bytes->size()) == node.type.bytes(), bytes->size());
  if (current_trace == nullptr) {
    node.storage = bytes;
    return;
  }
  require_no_recorded_use(state, loc);
  const auto* placed = std::get_if<BufferPtr>(&node.storage);
  if (placed == nullptr) placed = std::get_if<BufferPtr>(&node.kept.value);
  const BufferPtr before = placed == nullptr ? nullptr : *placed;
  const ProgramInput input{.kind = node.kind, .name = node.name, .sharding = Sharding::closed()};
  const BufferPtr now = current_trace->runtime().put_state(input, node.type, *bytes, before, loc);
  node.storage = bytes;
  if (now != nullptr) node.storage = now;
  node.kept = {};
  node.origin.reset();
  node.was_assigned = false;
}

}  // namespace

void set_elements(const Tensor& state, std::span<const std::byte> elements,
                  const std::source_location& loc) {
  const StateChange change{.name = node_of(state, loc)->name, .loc = loc, .is_immediate = true};
  if (current_trace != nullptr) current_trace->runtime().changes_state(change);
  store_elements(state, elements, loc);
}

void put_in_place(const Tensor& state, const std::source_location& loc) {
  const TensorNode& node = *node_of(state, loc);
  if (current_trace == nullptr || current_trace->is_recorded(node) || !node.may_be_kept()) return;
  if (std::holds_alternative<BufferPtr>(node.kept.value)) return;
  store_elements(state, state.to_bytes(loc), loc);
}

bool is_kept(const std::string& name) {
  return current_trace != nullptr && current_trace->runtime().has_restored(name);
}

RuntimeScope::RuntimeScope(Runtime& runtime, bool is_eager)
    : trace_(std::make_unique<Trace>(runtime, is_eager)),
      thread_(this_thread_number()),
      outer_(current_trace) {
  current_trace = trace_.get();
  LoopThreads::add(thread_);
}

RuntimeScope::~RuntimeScope() {
  LoopThreads::remove(thread_);
  current_trace = outer_;
}

void RuntimeScope::finish() { trace_->closures().finish(); }

std::uint64_t recorded_work() { return current_trace == nullptr ? 0 : current_trace->work(); }

void run_step_closures() {
  if (current_trace != nullptr) current_trace->closures().catch_up();
}

Trace* Trace::find_current() { return current_trace; }

void Trace::set_current(Trace* trace) { current_trace = trace; }

Trace& Trace::current(const std::source_location& loc) {
  if (current_trace != nullptr) return *current_trace;
  fail_off_thread(loc);
}

Trace::Trace(Runtime& runtime, bool is_eager)
    : runtime_(&runtime),
      serial_(next_serial()),
      builder_(program_, runtime.mesh()),
      modes_{.is_eager = is_eager},
      thread_(this_thread_number()),
      watch_(runtime) {}

Trace::~Trace() { recordings_.forget(); }

void Trace::enter(const TraceSite& site) {
  site_ = site;
  builder_.set_loc(locs_.intern(program_, site.loc));
  builder_.set_caller(site.function);
}

void Trace::leave() {
  const std::source_location loc = site_->loc;
  site_.reset();
  builder_.set_caller("");
  if (!modes_.is_eager || std::uncaught_exceptions() > 0) return;
  // The ops of a loop's or shard_map's function run only when the function is completely recorded.
  if (!regions_.loops.open().empty() || !regions_.shard_maps.open().empty()) return;
  const std::uint64_t runs = run_count_;
  run({.function = {}, .loc = loc});
  if (run_count_ > runs) runtime_->wait();
}

ValueId Trace::value_of(const NodePtr& node, const std::source_location& loc) {
  if (node->trace == serial_) {
    regions_.loops.expect_outside(program_, node->value, loc);
    regions_.shard_maps.expect_inside(builder_, node->value, loc);
    return node->value;
  }
  if (std::holds_alternative<std::monostate>(node->storage)) fail_lost(*node, loc);
  return add_input(node, loc);
}

/// A training loop that continues an interrupted loop creates its parameters again, and these get
/// their old values by name. A parameter claims its value when it is made, because only one tensor
/// gets the value, and a later tensor may have the same name. The value replaces `storage` at the
/// first use, because the loop may mark the parameter before that.
void Trace::claim_kept(TensorNode& node) {
  if (current_trace == nullptr) return;
  node.kept = current_trace->runtime_->take_restored(node.name, node.type);
}

void Trace::restore(TensorNode& node) {
  if (!node.may_be_kept()) return;
  if (!node.kept.has_value()) node.kept = runtime_->take_restored(node.name, node.type);
  const Restored kept = std::exchange(node.kept, {});
  if (const auto* buffer = std::get_if<BufferPtr>(&kept.value)) node.storage = *buffer;
  if (const auto* source = std::get_if<SourcePtr>(&kept.value)) {
    node.storage = *source;
    if (!node.marked) node.marked = kept.laid_out;
  }
}

ValueId Trace::add_input(const NodePtr& node, const std::source_location& loc) {
  restore(*node);
  std::string name = node->name;
  switch (node->kind) {
    case InputKind::data: name = fmt::format("data.{}", data_count_++); break;
    case InputKind::runtime_scalar: name = fmt::format("scalar.{}", scalar_count_++); break;
    case InputKind::param:
    case InputKind::opt_state:
    case InputKind::buffer:
      if (!names_.insert(node->name).second) {
        fail(Errc::invalid_argument,
             "two parameters are named '{}'; give the root modules of the two models different "
             "names, for example Module(\"teacher\") (at {})",
             name, file_line(loc));
      }
  }
  node->trace = serial_;
  node->input = static_cast<std::uint32_t>(inputs_.size());
  const LocId made = node->loc.line() == 0 ? 0 : locs_.intern(program_, node->loc);
  node->value = node->stored =
      program_.add_input(node->type, node->kind, std::move(name), node->input_sharding(), made);
  inputs_.push_back(node);
  scalars_.push_back(node->kind == InputKind::runtime_scalar ? std::get<HostData>(node->storage)
                                                             : nullptr);
  return node->value;
}

Tensor Trace::record(ValueId value) {
  ++tensor_count_;
  ++work_;
  if (recorded_ == nodes_.size()) nodes_.push_back(std::make_shared<TensorNode>());
  const NodePtr& node = nodes_[recorded_++];
  node->type = program_.type(value);
  node->storage = std::monostate{};
  node->origin.reset();
  node->has_ignored = false;
  node->trace = serial_;
  node->value = value;
  node->stored = kNoId;
  node->thread = thread_;
  node->gradient.reset();
  if (site_) node->recorded = site_->loc;
  watch_.recorded(program_.num_ops(), node->recorded);
  return Tensor(node);
}

void Trace::assign(const NodePtr& node, ValueId value) {
  WEFT_CHECK(node->trace == serial_, node->trace, serial_);
  regions_.expect_assignable(program_, *node, *site_);
  if (node->is_state()) runtime_->changes_state({.name = node->name, .loc = site_->loc});
  // State recorded by take_back() isn't an input yet, but must be one, because its next value
  // replaces an input.
  if (node->is_state() && node->input == kNoId) add_input(node, site_->loc);
  ++work_;
  node->value = value;
  node->recorded = site_->loc;
  node->was_assigned = site_->function == "assign";
}

bool Trace::is_pending(const TensorNode& node) const {
  return node.trace == serial_ && node.value != node.stored;
}

void Trace::mark(TensorNode& node, const Sharding& sharding) {
  node.marked = sharding;
  if (node.trace == serial_) program_.inputs[node.input].sharding = node.input_sharding();
}

void Trace::run(const RunSite& site, const TensorNode* whole) {
  regions_.expect_readable(site);
  if (function_ && function_->full_graph) {
    fail(Errc::invalid_argument,
         "{} at {} is in the middle of the function compiled at {} with full_graph: return the "
         "tensor, and read it after the call; the call ends the step",
         site.function, file_line(site.loc), file_line(function_->loc));
  }
  if (site.ends_step) recordings_.forget();
  add_parameter_outputs();
  for (std::size_t i = 0; i < recorded_; ++i) {
    if (nodes_[i].use_count() == 1) continue;
    const ValueId value = nodes_[i]->value;
    if (regions_.loops.is_inside(program_, value) || builder_.manual(value).manual != 0) continue;
    add_output(nodes_[i], nodes_[i].get() == whole);
  }
  for (const NodePtr& node : outputs_) node->has_ignored = has_ignored(node->value);
  if (!outputs_.empty()) {
    const bool has_gradients = !site.ends_step && !runtime_->is_session();
    const std::shared_ptr<Recording> kept = has_gradients ? keep(site.loc) : nullptr;
    execute(program_, fingerprint(program_), bindings(), inputs_, outputs_, site);
    if (kept != nullptr) keep_made(kept);
  }
  reset();
}

TracedProgram Trace::run_function(const RunSite& site, std::span<const Tensor> results) {
  if (site.ends_step) recordings_.forget();
  add_parameter_outputs();
  for (const Tensor& result : results) {
    const NodePtr& node = result.node();
    if (is_pending(*node) && node->input == kNoId) add_output(node, false);
  }
  TracedProgram traced{.program = program_,
                       .key = fingerprint(program_),
                       .inputs = inputs_,
                       .outputs = outputs_,
                       .random_state = random_state_,
                       .random_calls = random_calls_};
  if (!outputs_.empty()) execute(program_, traced.key, bindings(), inputs_, outputs_, site);
  reset();
  return traced;
}

void Trace::run_again(const TracedProgram& traced, const RunSite& site) {
  if (traced.outputs.empty()) return;
  if (site.ends_step) recordings_.forget();
  if (traced.random_state != nullptr) traced.random_state->storage = random_words();
  random_count_ += traced.random_calls;
  std::vector<Binding> bindings;
  bindings.reserve(traced.inputs.size());
  for (const NodePtr& node : traced.inputs) bindings.push_back(binding_of(*node));
  execute(traced.program, traced.key, bindings, traced.inputs, traced.outputs, site);
}

std::vector<Binding> Trace::bindings() const {
  std::vector<Binding> bindings;
  bindings.reserve(inputs_.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    bindings.push_back(scalars_[i] != nullptr ? Binding(scalars_[i]) : binding_of(*inputs_[i]));
  }
  return bindings;
}

void Trace::add_parameter_outputs() {
  program_.outputs.clear();  // there are outputs here if the last run threw
  outputs_.clear();
  for (const NodePtr& node : inputs_) {
    if (!is_pending(*node)) continue;
    program_.add_output(node->value, node->name, program_.inputs[node->input].sharding,
                        static_cast<std::int32_t>(node->input));
    outputs_.push_back(node);
  }
}

void Trace::add_output(const NodePtr& node, bool whole) {
  if (std::ranges::find(outputs_, node) != outputs_.end()) return;
  const bool closed = whole || node->type.num_elements() == 1;
  if (!closed) watch_.output(program_, node->value);
  const auto number = std::ranges::count(program_.outputs, -1, &ProgramOutput::updates);
  program_.add_output(node->value, fmt::format("out.{}", number),
                      closed ? Sharding::closed() : Sharding::open(node->type.shape.size()));
  outputs_.push_back(node);
}

void Trace::execute(const Program& program, const Fingerprint& key,
                    std::span<const Binding> bindings, std::span<const NodePtr> inputs,
                    std::span<const NodePtr> outputs, const RunSite& site) {
  RunSite checked = site;
  checked.detects_anomaly = modes_.detects_anomaly;
  runtime_->metrics().count("CreateXlaTensor", std::exchange(tensor_count_, 0));
  Runtime::RunResult result = numbers_.run(*runtime_, program, key, bindings, checked);
  ++run_count_;
  ++work_;
  if (!modes_.is_eager && !runtime_->is_session()) watch_.ran(site);
  WEFT_CHECK(result.input_buffers.size() == inputs.size(), result.input_buffers.size(),
             inputs.size());
  WEFT_CHECK(result.outputs.size() == outputs.size(), result.outputs.size(), outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    // A scalar stays on the host, which sets its next value.
    if (inputs[i]->kind == InputKind::runtime_scalar) continue;
    inputs[i]->storage = std::move(result.input_buffers[i]);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i]->storage = std::move(result.outputs[i]);
    outputs[i]->origin.reset();
  }
}

void Trace::end_step() {
  runtime_->metrics().count("MarkStep");
  regions_.custom_gradient_count = 0;
  runtime_->end_step();
  watch_.step_ended();
  recordings_.forget();
  closures_.step_ended();
}

void Trace::discard() {
  random_calls_ = 0;
  reset();
}

void Trace::begin() {
  serial_ = next_serial();
  program_.clear();
  builder_ = Builder(program_, runtime_->mesh());
  locs_.clear();
  inputs_.clear();
  scalars_.clear();
  outputs_.clear();
  regions_.clear();
  taken_back_.clear();
  names_.clear();
  data_count_ = 0;
  scalar_count_ = 0;
}

void Trace::reset() {
  begin();
  // Releases tensors that have a handle; they live as long as the handle. Other nodes are kept for
  // reuse.
  std::erase_if(nodes_, [](const NodePtr& node) { return node.use_count() > 1; });
  recorded_ = 0;
  random_state_.reset();
  random_count_ += std::exchange(random_calls_, 0);
}

}  // namespace weft
