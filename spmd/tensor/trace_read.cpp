// Implements the part of Trace that reads the value of a tensor.

#include <algorithm>
#include <memory>

#include <weft/tensor/error.hpp>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/tensor/loop_threads.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

/// Gathers a sharded tensor, so that every chip has all of it. Runs a separate program for this, so
/// that the recorded program remains unchanged.
BufferPtr gather(Runtime& runtime, const TensorNode& node, const std::source_location& loc) {
  runtime.metrics().count("ReshardData");
  Program program;
  const ValueId shards =
      program.add_input(node.type, InputKind::data, "data.0", node.input_sharding());
  Builder builder(program);
  builder.set_loc(file_line(loc));
  program.add_output(builder.sharding_constraint(shards, Sharding::closed()), "out.0",
                     Sharding::closed());
  const Binding input = binding_of(node);
  const Fingerprint key = fingerprint(program);
  return runtime.run(program, key, {&input, 1}, {{}, loc}).outputs.at(0);
}

std::vector<std::byte> read_whole(const TensorSource& source, const TensorType& type) {
  std::vector<std::byte> elements(static_cast<std::size_t>(type.bytes()));
  const TensorSource::Target target{whole_box(type.shape), elements.data()};
  source.read({&target, 1});
  return elements;
}

}  // namespace

Binding Trace::synced_value(const NodePtr& of, const std::source_location& loc) {
  Trace& trace = current(loc);
  NodePtr from = of;
  if (trace.is_pending(*of)) {
    // The pending value may be that of another tensor, which is an input of the program, for
    // example if the two tensors were swapped.
    const auto& inputs = trace.program_.inputs;
    const auto input = std::ranges::find(inputs, of->value, &ProgramInput::value);
    from = input == inputs.end() || of->input == kNoId
               ? nullptr
               : trace.inputs_[static_cast<std::size_t>(input - inputs.begin())];
  }
  if (from == nullptr) {
    fail(Errc::invalid_argument,
         "{} was assigned since the last sync: save it right after the sync() or the compiled "
         "function that ends the step (at {})",
         of->label(), file_line(loc));
  }
  if (std::holds_alternative<std::monostate>(from->storage)) fail_lost(*from, loc);
  TensorNode node = *from;
  if (node.may_be_kept()) {
    if (!from->kept.has_value()) claim_kept(*from);
    node.kept = from->kept;
    trace.restore(node);
  }
  return binding_of(node);
}

std::vector<std::byte> Trace::read(const NodePtr& of, const std::source_location& loc) {
  NodePtr node = of;
  Trace* const trace = find_current();
  if (trace != nullptr && trace->is_pending(*node)) {
    trace->runtime().metrics().forced_read(file_line(loc));
    trace->run({"read", loc}, node.get());
  }
  if (trace != nullptr && node->may_be_kept()) {
    // A kept value replaces `storage` when a program first uses the tensor, because the loop may
    // mark the tensor before that.
    if (!of->kept.has_value()) claim_kept(*of);
    node = std::make_shared<TensorNode>(*of);
    trace->restore(*node);
  }
  if (const auto* data = std::get_if<HostData>(&node->storage)) return **data;
  const auto* source = std::get_if<SourcePtr>(&node->storage);
  if (source != nullptr && !node->is_local()) return read_whole(**source, node->type);
  Runtime& runtime = current(loc).runtime();
  if (std::holds_alternative<std::monostate>(node->storage)) fail_lost(*node, loc);
  BufferPtr buffer;
  if (const auto* placed = std::get_if<BufferPtr>(&node->storage)) buffer = *placed;
  if (buffer == nullptr || !buffer->sharding().is_replicated()) {
    buffer = gather(runtime, *node, loc);
  }
  try {
    return runtime.read(*buffer);
  } catch (const Error& error) {
    if (error.code() != Errc::invalid_argument) throw;
    throw Error(error.code(), fmt::format("{} (at {})", error.what(), file_line(loc)));
  }
}

}  // namespace weft
