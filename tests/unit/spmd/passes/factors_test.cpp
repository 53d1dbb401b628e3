#include "spmd/passes/factors.hpp"

#include <gtest/gtest.h>

#include "spmd/ops/builder.hpp"

namespace weft::factors_test {
namespace {

using Dims = std::vector<std::int64_t>;

/// Prints a rule as "ab.c,c -> a.b | a=2 b=3R c=4N". Each factor is a letter, and dots separate
/// dims. The sizes follow, with R for reductions and N if the op can't be sharded along the factor.
std::string to_text(const FactorRule& rule) {
  std::string text;
  for (std::size_t tensor = 0; tensor < rule.dims.size(); ++tensor) {
    if (tensor > 0) text += tensor + 1 < rule.dims.size() ? "," : " -> ";
    for (std::size_t dim = 0; dim < rule.dims[tensor].size(); ++dim) {
      if (dim > 0) text += '.';
      for (const int factor : rule.dims[tensor][dim]) text += static_cast<char>('a' + factor);
    }
  }
  text += " |";
  for (std::size_t i = 0; i < rule.factors.size(); ++i) {
    const Factor& factor = rule.factors[i];
    text += fmt::format(" {}={}", static_cast<char>('a' + static_cast<int>(i)), factor.size);
    if (factor.type == FactorType::need_replication) text += 'N';
    if (factor.type != FactorType::reduction) continue;
    constexpr const char* kKinds[] = {"R", "Rmax", "Rmin"};
    text += kKinds[static_cast<int>(factor.reduce_kind)];
  }
  return text;
}

class Factors : public ::testing::Test {
 protected:
  ValueId input(const Shape& shape, DType dtype = DType::f32) {
    return program_.add_input({dtype, shape}, InputKind::data, "x", Sharding::open(shape.size()));
  }
  FactorRule rule(ValueId value) const {
    return factor_rule(program_, program_.defining_op(value));
  }
  std::string text(ValueId value) const { return to_text(rule(value)); }
  std::string reshape(const Shape& from, const Shape& to) {
    return text(b_.reshape(input(from), to));
  }

  Program program_;
  Builder b_{program_};
  Mesh mesh_{{2, 2, 3}, {"x", "y", "z"}};  // the axes are atoms 1, 2 and 3
};

TEST_F(Factors, WindowOpsCutOnlyTheDimsThatTheyLeaveWhole) {
  const ValueId x = input({4, 6});
  const ValueId zero = b_.constant(0, {DType::f32, {}});
  EXPECT_EQ(text(b_.slice(x, Dims{0, 1}, Dims{4, 6}, Dims{1, 1})), "a.b -> a.c | a=4 b=6N c=5N");
  EXPECT_EQ(text(b_.slice(x, Dims{0, 0}, Dims{4, 6}, Dims{2, 1})), "a.c -> b.c | a=4N b=2N c=6");
  EXPECT_EQ(text(b_.pad(x, zero, Dims{1, 0}, Dims{0, 0}, Dims{0, 0})),
            "a.c, -> b.c | a=4N b=5N c=6");
  EXPECT_EQ(text(b_.concatenate(std::array{x, input({4, 2})}, 1)), "a.,a. -> a. | a=4");
}

TEST_F(Factors, ACustomCallHasThoseOfItsRule) {
  const ValueId x = input({4, 6});
  const auto call = [&](const char* rule, const Shape& result) {
    const CustomTarget target{"op", rule};
    return text(b_.custom_call(target, std::array{x, input({6})}, {DType::f32, result}));
  };
  EXPECT_EQ(call("i j, j -> i j", {4, 6}), "a.b,b -> a.b | a=4 b=6");
  EXPECT_EQ(call("i j, j -> i j need_replication={j}", {4, 6}), "a.b,b -> a.b | a=4 b=6N");
  EXPECT_EQ(call("i j, j -> i reduction={j}", {4}), "a.b,b -> a | a=4 b=6R");
  EXPECT_EQ(call("i j, j -> k", {2}), "a.b,b -> c | a=4N b=6N c=2N");
}

TEST_F(Factors, AConcatenationMayHaveAnyNumberOfParts) {
  const std::vector<ValueId> parts(100, input({4, 1}));
  const ValueId whole = b_.concatenate(parts, 1);
  EXPECT_EQ(factor_rule(b_.program(), b_.program().defining_op(whole)).factors.size(), 1U);
}

TEST_F(Factors, ReverseAndDynamicSlicesCutOnlyTheDimsThatTheyLeaveWhole) {
  const ValueId x = input({4, 6});
  const ValueId start = input({}, DType::i32);
  const std::array starts{start, start};
  EXPECT_EQ(text(b_.reverse(x, Dims{1})), "a.b -> a.c | a=4 b=6N c=6N");
  EXPECT_EQ(text(b_.dynamic_slice(x, starts, Dims{1, 6})), "a.c,, -> b.c | a=4N b=1N c=6");
  EXPECT_EQ(text(b_.dynamic_update_slice(x, input({4, 2}), starts)),
            "a.b,a.c,, -> a.b | a=4 b=6N c=2N");
}

TEST_F(Factors, GatherReducesTheRowsAndScatterTheIndex) {
  const ValueId index = input({2, 3}, DType::i32);
  const ValueId rows = b_.gather(input({8, 5}), index);
  EXPECT_EQ(text(rows), "c.d,a.b -> a.b.d | a=2 b=3 c=8R d=5");
  EXPECT_EQ(text(b_.scatter(index, rows, 8)), "a.b,a.b.d -> c.d | a=2R b=3R c=8 d=5");
  EXPECT_EQ(text(b_.gather(input({8, 5}, DType::pred), index)),
            "c.d,a.b -> a.b.d | a=2 b=3 c=8N d=5");
}

TEST_F(Factors, RandomBitsAreCutInEveryDim) {
  EXPECT_EQ(text(b_.rng_bit_generator(input({4}, DType::u32), {4, 6})), "a -> b.c | a=4N b=4 c=6");
}

TEST_F(Factors, ElementwiseOpsShareEveryDim) {
  const ValueId x = input({4, 6});
  const ValueId predicate = input({4, 6}, DType::pred);
  EXPECT_EQ(text(b_.unary(OpKind::tanh, x)), "a.b -> a.b | a=4 b=6");
  EXPECT_EQ(text(b_.convert(x, DType::bf16)), "a.b -> a.b | a=4 b=6");
  EXPECT_EQ(text(b_.binary(OpKind::divide, x, x)), "a.b,a.b -> a.b | a=4 b=6");
  EXPECT_EQ(text(b_.compare(CompareDirection::lt, x, x)), "a.b,a.b -> a.b | a=4 b=6");
  EXPECT_EQ(text(b_.select(predicate, x, x)), "a.b,a.b,a.b -> a.b | a=4 b=6");
  EXPECT_EQ(text(b_.copy(x)), "a.b -> a.b | a=4 b=6");
  EXPECT_EQ(text(b_.sharding_constraint(x, Sharding::open(2))), "a.b -> a.b | a=4 b=6");
  EXPECT_TRUE(rule(b_.unary(OpKind::tanh, x)).elementwise);
}

TEST_F(Factors, LeavesHaveTheirResultsDims) {
  EXPECT_EQ(text(b_.constant(1, {DType::f32, {4, 6}})), "a.b | a=4 b=6");
  EXPECT_EQ(text(b_.iota({DType::i32, {4, 6}}, 1)), "a.b | a=4 b=6");
  EXPECT_EQ(text(b_.constant(1, {DType::f32, {}})), " |");
}

TEST_F(Factors, TransposePermutes) {
  EXPECT_EQ(text(b_.transpose(input({4, 6, 8}), Dims{2, 0, 1})), "b.c.a -> a.b.c | a=8 b=4 c=6");
}

TEST_F(Factors, BroadcastMapsKeepsAndExpands) {
  EXPECT_EQ(text(b_.broadcast_in_dim(input({4, 1}), {6, 4, 8}, Dims{1, 2})),
            "b.d -> a.b.c | a=6 b=4 c=8 d=1");
  EXPECT_EQ(text(b_.broadcast_in_dim(input({}), {6}, {})), " -> a | a=6");
  EXPECT_FALSE(rule(b_.broadcast_in_dim(input({4}), {4, 2}, Dims{0})).elementwise);
}

TEST_F(Factors, DotGeneralReducesWhatItContracts) {
  EXPECT_EQ(text(b_.dot_general(input({2, 4, 8}), input({2, 6, 8}), {{0}, {0}, {2}, {2}})),
            "a.b.d,a.c.d -> a.b.c | a=2 b=4 c=6 d=8R");
  EXPECT_EQ(text(b_.dot_general(input({8, 4}), input({6, 8}), {{}, {}, {0}, {1}})),
            "c.a,b.c -> a.b | a=4 b=6 c=8R");
}

TEST_F(Factors, ReduceReducesByItsKind) {
  EXPECT_EQ(text(b_.reduce(ReduceKind::add, input({4, 6, 8}), Dims{0, 2})),
            "a.b.c -> b | a=4R b=6 c=8R");
  EXPECT_EQ(text(b_.reduce(ReduceKind::max, input({4}), Dims{0})), "a ->  | a=4Rmax");
}

TEST_F(Factors, ConvolutionReducesItsInputFeatures) {
  const Convolution plain{
      .lhs = {0, 1, 2}, .rhs = {1, 0, 2}, .result = {0, 1, 2}, .window = {{.low = 1, .high = 1}}};
  EXPECT_EQ(text(b_.convolution(input({4, 6, 8}), input({2, 6, 3}), plain)),
            "a.c.d,b.c.e -> a.b.f | a=4 b=2 c=6R d=8N e=3N f=8N");
  const Convolution grouped{.lhs = {0, 2, 3},
                            .rhs = {2, 1, 3},
                            .result = {0, 2, 3},
                            .window = {WindowDim{}},
                            .group = {1, 0, 1}};
  EXPECT_EQ(text(b_.convolution(input({4, 3, 2, 8}), input({3, 5, 2, 3}), grouped)),
            "a.d.c.e,d.b.c.f -> a.d.b.g | a=4 b=5 c=2R d=3 e=8N f=3N g=6N");
}

TEST_F(Factors, WindowsCutOnlyTheDimsThatTheyLeaveAlone) {
  const ValueId x = input({4, 6});
  const WindowReduction pairs{ReduceKind::max, {{}, {.size = 2, .stride = 2}}};
  const ValueId y = b_.reduce_window(x, pairs);
  EXPECT_EQ(text(y), "a.b -> a.c | a=4 b=6N c=3N");
  EXPECT_EQ(text(b_.select_and_scatter(x, y, pairs)), "a.b,a.c -> a.b | a=4 b=6N c=3N");
}

TEST_F(Factors, CompositesCutRowsFromOneAnotherButNotARow) {
  const ValueId x = input({4, 6, 8});
  EXPECT_EQ(text(b_.softmax(x)), "a.b.c -> a.b.c | a=4 b=6 c=8N");
  EXPECT_EQ(text(b_.normalize_grad(x, x, {})), "a.b.c,a.b.c -> a.b.c | a=4 b=6 c=8N");
  const ValueId labels = b_.constant(0, {DType::i32, {4, 6}});
  const ValueId losses = b_.cross_entropy(x, labels);
  EXPECT_EQ(text(losses), "a.b.c,a.b -> a.b | a=4 b=6 c=8N");
  EXPECT_EQ(text(b_.cross_entropy_grad(x, labels, losses)),
            "a.b.c,a.b,a.b -> a.b.c | a=4 b=6 c=8N");
  const ValueId q = input({2, 3, 5, 4});
  const ValueId k = input({2, 3, 7, 4});
  const ValueId y = b_.attention(q, k, k, {});
  EXPECT_EQ(text(y),
            "a.b.c.d,a.b.e.f,a.b.g.h -> a.b.c.i | a=2 b=3 c=5 d=4N e=7N f=4N g=7N h=4N "
            "i=4N");
  EXPECT_EQ(text(b_.attention_grad(q, k, k, y, q, {})),
            "a.b.c.d,a.b.e.f,a.b.g.h,a.b.c.i,a.b.c.j -> a.b.k.l | a=2 b=3 c=5N d=4N e=7N f=4N g=7N "
            "h=4N i=4N j=4N k=19N l=4N");
}

TEST_F(Factors, ABiasOfAttentionIsCutWhereItIsNotBroadcast) {
  const ValueId q = input({2, 3, 5, 4});
  const ValueId k = input({2, 3, 7, 4});
  const std::string factors = " | a=2 b=3 c=5 d=4N e=7N f=4N g=7N h=4N i=4N";
  EXPECT_EQ(text(b_.attention(q, k, k, {}, input({2, 1, 5, 7}))),
            "a.b.c.d,a.b.e.f,a.b.g.h,a..c. -> a.b.c.i" + factors);
  const ValueId mask = input({1, 3, 1, 7}, DType::pred);
  const ValueId y = b_.attention(q, k, k, {}, mask);
  EXPECT_EQ(text(y), "a.b.c.d,a.b.e.f,a.b.g.h,.b.. -> a.b.c.i" + factors);
  EXPECT_EQ(text(b_.attention_grad(q, k, k, y, q, {}, mask)),
            "a.b.c.d,a.b.e.f,a.b.g.h,a.b.c.i,a.b.c.j,.b.. -> a.b.k.l | a=2 b=3 c=5N d=4N e=7N f=4N "
            "g=7N h=4N i=4N j=4N k=19N l=4N");
}

TEST_F(Factors, ReshapeSharesTheGcdWhileProductsAreEqual) {
  EXPECT_EQ(reshape({2, 4, 32}, {8, 32}), "a.b.c -> ab.c | a=2 b=4 c=32");
  EXPECT_EQ(reshape({8, 4}, {2, 16}), "ab.c -> a.bc | a=2 b=4 c=4");
  EXPECT_EQ(reshape({12}, {3, 4}), "ab -> a.b | a=3 b=4");
  EXPECT_EQ(reshape({1, 6, 1}, {6}), ".a. -> a | a=6");
  EXPECT_EQ(reshape({}, {1}), " ->  |");
}

TEST_F(Factors, ReshapeSharesNothingUntilProductsMeetAgain) {
  EXPECT_EQ(reshape({4, 3}, {3, 4}), "a.d -> b.c | a=4N b=3N c=4N d=3N");
  EXPECT_EQ(reshape({4, 3, 5}, {3, 4, 5}), "a.d.e -> b.c.e | a=4N b=3N c=4N d=3N e=5");
  EXPECT_EQ(reshape({6, 2}, {4, 3}), "ab.e -> ac.d | a=2 b=3N c=2N d=3N e=2N");
  EXPECT_EQ(reshape({0, 3}, {3, 0}), "a.b -> c.d | a=0N b=3N c=3N d=0N");
}

TEST_F(Factors, SizesMultiplyToTheDimsForAllReshapesOfFourPrimes) {
  const Dims sizes{1, 2, 3, 4, 6, 12, 36};
  std::vector<Shape> shapes;
  for (const std::int64_t a : sizes) {
    for (const std::int64_t b : sizes) {
      for (const std::int64_t c : sizes) {
        if (a * b * c == 36) shapes.push_back({a, b, c});
      }
    }
  }
  ASSERT_GT(shapes.size(), 20U);
  for (const Shape& from : shapes) {
    for (const Shape& to : shapes) {
      const FactorRule reshape = rule(b_.reshape(input(from), to));
      for (const std::size_t tensor : {0U, 1U}) {
        const Shape& shape = tensor == 0 ? from : to;
        for (int dim = 0; dim < 3; ++dim) {
          std::int64_t size = 1;
          for (const int factor : reshape.dims[tensor][static_cast<std::size_t>(dim)]) {
            size *= reshape.factors[static_cast<std::size_t>(factor)].size;
          }
          EXPECT_EQ(size, shape[dim]) << from.to_string() << " to " << to.to_string();
        }
      }
    }
  }
}

std::vector<AtomList> lists(const Projection& projection) {
  return {projection.atoms.begin(), projection.atoms.end()};
}

TEST_F(Factors, ProjectFillsMajorFactorsFirst) {
  const FactorRule split = rule(b_.reshape(input({12}), {2, 6}));  // rule ab -> a.b, a=2 b=6
  DimAtoms dims{AtomList{1, 3, 2}};
  const Projection projection = project(split, mesh_, 0, dims);
  EXPECT_EQ(lists(projection), (std::vector<AtomList>{{1}, {3, 2}}));
  EXPECT_EQ(projection.overflow_dims, 0);
  EXPECT_EQ(unproject(split, 0, projection.atoms), dims);
  EXPECT_EQ(unproject(split, 1, projection.atoms), (DimAtoms{AtomList{1}, AtomList{3, 2}}));
}

TEST_F(Factors, ProjectOverflowsWhereAnAtomWouldCutAFactorUnevenly) {
  const FactorRule split = rule(b_.reshape(input({12}), {2, 6}));
  const Projection projection = project(split, mesh_, 0, {AtomList{3, 1}});
  EXPECT_EQ(lists(projection), (std::vector<AtomList>{{}, {}}));
  EXPECT_EQ(projection.overflow_dims, 1);
}

TEST_F(Factors, AFactorIsFullWhenItsPartsHaveSizeOne) {
  EXPECT_TRUE(is_full(mesh_, {.size = 6}, {2, 3}));
  EXPECT_FALSE(is_full(mesh_, {.size = 6}, {3}));
  EXPECT_TRUE(is_full(mesh_, {.size = 1}, {}));
}

}  // namespace
}  // namespace weft::factors_test
