#include <gtest/gtest.h>

#include <functional>
#include <random>

#include <fmt/ranges.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/verify.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/reference/interpret.hpp"

namespace weft::tiers_test {
namespace {

using Lines = std::vector<std::string>;

// Atom 1 of "data" is between 2 hosts; atoms 2 and 3 of "data" are within a host. Atom 4 is
// "model".
const Mesh kHosts = HybridMesh{{4, 3}, {2, 1}, {"data", "model"}}.mesh();

/// Returns a sharding that divides dim 0 among all chips.
Sharding of_all(const Mesh& mesh) {
  Sharding sharding = Sharding::closed();
  sharding.dims[0] = mesh.list(mesh.all_atoms());
  return sharding;
}

/// A program for a chip with the input x and one op. On each chip x has other elements.
struct OneOp {
  Program program;
  TensorType global_in;
  TensorType global_out;
};

using MakeOp = std::function<ValueId(Builder& builder, ValueId x)>;

OneOp one_op(const Mesh& mesh, const TensorType& type, const MakeOp& make) {
  OneOp one;
  Builder b(one.program);
  const auto row = [](const TensorType& of) {
    return TensorType{of.dtype, {1, of.num_elements()}};
  };
  const ValueId x = one.program.add_input(row(type), InputKind::data, "x", of_all(mesh));
  const ValueId y = make(b, b.reshape(x, type.shape));
  const TensorType out = row(b.type(y));
  one.program.add_output(b.reshape(y, out.shape), "y", of_all(mesh));
  one.global_in = {type.dtype, {mesh.size(), type.num_elements()}};
  one.global_out = {type.dtype, {mesh.size(), out.shape[1]}};
  return one;
}

Elements run(const Program& program, const OneOp& one, const Mesh& mesh, const Elements& x) {
  return simulate(program, mesh, std::array{one.global_in}, std::array{one.global_out},
                  std::array{x})
      .front();
}

/// Returns lines such as "reduce_scatter 2,3 f32[4,8]" with the atoms of collectives and the type
/// of each result. Skips the reshapes of one_op() at both ends.
Lines lowered(const TensorType& type, const MakeOp& make, const Mesh& mesh = kHosts) {
  const OneOp one = one_op(mesh, type, make);
  const std::optional<Program> program = lower_tiers(one.program, mesh);
  if (!program) return {"as it was"};
  verify(*program, mesh);
  Lines lines;
  for (OpId op = 1; op + 1 < program->num_ops(); ++op) {
    std::string line(to_string(program->kind(op)));
    if (is_collective(program->kind(op))) {
      const AtomList atoms =
          AtomList::from_bits(static_cast<std::uint64_t>(program->op_attrs(op)[0]));
      EXPECT_FALSE(spans_tiers(atoms.mask(), mesh)) << line;
      std::vector<int> numbers;
      for (int i = 0; i < atoms.size(); ++i) numbers.push_back(atoms[i]);
      line += fmt::format(" {}", fmt::join(numbers, ","));
    }
    lines.push_back(line + " " + program->type(program->result(op)).to_string());
  }
  return lines;
}

MakeOp all_reduce(AtomList atoms, ReduceKind kind = ReduceKind::add) {
  return [=](Builder& b, ValueId x) { return b.all_reduce(kHosts, x, atoms, kind); };
}

TEST(Tiers, LeaveCollectivesOfOneTierAlone) {
  for (const AtomList atoms : {AtomList{1}, AtomList{2, 3}, AtomList{4, 2}}) {
    EXPECT_EQ(lowered({DType::f32, {64, 128}}, all_reduce(atoms)), Lines{"as it was"});
  }
  const Mesh one({8, 3}, {"data", "model"});
  EXPECT_EQ(lowered({DType::f32, {64, 128}}, all_reduce({1, 2, 3}), one), Lines{"as it was"});
}

TEST(Tiers, ScatterALargeSumBeforeItGoesToOtherHosts) {
  EXPECT_EQ(lowered({DType::f32, {64, 128}}, all_reduce({1, 2, 3})),
            (Lines{"reduce_scatter 2,3 f32[16,128]", "all_reduce 1 f32[16,128]",
                   "all_gather 2,3 f32[64,128]"}));
  EXPECT_EQ(lowered({DType::f32, {6, 1024}}, all_reduce({1, 2, 3})),
            (Lines{"reduce_scatter 2,3 f32[6,256]", "all_reduce 1 f32[6,256]",
                   "all_gather 2,3 f32[6,1024]"}))
      << "the first dim that divides evenly";
}

TEST(Tiers, CutASumFlatWhereNoDimDividesEvenly) {
  EXPECT_EQ(lowered({DType::f32, {99, 63}}, all_reduce({1, 2, 3})),
            (Lines{"reshape f32[6237]", "constant f32[]", "pad f32[6240]",
                   "reduce_scatter 2,3 f32[1560]", "all_reduce 1 f32[1560]",
                   "all_gather 2,3 f32[6240]", "slice f32[6237]", "reshape f32[99,63]"}));
  EXPECT_EQ(lowered({DType::f32, {66, 126}}, all_reduce({1, 2, 3})),
            (Lines{"reshape f32[8316]", "reduce_scatter 2,3 f32[2079]", "all_reduce 1 f32[2079]",
                   "all_gather 2,3 f32[8316]", "reshape f32[66,126]"}))
      << "no padding is needed";
}

TEST(Tiers, SendASmallSumWhole) {
  EXPECT_EQ(lowered({DType::f32, {64, 64}}, all_reduce({1, 2, 3})),
            (Lines{"all_reduce 2,3 f32[64,64]", "copy f32[64,64]", "all_reduce 1 f32[64,64]"}));
  EXPECT_EQ(lowered({DType::f32, {64, 65}}, all_reduce({1, 2, 3})).front(),
            "reduce_scatter 2,3 f32[16,65]");
  EXPECT_EQ(lowered({DType::f32, {}}, all_reduce({1, 4}, ReduceKind::max)),
            (Lines{"all_reduce 4 f32[]", "copy f32[]", "all_reduce 1 f32[]"}));
  EXPECT_EQ(lowered({DType::f32, {0, 5}}, all_reduce({1, 4})),
            (Lines{"all_reduce 4 f32[0,5]", "copy f32[0,5]", "all_reduce 1 f32[0,5]"}));
}

TEST(Tiers, GatherFromHostsFirstAndScatterToHostsLast) {
  const TensorType type{DType::f32, {4, 48, 5}};
  const auto gather = [](AtomList atoms) {
    return [=](Builder& b, ValueId x) { return b.all_gather(kHosts, x, atoms, 1); };
  };
  EXPECT_EQ(lowered(type, gather({2, 3, 1})),
            (Lines{"all_gather 1 f32[4,96,5]", "all_gather 2,3 f32[4,384,5]"}));
  EXPECT_EQ(lowered(type, gather({1, 2, 3})),
            (Lines{"all_gather 1 f32[4,96,5]", "reshape f32[8,240]", "all_gather 2,3 f32[8,960]",
                   "reshape f32[4,384,5]"}));
  const auto scatter = [](AtomList atoms) {
    return [=](Builder& b, ValueId x) {
      return b.reduce_scatter(kHosts, x, atoms, ReduceKind::add, 1);
    };
  };
  EXPECT_EQ(lowered(type, scatter({2, 3, 1})),
            (Lines{"reduce_scatter 2,3 f32[4,12,5]", "reduce_scatter 1 f32[4,6,5]"}));
  EXPECT_EQ(lowered(type, scatter({1, 2, 3})),
            (Lines{"reshape f32[8,120]", "reduce_scatter 2,3 f32[8,30]", "reshape f32[4,12,5]",
                   "reduce_scatter 1 f32[4,6,5]"}));
}

TEST(Tiers, ExchangeInTwoHops) {
  EXPECT_EQ(lowered({DType::f32, {16, 3, 5}},
                    [](Builder& b, ValueId x) {
                      return b.all_to_all(kHosts, x, {1, 2}, 0, 2);
                    }),
            (Lines{"all_to_all 1 f32[8,3,10]", "reshape f32[1,8,6,5,1]",
                   "all_to_all 2 f32[1,4,6,10,1]", "reshape f32[4,3,20]"}));
}

TEST(Tiers, LeavePermutesAlone) {
  EXPECT_EQ(lowered({DType::f32, {8}},
                    [](Builder& b, ValueId x) {
                      return b.ppermute(kHosts, x, {1, 2}, std::array{1, 2, 3, 0});
                    }),
            Lines{"as it was"});
}

/// Returns distinct atoms of the mesh, at least one, in a random order.
AtomList any_atoms(const Mesh& mesh, std::minstd_rand& random) {
  std::vector<Atom> all;
  for (int atom = 1; atom <= mesh.num_atoms(); ++atom) all.push_back(static_cast<Atom>(atom));
  std::ranges::shuffle(all, random);
  AtomList atoms;
  for (std::size_t i = 0; i == 0 || (i < all.size() && random() % 4 != 0); ++i) {
    atoms.push_back(all[i]);
  }
  return atoms;
}

/// Lowers one collective over random atoms, on random meshes, and expects the same elements on each
/// chip. The elements are integers, so sums are exact in every order.
TEST(Tiers, GiveTheSameElementsOnEveryChip) {
  const std::vector<Mesh> meshes{
      HybridMesh{{4}, {2}, {"a"}}.mesh(), HybridMesh{{3}, {2}, {"a"}}.mesh(),
      HybridMesh{{1, 2}, {3, 1}, {"a", "b"}}.mesh(), HybridMesh{{2, 2}, {2, 2}, {"a", "b"}}.mesh(),
      HybridMesh{{2, 1, 2}, {1, 2, 2}, {"a", "b", "c"}}.mesh()};
  std::minstd_rand random(1);
  int changed = 0;
  for (int i = 0; i < 600; ++i) {
    const Mesh& mesh = meshes[random() % meshes.size()];
    const AtomList atoms = any_atoms(mesh, random);
    const std::int64_t group = mesh.count(atoms);
    const int rank = 2 + static_cast<int>(random() % 3);
    const int dim = static_cast<int>(random() % static_cast<unsigned>(rank));
    const int other =
        (dim + 1 + static_cast<int>(random() % static_cast<unsigned>(rank - 1))) % rank;
    Shape shape{1, 1};
    if (rank > 2) shape = rank == 3 ? Shape{1, 1, 1} : Shape{1, 1, 1, 1};
    for (int d = 0; d < rank; ++d) shape[d] = 1 + static_cast<std::int64_t>(random() % 3);
    const auto what = random() % 4;
    if (what == 1 || what == 3) shape[dim] *= group;
    if (what == 0 && random() % 2 == 0) shape[dim] = 4099;  // large, and no dim divides evenly
    const auto kind = random() % 3 == 0 ? ReduceKind::max : ReduceKind::add;
    const TensorType type{random() % 2 == 0 ? DType::f32 : DType::i32, shape};
    const OneOp one = one_op(mesh, type, [&](Builder& b, ValueId x) {
      switch (what) {
        case 0: return b.all_reduce(mesh, x, atoms, kind);
        case 1: return b.reduce_scatter(mesh, x, atoms, kind, dim);
        case 2: return b.all_gather(mesh, x, atoms, dim);
        default: return b.all_to_all(mesh, x, atoms, dim, other);
      }
    });
    const std::optional<Program> program = lower_tiers(one.program, mesh);
    ASSERT_EQ(program.has_value(), spans_tiers(atoms.mask(), mesh));
    if (!program) continue;
    ++changed;
    verify(*program, mesh);
    Elements x(static_cast<std::size_t>(one.global_in.num_elements()));
    for (double& element : x) element = static_cast<double>(random() % 64) - 32;
    ASSERT_EQ(run(*program, one, mesh, x), run(one.program, one, mesh, x))
        << i << ": " << what << " of " << type.to_string() << " over " << atoms.bits() << " of "
        << mesh.to_string();
  }
  EXPECT_GT(changed, 200);
}

/// Adds doubles whose sum depends on the order.
TEST(Tiers, AddTheChipsOfAHostAndThenTheHosts) {
  const Mesh mesh = HybridMesh{{3}, {4}, {"data"}}.mesh();
  std::minstd_rand random(2);
  std::uniform_real_distribution<double> any(-1, 1);
  int differs = 0;
  for (const std::int64_t size : {7, 4099}) {
    const OneOp one = one_op(mesh, {DType::f64, {size}}, [&](Builder& b, ValueId x) {
      return b.all_reduce(mesh, x, mesh.axis_atoms(0), ReduceKind::add);
    });
    Elements x(static_cast<std::size_t>(12 * size));
    for (double& element : x) element = any(random);
    const Elements flat = run(one.program, one, mesh, x);
    const Elements found = run(*lower_tiers(one.program, mesh), one, mesh, x);
    const auto of_chip = [&](int chip, std::int64_t i) {
      return x[static_cast<std::size_t>(chip * size + i)];
    };
    for (std::int64_t i = 0; i < size; ++i) {
      double sum = 0;
      for (int host = 0; host < 4; ++host) {
        double of_host = of_chip(3 * host, i);
        for (int chip = 1; chip < 3; ++chip) of_host += of_chip(3 * host + chip, i);
        sum = host == 0 ? of_host : sum + of_host;
      }
      for (int chip = 0; chip < 12; ++chip) {
        ASSERT_EQ(found[static_cast<std::size_t>(chip * size + i)], sum) << chip << " " << i;
      }
      if (flat[static_cast<std::size_t>(i)] != sum) ++differs;
    }
  }
  EXPECT_GT(differs, 100) << "the order of the sums makes no difference here";
}

}  // namespace
}  // namespace weft::tiers_test
