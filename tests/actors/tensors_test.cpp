/// Tests tensors in messages of actors.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "data/items/dlpack_abi.hpp"
#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::tensors_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_error;

class ActorTensors : public ::testing::TestWithParam<int> {
 protected:
  ActorSystem system_{{.name = "tensors", .heap_bytes = std::size_t{64} << 20}};
  ActorMesh<Echo> actors_ =
      system_.spawn(echo, {.name = "echo", .count = 2, .place = {.processes = GetParam()}});
};
INSTANTIATE_TEST_SUITE_P(Places, ActorTensors, ::testing::Values(0, 2),
                         [](const auto& place) { return fmt::format("Processes{}", place.param); });

TEST_P(ActorTensors, ArriveAndReturn) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.0F);
  const HostTensor sent(std::vector<float>(values), Shape{10, 100});
  const HostTensor got = actors_[0].call<&Echo::doubled>(sent).get();
  EXPECT_EQ(got.shape, sent.shape);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(got.get<float>()[i], 2 * values[i]);
}

TEST_P(ActorTensors, ThatWereLoanedAreNotCopied) {
  LoanedTensor loaned = system_.loan({DType::f32, {256}});
  const void* at = loaned.bytes().data();
  for (float& value : loaned.get<float>()) value = 3;
  const HostTensor sent = std::move(loaned).finish();
  EXPECT_EQ(sent.elements.data(), at);
  const HostTensor back = actors_[0].call<&Echo::pass>(sent).get();
  EXPECT_EQ(back.get<float>()[255], 3.0F);
  // The block is this process's own, and came back by reference.
  EXPECT_EQ(back.elements.data(), sent.elements.data());
}

TEST_P(ActorTensors, GoOnFromActorToActor) {
  const HostTensor once =
      actors_[0].call<&Echo::doubled>(HostTensor(std::vector<float>{1, 2}, Shape{2})).get();
  const HostTensor twice = actors_[1].call<&Echo::doubled>(once).get();
  EXPECT_EQ(twice.get<float>()[1], 8.0F);
}

TEST_P(ActorTensors, FreeTheirMemory) {
  // 200 tensors of 1 MiB go through heaps of 64 MiB.
  for (int i = 0; i < 200; ++i) {
    LoanedTensor loaned = system_.loan({DType::f32, {1 << 18}});
    loaned.get<float>()[0] = static_cast<float>(i);
    const HostTensor got = actors_[i % 2].call<&Echo::doubled>(std::move(loaned).finish()).get();
    ASSERT_EQ(got.get<float>()[0], 2.0F * static_cast<float>(i));
  }
}

TEST_P(ActorTensors, ThatDontFitTheHeapAreRefused) {
  expect_error(Errc::no_space, {}, [&] { system_.loan({DType::f32, {1 << 26}}); });
  EXPECT_EQ(actors_[0].call<&Echo::add>(1, 1).get(), 2);
}

/// The heaps have room for one of these tensors. A received tensor that another library has keeps
/// the memory of the actor's process until the library deletes it.
TEST(ActorTensorsAsDlpack, KeepTheirMemoryUntilTheyAreDeleted) {
  ActorSystem system{{.heap_bytes = std::size_t{16} << 20}};
  const auto actors = system.spawn(echo, {.name = "echo", .place = processes(1)});
  const auto doubled = [&](float value) {
    // With this call the processes learn that the tensors of earlier messages were taken.
    EXPECT_EQ(actors[0].call<&Echo::add>(1, 1).get(), 2);
    LoanedTensor loaned = system.loan({DType::f32, {10 << 18}});  // 10 MiB
    loaned.get<float>()[0] = value;
    return actors[0].call<&Echo::doubled>(std::move(loaned).finish()).get();
  };
  auto* const lent = reinterpret_cast<dlpack::ManagedTensorVersioned*>(to_dlpack(doubled(3)));
  expect_error(Errc::endpoint_failed, {"echo[0].doubled", "heap"}, [&] { doubled(4); });
  EXPECT_EQ(*static_cast<const float*>(lent->tensor.data), 6.0F);
  lent->deleter(lent);
  EXPECT_EQ(doubled(5).get<float>()[0], 10.0F);
}

}  // namespace
}  // namespace weft::tensors_test
