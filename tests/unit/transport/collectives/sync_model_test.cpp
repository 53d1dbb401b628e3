/// Explores every schedule of the model of the syncs. The mutants, which break the protocol, show
/// that the exploration finds faults.

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/transport/collectives/sync_model.hpp"

namespace weft::testing::sync_model_test {
namespace {

using Call = SyncCall;
using Case = SyncCase;
using Mutant = SyncMutant;

constexpr Call kSignal{};
constexpr Call kLines{Algorithm::mailbox, true};
constexpr Call kMailbox{Algorithm::mailbox};
constexpr Call kPush{Algorithm::push};
constexpr Call kPull{Algorithm::pull};
constexpr Call kCalls[] = {kSignal, kLines, kMailbox, kPush, kPull};

Case same_calls(std::size_t chip_count, const std::vector<Call>& calls) {
  return {.calls = std::vector(chip_count, calls)};
}

/// Returns a case in which the last chip calls `odd_one` in place of `call`.
Case diverging_calls(std::size_t chip_count, std::vector<Call> before, const Call& call,
                     Call odd_one) {
  before.push_back(call);
  Case which = same_calls(chip_count, before);
  odd_one.name = 1;
  which.calls.back().back() = odd_one;
  for (std::vector<Call>& calls : which.calls) calls.push_back(kMailbox);
  return which;
}

void expect_sound(const Case& which, SyncEnd end) {
  const Exploration explored = explore_syncs(which, end);
  EXPECT_EQ(explored.failure, "");
  EXPECT_GT(explored.state_count, 50U);
}

TEST(SyncModel, TwoChipsMayCallAnythingInAnyOrder) {
  for (const Call& first : kCalls) {
    for (const Call& second : kCalls) {
      for (const Call& third : kCalls)
        expect_sound(same_calls(2, {first, second, third}), SyncEnd::all_done);
    }
  }
}

TEST(SyncModel, ThreeChipsPassEverySyncTogether) {
  expect_sound(same_calls(3, {kLines, kLines, kLines}), SyncEnd::all_done);
  expect_sound(same_calls(3, {kPush, kMailbox}), SyncEnd::all_done);
  expect_sound(same_calls(3, {kPull}), SyncEnd::all_done);
}

TEST(SyncModel, ASleeperThatWasKilledIsNoHarm) {
  Case which = same_calls(2, {kPush, kLines});
  which.dead_sleepers = 1;
  expect_sound(which, SyncEnd::all_done);
}

TEST(SyncModel, EveryChipNoticesADivergenceAndUsesNothingOfIt) {
  for (const Call& call : kCalls) {
    for (const Call& odd_one : kCalls) {
      for (const Call& before : {kSignal, kLines, kPush}) {
        expect_sound(diverging_calls(2, {before}, call, odd_one), SyncEnd::all_noticed_divergence);
      }
      expect_sound(diverging_calls(3, {}, call, odd_one), SyncEnd::all_noticed_divergence);
    }
  }
}

/// Expects that the mutant fails in some schedule of this case with these words.
void expect_found(Mutant mutant, Case which, std::string_view words) {
  which.mutant = mutant;
  const std::string failure = explore_syncs(which, SyncEnd::all_done).failure;
  EXPECT_NE(failure.find(words), std::string::npos)
      << "mutant " << static_cast<int>(mutant) << ": " << failure;
}

TEST(SyncModel, MutantsThatHurryAreFoundOut) {
  for (const Call& call : {kLines, kMailbox}) {
    expect_found(Mutant::has_one_mailbox, same_calls(2, {call, call}), "misread");
    expect_found(Mutant::announces_first, same_calls(2, {call}), "misread");
  }
  for (const Call& call : {kLines, kMailbox, kPush, kPull}) {
    expect_found(Mutant::awaits_one_peer, same_calls(3, {call, kSignal}), "misread");
  }
  for (const Call& call : {kPush, kPull}) {
    expect_found(Mutant::has_no_exit_sync, same_calls(2, {call, kSignal}), "misread");
  }
}

TEST(SyncModel, MutantsThatUseADivergingCallAreFoundOut) {
  for (const Call& call : {kLines, kMailbox, kPush, kPull}) {
    const Case which = diverging_calls(2, {}, call, call);
    expect_found(Mutant::compares_last, which, "misread");
    expect_found(Mutant::goes_on_after_divergence, which, "misread");
  }
}

TEST(SyncModel, MutantsThatSleepForEverAreFoundOut) {
  for (const Mutant mutant :
       {Mutant::sleeps_unseen, Mutant::has_no_fence, Mutant::reads_woken_last}) {
    for (const std::size_t chip_count : {2U, 3U}) {
      expect_found(mutant, same_calls(chip_count, {kSignal}), "sleeps for ever");
    }
  }
}

}  // namespace
}  // namespace weft::testing::sync_model_test
