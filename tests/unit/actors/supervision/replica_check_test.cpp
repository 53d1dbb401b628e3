#include "actors/supervision/replica_check.hpp"

#include <gtest/gtest.h>

namespace weft::replica_check_test {
namespace {

/// Returns the hashes of tensor 'w' on two chips, and the numbers of the pieces that they cover.
StateHashes hashes(int worker, std::vector<std::uint64_t> words,
                   std::vector<std::uint64_t> pieces = {0, 0}, std::uint64_t step = 7) {
  return {.worker = worker,
          .step = step,
          .num_tensors = 1,
          .tensors = {"w"},
          .pieces = std::move(pieces),
          .hashes = std::move(words)};
}

void expect_words(const std::optional<ReplicaFault>& fault,
                  std::initializer_list<std::string_view> words) {
  ASSERT_TRUE(fault);
  for (const auto word : words) {
    EXPECT_NE(fault->message.find(word), std::string::npos) << word << ": " << fault->message;
  }
}

TEST(ReplicaCheck, FindsNothingWhereAllHoldTheSame) {
  ReplicaCheck check(2, 2);
  EXPECT_FALSE(check.add(hashes(0, {5, 5})));
  EXPECT_FALSE(check.add(hashes(1, {5, 5})));
}

TEST(ReplicaCheck, NamesTheOneThatDiffersFromTheMost) {
  ReplicaCheck check(2, 2);
  EXPECT_FALSE(check.add(hashes(1, {5, 6}))) << "the other hasn't told";
  const auto fault = check.add(hashes(0, {5, 5}));
  expect_words(fault, {"step 7", "'w'", "chip 3 (worker 1) against chips 0, 1, 2 (workers 0, 1)"});
  EXPECT_EQ(fault->worker, 1);
  EXPECT_EQ(fault->step, 7U);
}

TEST(ReplicaCheck, NamesAWorkerWhoseChipsAllDiffer) {
  ReplicaCheck check(3, 2);
  check.add(hashes(0, {5, 5}));
  check.add(hashes(1, {5, 5}));
  const auto fault = check.add(hashes(2, {6, 8}));
  expect_words(fault, {"chips 4, 5 (worker 2) against chips 0, 1, 2, 3 (workers 0, 1)"});
  EXPECT_EQ(fault->worker, 2);
}

TEST(ReplicaCheck, BlamesNobodyWhereItCantBeTold) {
  ReplicaCheck check(2, 2);
  check.add(hashes(0, {5, 5}));
  const auto fault = check.add(hashes(1, {6, 6}));
  expect_words(fault, {"chips 0, 1 (worker 0) against chips 2, 3 (worker 1), and no side has a "
                       "majority"});
  EXPECT_EQ(fault->worker, -1);
}

TEST(ReplicaCheck, BlamesNoWorkerForChipsOfTwo) {
  ReplicaCheck check(3, 2);
  check.add(hashes(0, {5, 6}));
  check.add(hashes(1, {5, 6}));
  const auto fault = check.add(hashes(2, {5, 5}));
  expect_words(fault, {"chips 1, 3 (workers 0, 1) against chips 0, 2, 4, 5"});
  EXPECT_EQ(fault->worker, -1);
}

TEST(ReplicaCheck, ComparesPiecesWithTheirLikeOnly) {
  ReplicaCheck check(2, 2);
  EXPECT_FALSE(check.add(hashes(0, {5, 6}, {10, 11})));
  EXPECT_FALSE(check.add(hashes(1, {5, 6}, {10, 11})));
  check.add(hashes(0, {5, 6}, {10, 11}, 8));
  expect_words(check.add(hashes(1, {5, 5}, {10, 11}, 8)), {"step 8", "chip 1", "chip 3"});
}

TEST(ReplicaCheck, WaitsForAllMessagesOfAStep) {
  ReplicaCheck check(2, 1);
  const auto part = [](int worker, const char* name, std::uint64_t hash) {
    return StateHashes{.worker = worker,
                       .step = 1,
                       .num_tensors = 3,
                       .tensors = {name},
                       .pieces = {0},
                       .hashes = {hash}};
  };
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_FALSE(check.add(part(0, name, 5)));
  }
  EXPECT_FALSE(check.add(part(1, "a", 5)));
  EXPECT_FALSE(check.add(part(1, "b", 6)));
  expect_words(check.add(part(1, "c", 6)), {"'b'", "1 other tensor too"});
}

TEST(ReplicaCheck, HashesOfAnotherGenerationDoNotCount) {
  ReplicaCheck check(2, 2);
  check.add(hashes(0, {6, 6}));
  check.begin_generation(2);
  EXPECT_FALSE(check.add(hashes(1, {5, 5}))) << "of generation 1";
  for (int worker = 0; worker < 2; ++worker) {
    StateHashes again = hashes(worker, {7, 7});
    again.generation = 2;
    EXPECT_FALSE(check.add(again));
  }
}

TEST(ReplicaCheck, RefusesHashesOfOtherChips) {
  ReplicaCheck check(2, 2);
  expect_words(check.add(hashes(1, {5, 5, 5}, {0, 0, 0})), {"worker 1", "3 hashes", "2 chips"});
  const auto stranger = check.add(hashes(2, {5, 5}));
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->worker, -1);
}

TEST(ReplicaCheck, BlamesNobodyWhereNoneIsTheMost) {
  ReplicaCheck check(2, 2);
  check.add(hashes(0, {5, 5}));
  const auto fault = check.add(hashes(1, {6, 7}));
  expect_words(fault, {"chips 0, 1 (worker 0) against chip 2 (worker 1) against chip 3 (worker 1)",
                       "no side has a majority"});
  EXPECT_EQ(fault->worker, -1);
}

}  // namespace
}  // namespace weft::replica_check_test
