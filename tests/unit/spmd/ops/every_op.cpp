#include "tests/unit/spmd/ops/every_op.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "spmd/ops/row.hpp"

namespace weft::testing {
namespace {

using Dims = std::vector<std::int64_t>;

/// Adds constants of many elements in every dtype, with values that are hard to write as text.
void add_constants(Program& program, Builder& builder) {
  const auto dense = [&]<typename T>(DType dtype, std::initializer_list<T> values) {
    const std::span<const T> elements(values.begin(), values.size());
    program.add_output(builder.constant(std::as_bytes(elements),
                                        {dtype, {static_cast<std::int64_t>(values.size())}}),
                       "dense", {});
  };
  using Float = std::numeric_limits<float>;
  using Double = std::numeric_limits<double>;
  dense(DType::pred, {std::uint8_t{0}, std::uint8_t{1}});
  dense(DType::i32, {std::numeric_limits<std::int32_t>::min(), -1, 7});
  dense(DType::u32, {std::numeric_limits<std::uint32_t>::max(), 0U});
  dense(DType::i64, {std::numeric_limits<std::int64_t>::max(), std::int64_t{-3}});
  dense(DType::bf16, {std::uint16_t{0x3f80}, std::uint16_t{0xff80}, std::uint16_t{0x7fc1},
                      std::uint16_t{0x0001}});
  dense(DType::f32, {0.1F, -0.0F, Float::infinity(), Float::denorm_min(), Float::max(),
                     std::bit_cast<float>(0xffc00005U)});
  dense(DType::f64,
        {0.1, 1.0 / 3.0, -Double::infinity(), Double::denorm_min(), Double::quiet_NaN()});
  dense(DType::f16, {std::uint16_t{0x3c00}, std::uint16_t{0xfc00}, std::uint16_t{0x7e01},
                     std::uint16_t{0x0001}, std::uint16_t{0x2e66}});
  dense(DType::i8, {std::int8_t{-128}, std::int8_t{127}});
  dense(DType::u8, {std::uint8_t{0}, std::uint8_t{255}});
  builder.constant(std::span<const std::byte>(), {DType::f32, {0}});
  builder.constant(2.5, {DType::bf16, {2, 2}});
}

bool is_elementwise_of(std::size_t operands, OpKind kind) {
  return is_elementwise(kind) && row(kind).operands->least == operands;
}

bool is_of_pred(OpKind kind) { return to_string(kind).starts_with("logical_"); }

void add_elementwise(Builder& builder, ValueId x) {
  const ValueId less = builder.compare(CompareDirection::lt, x, x);
  const ValueId both = builder.binary(OpKind::logical_and, less, less);
  for (const OpKind kind : all_op_kinds()) {
    const ValueId operand = is_of_pred(kind) ? less : x;
    const bool is_made_otherwise = kind == OpKind::convert || kind == OpKind::compare;
    if (is_elementwise_of(1, kind) && !is_made_otherwise) builder.unary(kind, operand);
    if (is_elementwise_of(2, kind) && !is_made_otherwise) builder.binary(kind, operand, operand);
  }
  builder.unary(OpKind::stop_gradient, x);
  builder.custom_gradient(std::array{x, both}, 0);
  builder.select(both, x, builder.convert(builder.convert(x, DType::bf16), DType::f32));
}

/// Adds indexing ops whose atoms shard the indexed table or the random numbers.
void add_chips_indexing(Program& program, LocId loc, ValueId table, ValueId index, ValueId state) {
  const ValueId rows = program.add_op(OpKind::gather, std::array{table, index}, Dims{0x21},
                                      {DType::f32, {3, 6}}, loc);
  program.add_op(OpKind::scatter, std::array{index, rows}, Dims{5, 0x3}, {DType::f32, {5, 6}}, loc);
  program.add_op(OpKind::rng_bit_generator, std::array{state}, Dims{0x3, 0x21},
                 {DType::u32, {2, 3}}, loc);
}

void add_along_rows(Builder& builder, ValueId x) {
  const ValueId order = builder.argsort(x, true);
  builder.scatter_along(order, builder.take_along(x, order), 9);
  builder.linear_recurrence(x, x, true);
}

/// Adds a loop in another loop, whose carries swap their values.
void add_loops(Builder& builder, ValueId x) {
  const ValueId outer = builder.loop(8, false);
  const ValueId a = builder.border(OpKind::carry, {outer, x});
  const ValueId b = builder.border(OpKind::carry, {outer, x});
  const ValueId row = builder.border(OpKind::item, {outer, x});
  const ValueId inner = builder.loop(3, true);
  const ValueId c = builder.border(OpKind::carry, {inner, row});
  const ValueId next = builder.binary(OpKind::add, c, row);
  builder.border(OpKind::stack, {outer, builder.border(OpKind::next, {inner, c, next})});
  builder.border(OpKind::next, {outer, a, b});
  builder.border(OpKind::next, {outer, b, a});
}

/// Adds a cond with a while loop in one of its two branches.
void add_branches(Builder& builder, ValueId x, ValueId predicate) {
  const ValueId cond = builder.cond(predicate);
  const ValueId loop = builder.loop(0, false);
  const ValueId carry = builder.border(OpKind::carry, {loop, x});
  builder.border(OpKind::test, {loop, predicate});
  const ValueId last = builder.border(OpKind::next, {loop, carry, carry});
  builder.border(OpKind::otherwise, {cond});
  builder.border(OpKind::merge, {cond, last, x});
}

void add_windows(Builder& builder) {
  const ValueId image = builder.constant(1, {DType::f32, {2, 3, 8, 9}});
  const ValueId kernel = builder.constant(2, {DType::f32, {4, 3, 3, 2}});
  const WindowDim tall{.stride = 2, .low = 1, .high = 2};
  const WindowDim wide{.low = -1, .base_dilation = 2, .dilation = 3};
  builder.convolution(image, kernel,
                      {.lhs = {0, 1, 2, 3},
                       .rhs = {1, 0, 2, 3},
                       .result = {3, 0, 1, 2},
                       .window = {tall, wide},
                       .reversed = true});
  builder.convolution(image, kernel,
                      {.lhs = {2, 0, 3},
                       .rhs = {3, 0, 2},
                       .result = {1, 2, 3},
                       .window = {WindowDim{}},
                       .group = {1, 1, 0}});
  const WindowDim pair{.size = 2, .stride = 2, .high = 1};
  builder.reduce_window(image, {ReduceKind::add, {{}, {}, {.size = 3, .dilation = 2}, wide}});
  const WindowReduction largest{ReduceKind::max, {{}, {}, pair, pair}};
  builder.select_and_scatter(image, builder.reduce_window(image, largest), largest);
}

void add_composites(Program& program, Builder& builder, ValueId x) {
  const ValueId y = builder.softmax(x);
  builder.softmax_grad(OpKind::softmax_grad, y, x);
  builder.softmax_grad(OpKind::log_softmax_grad, builder.log_softmax(x), x);
  builder.normalize(x, {.center = false, .eps = 0});
  builder.normalize_grad(x, y, {.center = true, .eps = 0.1});
  const ValueId labels = builder.constant(5, {DType::i32, {8}});
  builder.cross_entropy_grad(x, labels, builder.cross_entropy(x, labels));
  const ValueId q = builder.constant(1, {DType::bf16, {2, 3, 5, 4}});
  const ValueId k = builder.constant(1, {DType::bf16, {2, 3, 7, 4}});
  const AttentionForm form{.causal = true, .scale = -1.0 / 3};
  const ValueId mixed = builder.attention(q, k, k, form);
  builder.attention_grad(q, k, k, mixed, q, form);
  std::vector<std::int64_t> attrs = to_attrs(form);
  attrs.push_back(0x21);
  program.add_op(OpKind::attention, std::array{q, k, k}, attrs, program.type(q), builder.loc());
}

void add_collectives(const Mesh& mesh, Builder& builder, ValueId x) {
  const AtomList data = mesh.axis_atoms(0);
  const AtomList model = mesh.axis_atoms(1);
  std::vector<int> sources;
  for (auto chip = static_cast<int>(mesh.count(data)); chip-- > 0;) sources.push_back(chip);
  const auto word = static_cast<std::int64_t>(data.bits());
  const Dims border{word, word, 0};
  const ValueId part = builder.enter(x, border);
  builder.all_reduce(mesh, x, data, ReduceKind::max);
  builder.all_gather(mesh, x, {2, 3}, 1);
  builder.reduce_scatter(mesh, x, data, ReduceKind::add, 0);
  builder.all_to_all(mesh, x, model, 0, 1);
  builder.all_slice(mesh, x, model, 1);
  builder.vary(builder.all_reduce(mesh, part, data, ReduceKind::add), data.mask());
  builder.leave(builder.ppermute(mesh, part, data, sources), border);
  builder.collective_permute(x, std::array<AtomList, 2>{AtomList{1}, AtomList{}},
                             std::array<AtomList, 2>{AtomList{3}, AtomList{}});
}

}  // namespace

std::vector<OpKind> all_op_kinds() {
  std::vector<OpKind> kinds;
  for (std::uint16_t i = 0; i < 1000; ++i) {
    const auto kind = static_cast<OpKind>(i);
    if (to_string(kind) != "unknown") kinds.push_back(kind);
  }
  return kinds;
}

Program every_op(const Mesh& mesh) {
  Program program;
  Builder builder(program, &mesh);
  Sharding rows;
  rows.dims[0] = mesh.axis_atoms(0);
  rows.set_priority(1, 2);
  rows.set_priority(2, 2);
  Sharding rich;
  rich.dims[1] = {2};
  rich.open_mask = 0b01;
  rich.unreduced = 0b1000;
  rich.reduce_kind = ReduceKind::min;
  rich.replicated = 0b0010;

  const ValueId x = program.add_input({DType::f32, {8, 6}}, InputKind::data, "x", rows);
  const ValueId w =
      program.add_input({DType::f32, {5, 6}}, InputKind::param, "a \"b\\c\n", Sharding::open(2));
  const ValueId m = program.add_input({DType::i64, {}}, InputKind::opt_state, "step", {});

  builder.set_loc("train.cpp:41");
  add_constants(program, builder);
  add_elementwise(builder, x);
  // This input is added after ops, as in a trace.
  const ValueId table = program.add_input({DType::f32, {4, 6}}, InputKind::data, "t", {});
  const ValueId index = program.add_input({DType::i32, {3}}, InputKind::data, "i", {});
  const ValueId start = program.add_input({DType::i32, {}}, InputKind::data, "s", {});
  const ValueId state = program.add_input({DType::u32, {4}}, InputKind::data, "r", {});
  const ValueId lr = program.add_input({DType::f32, {}}, InputKind::runtime_scalar, "lr", {});
  builder.set_loc(" a b/train.cpp:42 ");
  builder.iota({DType::u32, {3, 4}}, 1);
  program.add_op(OpKind::iota, {}, Dims{0, 0x21}, {DType::i32, {4}}, builder.loc());
  builder.broadcast_in_dim(lr, {2, 3}, {});
  builder.reshape(x, {2, 4, 6});
  builder.transpose(x, Dims{1, 0});
  builder.slice(x, Dims{1, 0}, Dims{8, 6}, Dims{3, 1});
  builder.pad(x, lr, Dims{1, 0}, Dims{0, 2}, Dims{2, 0});
  builder.concatenate(std::array{x, w, x}, 0);
  builder.reverse(x, Dims{1, 0});
  builder.scatter(index, builder.gather(table, index), 9);
  builder.check_index(index, 5, -100);
  builder.dynamic_update_slice(x, builder.dynamic_slice(x, std::array{start, start}, Dims{2, 6}),
                               std::array{start, start});
  builder.rng_bit_generator(state, {3, 5});
  builder.rng_bit_generator(state, {});
  add_chips_indexing(program, builder.loc(), table, index, state);
  builder.dot_general(
      x, w, {.lhs_batch = {}, .rhs_batch = {}, .lhs_contracting = {1}, .rhs_contracting = {1}});
  builder.dot_general(
      x, x, {.lhs_batch = {0}, .rhs_batch = {0}, .lhs_contracting = {1}, .rhs_contracting = {1}});
  add_windows(builder);
  add_along_rows(builder, x);
  add_loops(builder, x);
  add_branches(builder, x, builder.constant(1, {DType::pred, {}}));
  add_composites(program, builder, x);
  builder.set_loc("");
  builder.reduce(ReduceKind::max, x, Dims{1, 0});
  builder.sharding_constraint(x, rich);
  builder.custom_call({"row \"sum\"", "b s -> b reduction={s}"}, std::array{x}, {DType::f32, {8}});
  add_collectives(mesh, builder, x);
  program.add_output(builder.optimization_barrier(builder.copy(x)), "y", rows);
  program.add_output(builder.copy(w), "w", Sharding::open(2), 1);
  program.add_output(m, "m", {}, 2);
  return program;
}

}  // namespace weft::testing
