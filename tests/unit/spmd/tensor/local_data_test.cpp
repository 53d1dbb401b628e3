#include <weft/data/local_data.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include <weft/sharding/mesh_scope.hpp>
#include <weft/sharding/presets.hpp>

#include "spmd/tensor/node.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::local_data_test {
namespace {

using testing::expect_error;
using testing::expect_refusal;
using testing::InterpretRuntime;
using Floats = std::vector<float>;

Floats counted(std::int64_t size) {
  Floats elements(static_cast<std::size_t>(size));
  std::iota(elements.begin(), elements.end(), 0.0F);
  return elements;
}

/// The runtime of one of two workers, which have two chips each of a mesh of four.
struct Worker {
  explicit Worker(int worker, Mesh its_mesh = Mesh({2, 2}, {"data", "model"}))
      : mesh(std::move(its_mesh)),
        runtime(mesh, {mesh.position_of(2 * worker), mesh.position_of(2 * worker + 1)}),
        scope(runtime) {}
  Mesh mesh;
  InterpretRuntime runtime;
  RuntimeScope scope;
};

/// Returns the part of the global tensor that the chip at this position gets from its worker.
Floats on_chip(const Tensor& tensor, const Mesh& mesh, int position) {
  const TensorNode& node = *tensor.node();
  const PlacedBox box = shard_box(tensor.shape(), *node.marked, mesh, position);
  Floats elements(static_cast<std::size_t>(box.room.num_elements()));
  const TensorSource::Target target{box, reinterpret_cast<std::byte*>(elements.data())};
  std::get<SourcePtr>(node.storage)->read({&target, 1});
  return elements;
}

TEST(LocalData, IsAGlobalTensorOfAllWorkersRows) {
  Worker worker(1);
  const Tensor x = to_device_local(counted(12), {4, 3});
  EXPECT_EQ(x.type().to_string(), "f32[8,3]");
  EXPECT_EQ(local_part().index, 1);
  EXPECT_EQ(local_part().count, 2);
  const Tensor y = x * 2;
  EXPECT_EQ(y.type().to_string(), "f32[8,3]");
}

/// Chips have the same parts as if each worker had the global tensor.
TEST(LocalData, LiesOnTheChipsAsTheGlobalTensorWould) {
  for (const bool in_order : {true, false}) {
    for (const auto& spec : {PartitionSpec{{"data"}}, PartitionSpec{{"data"}, {"model"}},
                             PartitionSpec{{"data", "model"}}}) {
      const Mesh mesh({2, 2}, {"data", "model"},
                      in_order ? std::vector<int>{} : std::vector<int>{2, 3, 1, 0});
      for (const int number : {0, 1}) {
        Worker worker(number, mesh);
        const LocalPart part = local_part({.sharding = spec});
        ASSERT_EQ(part.count, 2);
        const Floats global = counted(8 * 6);
        const Floats rows(global.begin() + part.index * 24, global.begin() + (part.index + 1) * 24);
        const Tensor x = to_device_local(rows, {4, 6}, {.sharding = spec});
        for (const int position : worker.runtime.positions()) {
          const PlacedBox box = shard_box({8, 6}, *x.node()->marked, mesh, position);
          Floats expected;
          for (std::int64_t row = 0; row < box.box.dims[0]; ++row) {
            for (std::int64_t column = 0; column < box.box.dims[1]; ++column) {
              expected.push_back(global[static_cast<std::size_t>((box.box.offsets[0] + row) * 6 +
                                                                 box.box.offsets[1] + column)]);
            }
          }
          EXPECT_EQ(on_chip(x, mesh, position), expected)
              << spec.to_string() << " worker " << number << " position " << position;
        }
      }
    }
  }
}

TEST(LocalData, MayBeOfAnyDType) {
  Worker worker(0);
  EXPECT_EQ(to_device_local(std::vector<std::int64_t>{1, 2}, {2}).type().to_string(), "i64[4]");
  EXPECT_EQ(to_device_local(std::array{Bf16(1.0F), Bf16(2.0F)}, {2}).type().to_string(), "bf16[4]");
}

/// The programs of all workers must be equal, even if only one worker has an ignored label.
TEST(LocalData, LabelsMayAllHaveIgnoredOnes) {
  Worker worker(0);
  const std::vector<std::int32_t> labels{0, 1};
  EXPECT_TRUE(to_device_local(labels, {2}).node()->has_ignored);
}

TEST(LocalData, OfOneWorkerIsReadWithoutARun) {
  InterpretRuntime runtime{Mesh({4}, {"data"})};
  const RuntimeScope scope(runtime);
  const Tensor x = to_device_local(counted(4), {4});
  EXPECT_EQ(x.to_vector(), counted(4));
  EXPECT_EQ(local_part().count, 1);
  const Tensor y = x + 1;
  sync();
  EXPECT_EQ(
      runtime.programs.back().inputs[0].sharding,
      Sharding::from_spec(*runtime.mesh(), {{"data"}}, std::vector<std::int64_t>{4}, "expected"));
}

TEST(LocalData, WithoutAMeshIsTheWorkersOwn) {
  InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  EXPECT_EQ(to_device_local(counted(3), {3}).to_vector(), counted(3));
  EXPECT_EQ(local_part().count, 1);
}

TEST(LocalData, MayBeMarkedAsItLies) {
  Worker worker(0);
  const Tensor x = to_device_local(counted(4), {2, 2});
  data_parallel({x}, worker.mesh);
  mark_sharding(x, {{"data"}, {}});
}

TEST(LocalData, RefusesAnotherMarkWithBothLines) {
  Worker worker(0);
  int made = 0;
  expect_refusal(
      {"mark_sharding: f32[4,2]", "[{\"data\"}, {}]", "pass the new sharding to that call"},
      [&](int& line) {
        made = __LINE__ + 1;
        const Tensor x = to_device_local(counted(4), {2, 2});
        line = __LINE__ + 1;
        mark_sharding(x, {{}, {"model"}});
      });
  EXPECT_GT(made, 0);
}

TEST(LocalData, RefusesRowsThatTheChipsCannotDivide) {
  Worker worker(0, Mesh({4}, {"data"}));
  expect_refusal({"to_device_local: f32[3,2]: this worker's chips hold 2 parts of dim 0",
                  "its 3 rows aren't divisible by this number", "multiple of 2"},
                 [](int& line) {
                   line = __LINE__ + 1;
                   to_device_local(counted(6), {3, 2});
                 });
}

TEST(LocalData, RefusesADimThatTheMeshCannotDivide) {
  Worker worker(0);
  expect_refusal({"dim 1 has size 3, which isn't divisible by the 2 parts"}, [](int& line) {
    line = __LINE__ + 1;
    to_device_local(counted(6), {2, 3}, {.sharding = PartitionSpec{{"data"}, {"model"}}});
  });
}

TEST(LocalData, RefusesElementsThatAreNotTheShapes) {
  Worker worker(0);
  expect_refusal({"5 elements are given for f32[2,3], which has 6"}, [](int& line) {
    line = __LINE__ + 1;
    to_device_local(counted(5), {2, 3});
  });
  expect_refusal({"f32[] has no dim 0"}, [](int& line) {
    line = __LINE__ + 1;
    to_device_local(counted(1), {});
  });
}

TEST(LocalData, MayHaveNoRows) {
  Worker worker(0);
  const Tensor none = to_device_local(Floats(), {0, 3});
  EXPECT_EQ(none.shape(), (Shape{0, 3}));
}

TEST(LocalData, NamesTheLineOfASpecThatDoesNotFit) {
  Worker worker(0);
  expect_error(Errc::invalid_argument,
               {"to_device_local at local_data_test.cpp:", "names axis \"dta\""}, [] {
                 to_device_local(counted(4), {2, 2}, {.sharding = PartitionSpec{{"dta"}}});
               });
}

TEST(MeshScope, TakesTheMeshOfTheLoopAlone) {
  Worker worker(0);
  const MeshScope scope(worker.mesh);
  expect_error(Errc::mesh_mismatch, {"MeshScope: the mesh given is (4)", "(2,2)"},
               [] { MeshScope other(Mesh({4}, {"data"})); });
}

TEST(MeshScope, MarksWithoutAMesh) {
  InterpretRuntime runtime{Mesh({2, 2}, {"data", "model"})};
  const RuntimeScope scope(runtime);
  const Tensor x = to_device(counted(4), {2, 2});
  mark_sharding(x, {{"data"}, {}});
  const Tensor y = x + 1;
  sync();
  EXPECT_TRUE(runtime.programs.back().inputs[0].sharding.is_sharded());
}

TEST(MeshScope, WithoutAMeshNothingIsMarked) {
  InterpretRuntime runtime;
  const RuntimeScope scope(runtime);
  const Tensor x = to_device(counted(4), {2, 2});
  expect_error(Errc::unavailable, {"mark_sharding", "backend", "local_data_test.cpp:"}, [&] {
    mark_sharding(x, {{"data"}, {}});
  });
}

}  // namespace
}  // namespace weft::local_data_test
