#include "actors/supervision/data_check.hpp"

#include <gtest/gtest.h>

namespace weft::data_check_test {
namespace {

/// Returns the hashes of the inputs x and labels of one batch.
DataHashes hashes(int worker, std::uint64_t x, std::uint64_t labels, std::uint64_t run = 4) {
  return {.worker = worker,
          .step = 3,
          .run = run,
          .tensors = {"data.0 f32[32,64] (train.cpp:7)", "data.1 i32[32] (train.cpp:8)"},
          .hashes = {x, labels}};
}

TEST(DataCheck, FindsNothingWhereAllHaveTheSame) {
  DataCheck check(2);
  for (const std::uint64_t run : {1U, 2U}) {
    EXPECT_FALSE(check.add(hashes(0, 5, 6, run)));
    EXPECT_FALSE(check.add(hashes(1, 5, 6, run)));
  }
}

TEST(DataCheck, NamesTensorLineAndWorkers) {
  DataCheck check(3);
  EXPECT_FALSE(check.add(hashes(2, 5, 6)));
  EXPECT_FALSE(check.add(hashes(1, 9, 7))) << "the others haven't told";
  const auto fault = check.add(hashes(0, 5, 6));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->step, 3U);
  EXPECT_EQ(fault->worker, 1);
  EXPECT_TRUE(fault->message.starts_with(
      "at step 3 data.0 f32[32,64] (train.cpp:7) isn't the same in every worker: workers 0, 2 "
      "against worker 1 (1 other input too); "))
      << fault->message;
}

TEST(DataCheck, BlamesNobodyOfTwo) {
  DataCheck check(2);
  check.add(hashes(0, 5, 6));
  const auto fault = check.add(hashes(1, 5, 7));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->worker, -1);
  EXPECT_NE(fault->message.find("data.1 i32[32] (train.cpp:8)"), std::string::npos);
}

TEST(DataCheck, ComparesWhatOnlySomeUploadAmongThose) {
  DataCheck check(2);
  check.add({.worker = 0, .run = 1, .tensors = {"w f32[2]"}, .hashes = {1}});
  EXPECT_FALSE(check.add({.worker = 1, .run = 1}));
}

DataHashes state(int worker, std::uint64_t run, std::vector<std::string> names) {
  DataHashes hashes{.worker = worker, .step = run, .run = run};
  for (std::string& name : names) {
    hashes.hashes.push_back(name.size());
    hashes.tensors.push_back(std::move(name));
  }
  hashes.num_states = static_cast<std::uint32_t>(hashes.tensors.size());
  return hashes;
}

TEST(DataCheck, RefusesStateThatOneWorkerAloneSets) {
  DataCheck check(3);
  EXPECT_FALSE(check.add(state(0, 7, {})));
  EXPECT_FALSE(check.add(state(1, 7, {"w f32[2] (train.cpp:9)"})));
  const auto fault = check.add(state(2, 7, {}));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->worker, 1);
  EXPECT_TRUE(
      fault->message.starts_with("at step 7 w f32[2] (train.cpp:9) isn't set to the same "
                                 "in every worker: workers 0, 2 (not set) against worker "
                                 "1; "))
      << fault->message;
}

TEST(DataCheck, DoesNotWaitForWorkersThatHaveGonePast) {
  DataCheck check(2);
  EXPECT_FALSE(check.add(state(0, 3, {"w f32[2] (a.cpp:1)"})));
  EXPECT_TRUE(check.add(state(1, 4, {})));
  check.forget();
  EXPECT_FALSE(check.add(state(1, 3, {"w f32[2] (a.cpp:1)"})));
  EXPECT_TRUE(check.ended(0));
}

TEST(DataCheck, KnowsStateByItsNameWhereverItIsMade) {
  DataCheck check(2);
  EXPECT_FALSE(check.add(state(0, 3, {"w f32[2] (a.cpp:1)"})));
  EXPECT_FALSE(check.add(state(1, 3, {"w f32[2] (b.cpp:2)"})));
}

TEST(DataCheck, ComparesItemsOfDatasetsWithOtherNames) {
  DataCheck check(2);
  const auto item = [](int worker, std::uint64_t hash) {
    return DataHashes{.worker = worker,
                      .step = 3,
                      .run = 4,
                      .tensors = {fmt::format("field 'x' f32 of item 7{}part-{}.npy,",
                                              DataHashes::kOfDataset, worker)},
                      .hashes = {hash}};
  };
  EXPECT_FALSE(check.add(item(0, 5)));
  const auto fault = check.add(item(1, 6));
  ASSERT_TRUE(fault);
  EXPECT_TRUE(fault->message.starts_with(
      "at step 3 field 'x' f32 of item 7 of dataset part-0.npy, isn't the same in every worker: "
      "worker 0 against worker 1; a dataset is global"))
      << fault->message;
}

TEST(DataCheck, RefusesAHashWithoutATensor) {
  DataCheck check(1);
  EXPECT_TRUE(check.add({.worker = 0, .run = 1, .hashes = {1}}));
  EXPECT_TRUE(check.add({.worker = 1, .run = 1}));
  EXPECT_TRUE(check.add({.worker = 0, .run = 1, .num_states = 1}));
}

TEST(DataCheck, ForgetsAGeneration) {
  DataCheck check(2);
  check.add(hashes(0, 5, 6));
  check.forget();
  EXPECT_FALSE(check.add(hashes(1, 7, 7)));
}

}  // namespace
}  // namespace weft::data_check_test
