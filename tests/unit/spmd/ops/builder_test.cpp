#include "spmd/ops/builder.hpp"

#include <gtest/gtest.h>

#include "spmd/ops/verify.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/unit/spmd/ops/every_op.hpp"

namespace weft::builder_test {
namespace {

using testing::expect_error;
using Dims = std::vector<std::int64_t>;

class BuilderTest : public ::testing::Test {
 protected:
  ValueId input(DType dtype, const Shape& shape) {
    return program_.add_input({dtype, shape}, InputKind::data, "x", Sharding::open(shape.size()));
  }
  ValueId f32(const Shape& shape) { return input(DType::f32, shape); }
  TensorType type(ValueId value) const { return program_.type(value); }

  /// Expects that the call is refused with these words, and leaves the program unchanged.
  void rejects(std::initializer_list<std::string_view> words, const std::function<void()>& call) {
    const std::uint32_t ops = program_.num_ops();
    expect_error(Errc::invalid_argument, words, call);
    EXPECT_EQ(program_.num_ops(), ops);
  }

  Mesh mesh_{{4, 2}, {"data", "model"}};
  Program program_;
  Builder builder_{program_};
};

TEST(OpKind, NamesParseBack) {
#define WEFT_ONE(name, number) +1
  EXPECT_EQ(testing::all_op_kinds().size(), std::size_t{WEFT_OPS(WEFT_ONE)});
#undef WEFT_ONE
  for (const OpKind kind : testing::all_op_kinds()) {
    EXPECT_EQ(parse_op_kind(to_string(kind)), kind);
  }
  expect_error(Errc::invalid_argument, {"\"matmul\"", "dot_general"},
               [] { parse_op_kind("matmul"); });
}

TEST(Program, InternsLocations) {
  Program program;
  EXPECT_EQ(program.intern_loc(""), 0U);
  const LocId first = program.intern_loc("a.cpp:1");
  const LocId second = program.intern_loc("a.cpp:2");
  EXPECT_NE(first, second);
  EXPECT_EQ(program.intern_loc("a.cpp:1"), first);
  EXPECT_EQ(program.locs[second], "a.cpp:2");
}

TEST(Program, AppendsFromItsOwnArrays) {
  Program program;
  const ValueId x = program.add_input({DType::f32, {2, 3}}, InputKind::data, "x", {});
  const ValueId y =
      program.add_op(OpKind::transpose, std::array{x}, Dims{1, 0}, {DType::f32, {3, 2}});
  for (OpId op = 0; op < 100; ++op) {
    program.add_op(OpKind::transpose, program.op_operands(op), program.op_attrs(op),
                   program.type(y));
  }
  for (OpId op = 0; op <= 100; ++op) {
    EXPECT_EQ(program.op_operands(op)[0], x);
    EXPECT_EQ(program.op_attrs(op)[0], 1);
    EXPECT_EQ(program.op_attrs(op)[1], 0);
  }
}

TEST_F(BuilderTest, GivesOpsTheirLocation) {
  const ValueId x = f32({2});
  builder_.set_loc("train.cpp:41");
  builder_.copy(x);
  builder_.set_loc("");
  builder_.copy(x);
  EXPECT_EQ(program_.loc(0), "train.cpp:41");
  EXPECT_EQ(program_.loc(1), "");
}

TEST_F(BuilderTest, NamesOpTypesAndLocationOfAMistake) {
  builder_.set_loc("train.cpp:7");
  const ValueId a = f32({2, 3});
  const ValueId b = f32({3});
  rejects({"add(f32[2,3], f32[3])", "one type", "broadcast_in_dim", "at train.cpp:7"},
          [&] { builder_.binary(OpKind::add, a, b); });
}

TEST_F(BuilderTest, Constants) {
  EXPECT_EQ(type(builder_.constant(1.5, {DType::bf16, {2, 3}})), (TensorType{DType::bf16, {2, 3}}));
  const std::array<float, 3> elements{1, 2, 3};
  builder_.constant(std::as_bytes(std::span(elements)), {DType::f32, {3}});
  EXPECT_EQ(program_.op_attrs(0)[1], 2);
  EXPECT_EQ(program_.op_attrs(1)[0], 8);  // the offset is aligned
  EXPECT_EQ(program_.op_attrs(1)[1], 12);
  const std::size_t pool = program_.const_pool.size();
  rejects({"constant", "f32[4]", "16 bytes", "12"}, [&] {
    builder_.constant(std::as_bytes(std::span(elements)), {DType::f32, {4}});
  });
  EXPECT_EQ(program_.const_pool.size(), pool);
}

TEST_F(BuilderTest, Iota) {
  EXPECT_EQ(type(builder_.iota({DType::i32, {2, 3}}, 1)), (TensorType{DType::i32, {2, 3}}));
  rejects({"iota", "dim 2", "0..1"}, [&] { builder_.iota({DType::i32, {2, 3}}, 2); });
  rejects({"iota", "pred"}, [&] { builder_.iota({DType::pred, {2}}, 0); });
}

TEST_F(BuilderTest, Unary) {
  const ValueId integers = input(DType::i32, {2});
  EXPECT_EQ(type(builder_.unary(OpKind::tanh, f32({2}))), (TensorType{DType::f32, {2}}));
  EXPECT_EQ(type(builder_.unary(OpKind::negate, integers)), (TensorType{DType::i32, {2}}));
  EXPECT_EQ(type(builder_.convert(integers, DType::f64)), (TensorType{DType::f64, {2}}));
  rejects({"tanh(i32[2])", "floating"}, [&] { builder_.unary(OpKind::tanh, integers); });
  const ValueId bytes = input(DType::u8, {2});
  EXPECT_EQ(type(builder_.unary(OpKind::negate, bytes)), (TensorType{DType::u8, {2}}));
  rejects({"abs(pred[2])"}, [&] { builder_.unary(OpKind::abs, input(DType::pred, {2})); });
}

TEST_F(BuilderTest, BinaryAndCompare) {
  const ValueId x = f32({2});
  const ValueId p = builder_.compare(CompareDirection::ge, x, x);
  EXPECT_EQ(type(p), (TensorType{DType::pred, {2}}));
  EXPECT_EQ(type(builder_.binary(OpKind::logical_and, p, p)), type(p));
  EXPECT_EQ(type(builder_.binary(OpKind::power, x, x)), type(x));
  rejects({"logical_and(f32[2], f32[2])", "pred"},
          [&] { builder_.binary(OpKind::logical_and, x, x); });
  rejects({"add(pred[2], pred[2])", "convert"}, [&] { builder_.binary(OpKind::add, p, p); });
  rejects({"compare(f32[2], f64[2])"},
          [&] { builder_.compare(CompareDirection::eq, x, input(DType::f64, {2})); });
}

TEST_F(BuilderTest, Select) {
  const ValueId x = f32({2});
  const ValueId p = input(DType::pred, {2});
  EXPECT_EQ(type(builder_.select(p, x, x)), type(x));
  rejects({"select", "pred[2]"}, [&] { builder_.select(x, x, x); });
  rejects({"select", "pred[2]"}, [&] { builder_.select(input(DType::pred, {}), x, x); });
  rejects({"select", "f32[2]", "f32[3]"}, [&] { builder_.select(p, x, f32({3})); });
}

TEST_F(BuilderTest, ShapeOps) {
  const ValueId x = f32({2, 3, 4});
  EXPECT_EQ(type(builder_.reshape(x, {6, 4})).shape, (Shape{6, 4}));
  EXPECT_EQ(type(builder_.transpose(x, Dims{2, 0, 1})).shape, (Shape{4, 2, 3}));
  EXPECT_EQ(type(builder_.broadcast_in_dim(f32({3, 1}), {2, 3, 4}, Dims{1, 2})).shape,
            (Shape{2, 3, 4}));
  rejects({"reshape(f32[2,3,4])", "f32[5]", "24"}, [&] { builder_.reshape(x, {5}); });
  rejects({"transpose", "[1,0]", "3 dims"}, [&] { builder_.transpose(x, Dims{1, 0}); });
  rejects({"transpose", "dim 1 is repeated"}, [&] { builder_.transpose(x, Dims{1, 1, 0}); });
  rejects({"transpose", "dim 3", "0..2"}, [&] { builder_.transpose(x, Dims{0, 1, 3}); });
  const ValueId y = f32({3, 1});
  rejects({"broadcast_in_dim", "operand dim 0 of size 3", "dim 0 of f32[2,4]"}, [&] {
    builder_.broadcast_in_dim(y, {2, 4}, Dims{0, 1});
  });
  rejects({"broadcast_in_dim", "[1,0]", "ascend"}, [&] {
    builder_.broadcast_in_dim(y, {2, 3}, Dims{1, 0});
  });
  rejects({"broadcast_in_dim", "each of the 2"},
          [&] { builder_.broadcast_in_dim(y, {3}, Dims{0}); });
}

TEST_F(BuilderTest, WindowOps) {
  const ValueId x = f32({4, 6});
  const ValueId zero = builder_.constant(0, {DType::f32, {}});
  const auto slice = [&](const Dims& start, const Dims& limit, const Dims& stride) {
    return builder_.slice(x, start, limit, stride);
  };
  EXPECT_EQ(type(slice({1, 0}, {4, 6}, {2, 4})).shape, (Shape{2, 2}));
  EXPECT_EQ(type(builder_.pad(x, zero, Dims{1, 0}, Dims{0, 2}, Dims{2, 0})).shape, (Shape{11, 8}));
  EXPECT_EQ(type(builder_.concatenate(std::array{x, x}, 1)).shape, (Shape{4, 12}));
  rejects({"slice(f32[4,6])", "[2:1:1] of dim 0"}, [&] { slice({2, 0}, {1, 6}, {1, 1}); });
  rejects({"slice", "[0:7:1] of dim 1", "size 6"}, [&] { slice({0, 0}, {4, 7}, {1, 1}); });
  rejects({"slice", "[0:4:0]"}, [&] { slice({0, 0}, {4, 6}, {0, 1}); });
  rejects({"slice", "3 attribute words", "2 dims"}, [&] { slice({0}, {4}, {1}); });
  rejects({"pad", "-1, 0, 0 of dim 0"}, [&] {
    builder_.pad(x, zero, Dims{-1, 0}, Dims{0, 0}, Dims{0, 0});
  });
  rejects({"pad", "scalar of f32"}, [&] {
    builder_.pad(x, x, Dims{0, 0}, Dims{0, 0}, Dims{0, 0});
  });
  rejects({"concatenate", "f32[4,6] and f32[4,5]", "dim 0"}, [&] {
    builder_.concatenate(std::array{x, f32({4, 5})}, 0);
  });
  rejects({"concatenate", "dim 2"}, [&] { builder_.concatenate(std::array{x, x}, 2); });
  rejects({"concatenate", "0 operands"}, [&] { builder_.concatenate({}, 0); });
}

TEST_F(BuilderTest, ReverseAndIsFinite) {
  const ValueId x = f32({4, 6});
  EXPECT_EQ(type(builder_.reverse(x, Dims{1, 0})), type(x));
  EXPECT_EQ(type(builder_.unary(OpKind::is_finite, x)), (TensorType{DType::pred, {4, 6}}));
  rejects({"reverse", "dim 2"}, [&] { builder_.reverse(x, Dims{2}); });
  rejects({"reverse", "dim 1 is repeated"}, [&] { builder_.reverse(x, Dims{1, 1}); });
  rejects({"is_finite(i32[2])", "floating"},
          [&] { builder_.unary(OpKind::is_finite, input(DType::i32, {2})); });
}

TEST_F(BuilderTest, GatherAndScatter) {
  const ValueId table = f32({10, 4, 6});
  const ValueId index = input(DType::i32, {2, 3});
  const ValueId rows = builder_.gather(table, index);
  EXPECT_EQ(type(rows), (TensorType{DType::f32, {2, 3, 4, 6}}));
  EXPECT_EQ(type(builder_.gather(table, input(DType::i32, {}))).shape, (Shape{4, 6}));
  EXPECT_EQ(type(builder_.scatter(index, rows, 7)), (TensorType{DType::f32, {7, 4, 6}}));
  EXPECT_EQ(type(builder_.scatter(index, f32({2, 3}), 0)).shape, (Shape{0}));
  rejects({"gather", "index is f32[2]", "i32"}, [&] { builder_.gather(table, f32({2})); });
  rejects({"gather(f32[], i32[2,3])", "no rows"}, [&] { builder_.gather(f32({}), index); });
  rejects({"gather", "7 dims", "at most 6"}, [&] {
    builder_.gather(table, input(DType::i32, {1, 1, 1, 1, 1}));
  });
  rejects({"scatter", "index is f32[2,3]"}, [&] { builder_.scatter(f32({2, 3}), rows, 7); });
  rejects({"scatter", "dims of the index"}, [&] { builder_.scatter(index, table, 7); });
  rejects({"scatter", "dims of the index"}, [&] { builder_.scatter(index, f32({2}), 7); });
  rejects({"scatter", "-1 rows"}, [&] { builder_.scatter(index, rows, -1); });
  rejects({"scatter", "pred can't be added"}, [&] {
    builder_.scatter(index, input(DType::pred, {2, 3}), 7);
  });
}

TEST_F(BuilderTest, DynamicSlices) {
  const ValueId x = f32({4, 6});
  const ValueId start = input(DType::i32, {});
  const std::array starts{start, start};
  const ValueId part = builder_.dynamic_slice(x, starts, Dims{4, 2});
  EXPECT_EQ(type(part).shape, (Shape{4, 2}));
  EXPECT_EQ(type(builder_.dynamic_update_slice(x, part, starts)), type(x));
  rejects({"dynamic_slice", "sizes [4,7]", "f32[4,6]"}, [&] {
    builder_.dynamic_slice(x, starts, Dims{4, 7});
  });
  rejects({"dynamic_slice", "sizes [4]"}, [&] { builder_.dynamic_slice(x, starts, Dims{4}); });
  rejects({"dynamic_slice", "2 operands", "takes 3"}, [&] {
    builder_.dynamic_slice(x, std::array{start}, Dims{4, 2});
  });
  rejects({"dynamic_slice", "start of dim 1 is i32[1]"}, [&] {
    builder_.dynamic_slice(x, std::array{start, input(DType::i32, {1})}, Dims{4, 2});
  });
  rejects({"dynamic_update_slice", "sizes [5,6]"}, [&] {
    builder_.dynamic_update_slice(x, f32({5, 6}), starts);
  });
  rejects({"dynamic_update_slice", "dtype f32"}, [&] {
    builder_.dynamic_update_slice(x, input(DType::f64, {4, 2}), starts);
  });
  rejects({"dynamic_update_slice", "start of dim 0 is f32[]"}, [&] {
    builder_.dynamic_update_slice(x, part, std::array{f32({}), start});
  });
}

TEST_F(BuilderTest, RngBitGenerator) {
  const ValueId state = input(DType::u32, {4});
  EXPECT_EQ(type(builder_.rng_bit_generator(state, {3, 5})), (TensorType{DType::u32, {3, 5}}));
  rejects({"rng_bit_generator", "u32[4]"},
          [&] { builder_.rng_bit_generator(input(DType::u32, {3}), {5}); });
}

TEST_F(BuilderTest, DotGeneral) {
  const ValueId a = f32({5, 2, 3, 4});
  const ValueId b = f32({4, 5, 7});
  const Builder::DotDims dims{
      .lhs_batch = {0}, .rhs_batch = {1}, .lhs_contracting = {3}, .rhs_contracting = {0}};
  EXPECT_EQ(type(builder_.dot_general(a, b, dims)).shape, (Shape{5, 2, 3, 7}));
  rejects({"dot_general", "contracting dims 2 (size 3) and 0 (size 4)"}, [&] {
    builder_.dot_general(a, b, {{0}, {1}, {2}, {0}});
  });
  rejects({"batch dims 1 (size 2) and 1 (size 5)"}, [&] {
    builder_.dot_general(a, b, {{1}, {1}, {3}, {0}});
  });
  rejects({"dim 0 is repeated"}, [&] { builder_.dot_general(a, b, {{0}, {1}, {0}, {0}}); });
  rejects({"dim 4", "0..3"}, [&] { builder_.dot_general(a, b, {{}, {}, {4}, {0}}); });
  rejects({"1 x 0 batch", "pairs"}, [&] { builder_.dot_general(a, b, {{0}, {}, {3}, {0}}); });
  rejects({"7 dims", "at most 6"}, [&] { builder_.dot_general(a, b, {{}, {}, {}, {}}); });
  rejects({"one dtype"}, [&] {
    builder_.dot_general(a, input(DType::f64, {4}), {{}, {}, {3}, {0}});
  });
  rejects({"skip_zeros is [3]", "[0], [1] or [2]"}, [&] {
    builder_.dot_general(a, f32({4}), {{}, {}, {3}, {0}, static_cast<SkipZeros>(3)});
  });
}

TEST_F(BuilderTest, Reduce) {
  const ValueId x = f32({2, 3, 4});
  EXPECT_EQ(type(builder_.reduce(ReduceKind::add, x, Dims{2, 0})).shape, (Shape{3}));
  EXPECT_EQ(type(builder_.reduce(ReduceKind::max, x, {})).shape, (Shape{2, 3, 4}));
  rejects({"reduce", "dim 3"}, [&] { builder_.reduce(ReduceKind::add, x, Dims{3}); });
  rejects({"reduce", "repeated"}, [&] { builder_.reduce(ReduceKind::add, x, Dims{1, 1}); });
  rejects({"reduce", "pred can't be added"},
          [&] { builder_.reduce(ReduceKind::add, input(DType::pred, {2}), Dims{0}); });
}

/// Convolves x[N,C,H,W] with w[O,C,kh,kw].
const Convolution kPlain{.lhs = {0, 1, 2, 3},
                         .rhs = {1, 0, 2, 3},
                         .result = {0, 1, 2, 3},
                         .window = {WindowDim{}, WindowDim{}}};

TEST_F(BuilderTest, Convolution) {
  const ValueId x = f32({2, 3, 8, 9});
  const ValueId w = f32({5, 3, 3, 2});
  const auto shape = [&](const Convolution& c) {
    return type(builder_.convolution(x, w, c)).shape;
  };
  EXPECT_EQ(shape(kPlain), (Shape{2, 5, 6, 8}));
  Convolution c = kPlain;
  c.result = {3, 0, 1, 2};
  EXPECT_EQ(shape(c), (Shape{5, 6, 8, 2}));
  c = kPlain;
  c.window = {{.stride = 2, .low = 1, .high = 1}, {.low = -1, .high = -4, .base_dilation = 2}};
  EXPECT_EQ(shape(c), (Shape{2, 5, 4, 11}));
  c.window = {{.dilation = 4}, {.dilation = 7}};
  EXPECT_EQ(shape(c), (Shape{2, 5, 0, 2}));
  c.window = {{.low = -9}, {}};
  EXPECT_EQ(shape(c), (Shape{2, 5, 0, 8}));
  const Convolution grouped{.lhs = {0, 2, 3},
                            .rhs = {3, 0, 2},
                            .result = {1, 2, 3},
                            .window = {WindowDim{}},
                            .group = {1, 1, 0}};
  EXPECT_EQ(type(builder_.convolution(f32({2, 3, 4, 9}), f32({5, 3, 2, 4}), grouped)).shape,
            (Shape{3, 2, 5, 8}));
}

TEST_F(BuilderTest, RefusesConvolutionsThatDoNotFit) {
  const ValueId x = f32({2, 3, 8, 9});
  const ValueId w = f32({5, 3, 3, 2});
  const auto refused = [&](const Convolution& bad, std::initializer_list<std::string_view> words) {
    rejects(words, [&] { builder_.convolution(x, w, bad); });
  };
  Convolution c = kPlain;
  c.rhs = {0, 1, 2, 3};
  refused(c, {"convolution(f32[2,3,8,9], f32[5,3,3,2])", "feature dims 1 (size 3) and 0 (size 5)"});
  c.rhs = {1, 0, 2, 2};
  refused(c, {"[1,0,2,2] must name each of the 4 dims of rhs once"});
  c = kPlain;
  c.lhs = {0, 1, 2, 4};
  refused(c, {"[0,1,2,4]", "4 dims of lhs"});
  c = kPlain;
  c.window[1].stride = 0;
  refused(c, {"dim 3 has windows of size 2, stride 0"});
  c = kPlain;
  c.window[0].low = std::int64_t{1} << 41;
  refused(c, {"dim 2", "2^40"});
  refused({.lhs = {0}, .rhs = {0}, .result = {0}}, {"4 attribute words", "lhs, rhs, result"});
  rejects({"one dtype"}, [&] { builder_.convolution(x, input(DType::f64, {5, 3, 3, 2}), kPlain); });
  const ValueId empty = f32({5, 3, 0, 2});
  rejects({"dim 2 has windows of size 0"}, [&] { builder_.convolution(x, empty, kPlain); });
  c = kPlain;
  c.lhs = {0, 2, 3};
  c.rhs = {3, 0, 2};
  c.result = {1, 2, 3};
  c.window = {WindowDim{}};
  c.group = {1, 1, 0};
  const ValueId groups = f32({2, 3, 4, 9});
  const ValueId one_group = f32({5, 1, 2, 4});
  rejects({"group dims 1 (size 3) and 1 (size 1)"},
          [&] { builder_.convolution(groups, one_group, c); });
}

TEST_F(BuilderTest, ReduceWindowAndSelectAndScatter) {
  const ValueId x = f32({2, 7});
  const WindowReduction pairs{ReduceKind::max, {{}, {.size = 2, .stride = 2}}};
  const ValueId y = builder_.reduce_window(x, pairs);
  EXPECT_EQ(type(y).shape, (Shape{2, 3}));
  EXPECT_EQ(type(builder_.select_and_scatter(x, y, pairs)), type(x));
  const WindowDim full{.size = 3, .low = 2, .high = 2, .base_dilation = 2, .dilation = 3};
  EXPECT_EQ(type(builder_.reduce_window(x, {ReduceKind::add, {{}, full}})).shape, (Shape{2, 11}));
  const ValueId predicates = input(DType::pred, {2});
  const auto refused = [&](std::initializer_list<std::string_view> words, ValueId value,
                           const WindowReduction& reduction) {
    rejects(words, [&] { builder_.reduce_window(value, reduction); });
  };
  refused({"reduce_window(f32[2,7])", "7 attribute words", "2 dims"}, x, {ReduceKind::add, {{}}});
  refused({"dim 1 has windows of size 0"}, x, {ReduceKind::add, {{}, {.size = 0}}});
  refused({"pred can't be added"}, predicates, {ReduceKind::add, {{}}});
  rejects({"select_and_scatter", "max or min", "add of f32"}, [&] {
    builder_.select_and_scatter(x, y, {ReduceKind::add, pairs.dims});
  });
  rejects({"select_and_scatter", "second operand must be f32[2,3]"},
          [&] { builder_.select_and_scatter(x, x, pairs); });
}

TEST_F(BuilderTest, Collectives) {
  const ValueId x = f32({8, 6});
  const AtomList data = mesh_.axis_atoms(0);
  EXPECT_EQ(type(builder_.all_reduce(mesh_, x, data, ReduceKind::add)).shape, (Shape{8, 6}));
  EXPECT_EQ(type(builder_.all_gather(mesh_, x, data, 1)).shape, (Shape{8, 24}));
  EXPECT_EQ(type(builder_.reduce_scatter(mesh_, x, data, ReduceKind::add, 0)).shape, (Shape{2, 6}));
  EXPECT_EQ(type(builder_.all_to_all(mesh_, x, data, 0, 1)).shape, (Shape{2, 24}));
  EXPECT_EQ(type(builder_.all_slice(mesh_, x, data, 0)).shape, (Shape{2, 6}));
  rejects({"all_slice(f32[8,6])", "size 6 of dim 1", "4 chips"},
          [&] { builder_.all_slice(mesh_, x, data, 1); });
  rejects({"all_gather", "dim 2"}, [&] { builder_.all_gather(mesh_, x, data, 2); });
  rejects({"all_reduce", "atoms", "(4,2)"},
          [&] { builder_.all_reduce(mesh_, x, {4}, ReduceKind::add); });
  rejects({"all_reduce", "distinct atoms"}, [&] {
    builder_.all_reduce(mesh_, x, {1, 1}, ReduceKind::add);
  });
  rejects({"all_reduce", "at least one"},
          [&] { builder_.all_reduce(mesh_, x, {}, ReduceKind::add); });
  rejects({"all_to_all", "both split and concatenated"},
          [&] { builder_.all_to_all(mesh_, x, data, 0, 0); });
}

TEST_F(BuilderTest, BuildsAVerifiableProgramOfEveryKind) {
  const Program program = testing::every_op(mesh_);
  for (const OpKind kind : testing::all_op_kinds()) {
    EXPECT_NE(std::count(program.op_kinds.begin(), program.op_kinds.end(), kind), 0)
        << to_string(kind);
  }
  verify(program, mesh_);
}

}  // namespace
}  // namespace weft::builder_test
