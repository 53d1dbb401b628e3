#include "actors/device/state_messages.hpp"

#include <gtest/gtest.h>

namespace weft::state_messages_test {
namespace {

TEST(StateMessages, HaveEveryTensorOfEveryChipOnce) {
  constexpr std::size_t kTensors = kHashesPerMessage / 2 + 1;  // one more than fits in a message
  const Mesh mesh({2}, {"data"});
  std::vector<HashedTensor> state(kTensors);
  for (std::size_t t = 0; t < kTensors; ++t) {
    state[t].name = std::to_string(t);
    state[t].type = {DType::f32, {1}};
    state[t].offsets = {0, 0};
  }
  StateHash hash(9, std::move(state), mesh, {0, 1}, [](const StateHash&) {});
  const float ones = 1;
  const float twos = 2;
  hash.add(0, reinterpret_cast<const std::byte*>(&ones));
  hash.add(1, reinterpret_cast<const std::byte*>(&twos));

  const auto messages = to_messages(hash, 4, 2);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].tensors.size(), kTensors - 1);
  EXPECT_EQ(messages[1].tensors, std::vector{std::to_string(kTensors - 1)});
  for (const StateHashes& message : messages) {
    EXPECT_EQ(message.worker, 4);
    EXPECT_EQ(message.generation, 2U);
    EXPECT_EQ(message.step, 9U);
    EXPECT_EQ(message.num_tensors, kTensors);
    ASSERT_EQ(message.pieces.size(), 2 * message.tensors.size());
    ASSERT_EQ(message.hashes.size(), 2 * message.tensors.size());
    EXPECT_EQ(message.pieces[0], message.pieces[1]);
    EXPECT_NE(message.hashes[0], message.hashes[1]);
  }
}

TEST(StateMessages, AreNoneWhereThereIsNoState) {
  StateHash hash(1, {}, Mesh({1}, {"data"}), {0}, [](const StateHash&) {});
  hash.add(0, nullptr);
  EXPECT_TRUE(to_messages(hash, 0, 1).empty());
}

}  // namespace
}  // namespace weft::state_messages_test
