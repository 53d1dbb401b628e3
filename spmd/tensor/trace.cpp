#include <weft/spmd/tensor/trace.hpp>

#include <atomic>

#include <weft/spmd/error.hpp>
#include <weft/spmd/tensor/random.hpp>

namespace weft {
namespace {

thread_local Trace* current_trace = nullptr;

/// Unique in the process, so that a tensor can't be taken for a value of another thread's trace.
std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

Binding binding(const TensorNode& node) {
  if (const auto* buffer = std::get_if<BufferPtr>(&node.storage)) return *buffer;
  return std::get<HostData>(node.storage);
}

[[noreturn]] void fail_lost(const TensorNode& node, const std::source_location& loc) {
  fail(Errc::invalid_argument,
       "{} was never computed: it was recorded on another thread, or in a loop that ended before a "
       "sync (at {})",
       node.label(), file_line(loc));
}

/// The value of a tensor that lies in shards, whole on every chip: a program of its own, so that
/// what is being recorded isn't disturbed.
BufferPtr gather(Runtime& runtime, const TensorNode& node, const std::source_location& loc) {
  Program program;
  const ValueId shards =
      program.add_input(node.type, InputKind::data, "data.0", node.input_sharding());
  Builder builder(program);
  builder.set_loc(file_line(loc));
  program.add_output(builder.sharding_constraint(shards, Sharding::closed()), "out.0",
                     Sharding::closed());
  const Binding input = binding(node);
  return runtime.run(program, {&input, 1}).outputs.at(0);
}

}  // namespace

RuntimeScope::RuntimeScope(Runtime& runtime)
    : trace_(std::make_unique<Trace>(runtime)), outer_(current_trace) {
  current_trace = trace_.get();
}

RuntimeScope::~RuntimeScope() { current_trace = outer_; }

Trace& Trace::current(const std::source_location& loc) {
  if (current_trace == nullptr) {
    fail(Errc::not_found,
         "no runtime on this thread records tensor ops; call them from a training loop, which "
         "Trainer::fit runs, or inside a weft::RuntimeScope (at {})",
         file_line(loc));
  }
  return *current_trace;
}

Trace::Trace(Runtime& runtime) : runtime_(&runtime), serial_(next_serial()), builder_(program_) {}

void Trace::enter(const Site& site) {
  site_ = site;
  builder_.set_loc(file_line(site.loc));
}

ValueId Trace::value_of(const NodePtr& node, const std::source_location& loc) {
  if (node->trace == serial_) return node->value;
  if (std::holds_alternative<std::monostate>(node->storage)) fail_lost(*node, loc);
  return add_input(node, loc);
}

ValueId Trace::add_input(const NodePtr& node, const std::source_location& loc) {
  std::string name = node->name;
  switch (node->kind) {
    case InputKind::data: name = fmt::format("data.{}", data_count_++); break;
    case InputKind::runtime_scalar: name = fmt::format("scalar.{}", scalar_count_++); break;
    case InputKind::param:
    case InputKind::opt_state:
      if (!names_.insert(node->name).second) {
        fail(Errc::invalid_argument,
             "two parameters are named '{}'; name the root modules of two models apart, as in "
             "Module(\"teacher\") (at {})",
             name, file_line(loc));
      }
  }
  node->trace = serial_;
  node->input = static_cast<std::uint32_t>(inputs_.size());
  node->value = program_.add_input(node->type, node->kind, std::move(name), node->input_sharding());
  inputs_.push_back(node);
  return node->value;
}

ValueId Trace::random_bits(const Shape& shape, const std::source_location& loc) {
  const std::uint64_t step = runtime_->step();
  const std::uint64_t seed = initial_seed();
  const PhiloxBlock words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                          0, static_cast<std::uint32_t>(step)};
  const TensorType type{DType::u32, {4}};
  // Only the words of the input differ from step to step: none is a new program.
  if (random_state_ == nullptr || words != random_words_) {
    random_state_ = host_node(type, InputKind::runtime_scalar, "", std::as_bytes(std::span(words)));
    random_words_ = words;
  }
  if (step != random_step_) random_count_ = 0;
  random_step_ = step;
  const PhiloxBlock number{0, 0, random_count_++, 0};
  const ValueId state = builder_.binary(OpKind::add, value_of(random_state_, loc),
                                        builder_.constant(std::as_bytes(std::span(number)), type));
  return builder_.rng_bit_generator(state, shape);
}

Tensor Trace::record(ValueId value) {
  auto node = std::make_shared<TensorNode>();
  node->type = program_.type(value);
  node->trace = serial_;
  node->value = value;
  recorded_.push_back(node);
  return Tensor(std::move(node));
}

void Trace::assign(TensorNode& node, ValueId value) {
  WEFT_CHECK(node.trace == serial_, node.trace, serial_);
  node.value = value;
}

bool Trace::is_pending(const TensorNode& node) const {
  if (node.trace != serial_) return false;
  return node.input == kNoId || node.value != program_.inputs[node.input].value;
}

void Trace::mark(TensorNode& node, const Sharding& sharding) {
  node.marked = sharding;
  if (node.trace == serial_) program_.inputs[node.input].sharding = sharding;
}

void Trace::run(const TensorNode* whole) {
  const std::vector<NodePtr> outputs = add_outputs(whole);
  if (!outputs.empty()) {
    std::vector<Binding> bindings;
    bindings.reserve(inputs_.size());
    for (const NodePtr& node : inputs_) bindings.push_back(binding(*node));
    store(outputs, runtime_->run(program_, bindings));
  }
  reset();
}

std::vector<NodePtr> Trace::add_outputs(const TensorNode* whole) {
  program_.outputs.clear();  // those of a run that threw
  std::vector<NodePtr> outputs;
  for (const NodePtr& node : inputs_) {
    if (!is_pending(*node)) continue;
    program_.add_output(node->value, node->name, program_.inputs[node->input].sharding,
                        static_cast<std::int32_t>(node->input));
    outputs.push_back(node);
  }
  int count = 0;
  for (const auto& handle : recorded_) {
    NodePtr node = handle.lock();
    if (node == nullptr) continue;
    const bool closed = node.get() == whole || node->type.num_elements() == 1;
    program_.add_output(node->value, fmt::format("out.{}", count++),
                        closed ? Sharding::closed() : Sharding::open(node->type.shape.size()));
    outputs.push_back(std::move(node));
  }
  return outputs;
}

void Trace::store(std::span<const NodePtr> outputs, const Runtime::RunResult& result) {
  WEFT_CHECK(result.input_buffers.size() == inputs_.size(), result.input_buffers.size(),
             inputs_.size());
  WEFT_CHECK(result.outputs.size() == outputs.size(), result.outputs.size(), outputs.size());
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->storage = result.input_buffers[i];
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i]->storage = result.outputs[i];
}

void Trace::reset() {
  serial_ = next_serial();
  program_ = Program{};
  builder_ = Builder(program_);
  inputs_.clear();
  recorded_.clear();
  random_state_.reset();
  stopped_.clear();
  names_.clear();
  data_count_ = 0;
  scalar_count_ = 0;
}

std::vector<std::byte> Trace::read(const NodePtr& node, const std::source_location& loc) {
  if (current_trace != nullptr && current_trace->is_pending(*node)) current_trace->run(node.get());
  if (const auto* data = std::get_if<HostData>(&node->storage)) return **data;
  Runtime& runtime = current(loc).runtime();
  if (!std::holds_alternative<BufferPtr>(node->storage)) fail_lost(*node, loc);
  BufferPtr buffer = std::get<BufferPtr>(node->storage);
  if (!buffer->sharding().is_replicated()) buffer = gather(runtime, *node, loc);
  return runtime.read(*buffer);
}

}  // namespace weft
