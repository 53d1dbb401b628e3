#include "bench/planned.hpp"

#include <chrono>
#include <utility>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/builder.hpp"

namespace weft::bench {
namespace {

std::uint64_t bytes_of(const TensorType& type) {
  return static_cast<std::uint64_t>(type.bytes() + 63) / 64 * 64;
}

/// Returns the size of an arena that holds all inputs, outputs and temporaries, and the beginning
/// of the memory segment.
std::size_t capacity_for(const Program& program) {
  constexpr std::size_t kSmall = std::size_t{1} << 29;
  std::uint64_t bytes = 0;
  for (ValueId value = 0; value < program.num_values(); ++value) {
    if (program.defining_op(value) == kNoId) bytes += bytes_of(program.type(value));
  }
  for (const ProgramOutput& output : program.outputs) bytes += bytes_of(program.type(output.value));
  return (2 * bytes / kSmall + 2) * kSmall;
}

}  // namespace

Planned::Planned(const Program& program, bool donates)
    : memory_(JobMemory::anonymous(
          {.job = std::string(32, '0'), .num_chips = 1, .arena_capacity = capacity_for(program)})),
      executor_(memory_, mesh_, 0, BoardWriter(),
                WaitPolicy::for_threads(1, std::chrono::seconds(60))) {
  const Plan plan = compile(program, mesh_, kCpuTarget);
  plan_ = executor_.load(plan);
  const std::uint64_t begin = memory_.buffers_offset();
  std::uint64_t end = begin;
  const auto take = [&](const TensorType& type) {
    return std::exchange(end, end + bytes_of(type));
  };
  for (const TensorType& type : plan.input_types) buffers_.inputs.push_back(take(type));
  for (std::size_t i = 0; i < plan.output_types.size(); ++i) {
    const std::int32_t updates = plan.program.outputs[i].updates;
    buffers_.outputs.push_back(donates && plan.donated[i]
                                   ? buffers_.inputs[static_cast<std::size_t>(updates)]
                                   : take(plan.output_types[i]));
  }
  memory_.reserve(0, begin, end - begin);
}

Program adamw(const Shape& shape) {
  Program program;
  Builder build(program);
  const auto input = [&](const Shape& of, InputKind kind = InputKind::data) {
    return program.add_input({DType::f32, of}, kind, "x", {});
  };
  const auto spread = [&](ValueId x) { return build.broadcast_in_dim(x, shape, {}); };
  const auto number = [&](double x) { return build.constant(x, {DType::f32, shape}); };
  const auto op = [&](OpKind kind, ValueId a, ValueId b) { return build.binary(kind, a, b); };
  const auto average = [&](ValueId old, ValueId next, double beta) {
    return op(OpKind::add, op(OpKind::multiply, old, number(beta)),
              op(OpKind::multiply, next, number(1 - beta)));
  };
  const ValueId p = input(shape, InputKind::param);
  const ValueId g = input(shape);
  const ValueId m = average(input(shape, InputKind::opt_state), g, 0.9);
  const ValueId v = average(input(shape, InputKind::opt_state), op(OpKind::multiply, g, g), 0.999);
  const ValueId kept = op(OpKind::multiply, p, spread(input({})));
  const ValueId root = op(OpKind::divide, build.unary(OpKind::sqrt, v), spread(input({})));
  const ValueId step = op(OpKind::divide, m, op(OpKind::add, root, number(1e-8)));
  const ValueId move = op(OpKind::multiply, spread(input({})), step);
  program.add_output(op(OpKind::subtract, kept, move), "next", {}, 0);
  program.add_output(m, "next", {}, 2);
  program.add_output(v, "next", {}, 3);
  return program;
}

}  // namespace weft::bench
