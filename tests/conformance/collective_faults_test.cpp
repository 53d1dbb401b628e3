/// Tests which errors chips get when other chips fail, with chips that are threads and chips that
/// are processes.

#include <gtest/gtest.h>

#include <sched.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/conformance/chip_team.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft::testing::collective_faults_test {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kCapacity = 64 * kArenaCapacityUnit;
constexpr milliseconds kLong{60'000};

/// Throws unless `body` throws an error with this code and these words.
template <typename Body>
void require_error(Errc code, std::vector<std::string> words, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    for (const std::string& word : words) {
      if (message.find(word) == std::string_view::npos) {
        throw std::runtime_error(fmt::format("'{}' isn't in: {}", word, message));
      }
    }
    if (error.code() != code) throw;
    return;
  }
  throw std::runtime_error(fmt::format("expected an error {}", to_string(code)));
}

CollectiveCall all_reduce(const Mesh& mesh, std::string_view name, std::int64_t count) {
  CollectiveCall call;
  call.kind = CollectiveKind::all_reduce;
  call.atoms = mesh.axis_atoms(0);
  call.source = kArenaTempOffset;
  call.destination = kArenaTempOffset;
  call.count = count;
  call.name = name;
  return call;
}

template <typename Team>
class CollectiveFaults : public TeamTest<Team> {
 protected:
  void expect_all_succeed(const ChipBody& body) {
    for (const std::string& failure : Team::run(mesh, kCapacity, body)) {
      EXPECT_EQ(failure, "");
    }
  }

  const Mesh mesh = Team::mesh_of(Mesh({4}, {"data"}));
};

TYPED_TEST_SUITE(CollectiveFaults, Teams);

/// Tests three counts, with which the collective uses the control lines, the mailboxes, or only the
/// arenas.
TYPED_TEST(CollectiveFaults, EveryChipLearnsWhoCalledSomethingElse) {
  for (const std::int64_t count : {2, 100, 50'000}) {
    SCOPED_TRACE(count);
    this->expect_all_succeed([this, count](const TeamChip& chip) {
      PreparingCommunicator communicator =
          chip.communicator(this->mesh, WaitPolicy::for_threads(4, kLong));
      communicator.run(all_reduce(this->mesh, "first", 10));
      const bool odd_one = chip.id == 2;
      const std::string other =
          odd_one ? fmt::format("'good' over {{data}}: add f32 1 x {}", count)
                  : fmt::format("chip 2 called all_reduce #2 'bad' over {{data}}: add f32 1 x {}",
                                count + 1);
      require_error(Errc::program_divergence, {fmt::format("chip {} called", chip.id), other}, [&] {
        communicator.run(odd_one ? all_reduce(this->mesh, "bad", count + 1)
                                 : all_reduce(this->mesh, "good", count));
      });
    });
  }
}

TYPED_TEST(CollectiveFaults, EveryChipNamesWhoDidntCome) {
  this->expect_all_succeed([this](const TeamChip& chip) {
    PreparingCommunicator communicator =
        chip.communicator(this->mesh, WaitPolicy::for_threads(4, milliseconds(200)));
    communicator.set_step(12);
    if (chip.id == 3) return;
    communicator.start(all_reduce(this->mesh, "fc1.weight.grad", 5000));
    require_error(Errc::timeout,
                  {fmt::format("chip {} waited", chip.id), "all_reduce #1 'fc1.weight.grad'",
                   "step 12", "chip 3 (last called: no collective yet)"},
                  [&] { communicator.wait(); });
  });
}

TYPED_TEST(CollectiveFaults, AnAbortEndsEveryWait) {
  this->expect_all_succeed([this](const TeamChip& chip) {
    if (chip.id == 3) {  // waits until all other chips sleep
      for (int other = 0; other < 3; ++other) {
        while (chip.board.read(2 + other).state != ActorState::waiting) sched_yield();
      }
      return chip.abort("the user said stop");
    }
    PreparingCommunicator communicator =
        chip.communicator(this->mesh, WaitPolicy::for_threads(4, kLong));
    require_error(Errc::peer_lost, {"the user said stop", "waiting for chip"},
                  [&] { communicator.run(all_reduce(this->mesh, "g", 100)); });
  });
}

/// Expects that the root of a broadcast, which doesn't wait for readers, learns from a reader's
/// abort that this reader has called something else.
template <typename Team>
void expect_odd_reader_is_told(std::int64_t odd_count) {
  const Mesh mesh({4}, {"data"});
  const auto broadcast = [&mesh](std::string_view name, std::int64_t count) {
    CollectiveCall call = all_reduce(mesh, name, count);
    call.kind = CollectiveKind::broadcast;
    call.from = {0};
    return call;
  };
  const std::vector<std::string> failures = Team::run(mesh, kCapacity, [&](const TeamChip& chip) {
    PreparingCommunicator communicator = chip.communicator(mesh, WaitPolicy::for_threads(4, kLong));
    communicator.run(broadcast("first", 2));
    if (chip.id == 2) {
      const std::string both = "chip 2 called broadcast #2 'bad'";
      require_error(Errc::program_divergence, {both, "called broadcast #2 'good'"},
                    [&] { communicator.run(broadcast("bad", odd_count)); });
      return chip.abort(both);
    }
    require_error(Errc::peer_lost, {"chip 2 called broadcast #2 'bad'"}, [&] {
      communicator.run(broadcast("good", 2));
      for (;;) communicator.run(broadcast("more", 2));
    });
  });
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

TEST(DivergingBroadcast, IsFoundByItsReader) {
  for (const std::int64_t count : {3, 100}) {  // with and without slots
    SCOPED_TRACE(count);
    expect_odd_reader_is_told<ThreadTeam>(count);
#ifndef WEFT_THREAD_SANITIZER
    expect_odd_reader_is_told<ProcessTeam>(count);
#endif
  }
}

#ifndef WEFT_THREAD_SANITIZER
TEST(KilledProcess, IsNamedToEverySurvivor) {
  const Mesh mesh({4}, {"data"});
  ProcessTeam team(4, kCapacity, [&mesh](const TeamChip& chip) {
    PreparingCommunicator communicator =
        chip.communicator(mesh, WaitPolicy{.spins = 0, .yield_for = {}, .deadline = kLong});
    if (chip.id == 3) {  // the chip lives, but doesn't take part
      while (!chip.memory.aborted()) sched_yield();
      return;
    }
    require_error(Errc::peer_lost, {"worker 2 was killed by signal 9"},
                  [&] { communicator.run(all_reduce(mesh, "g", 5000)); });
  });
  for (int chip = 0; chip < 3; ++chip) {
    while (team.board().read(2 + chip).state != ActorState::waiting) sched_yield();
  }
  team.chip(2).kill();
  EXPECT_EQ(team.chip(2).join(), "killed by signal 9");
  team.memory().abort("worker 2 was killed by signal 9");
  for (const int chip : {0, 1, 3}) EXPECT_EQ(team.chip(chip).join(), "");
}
#endif

}  // namespace
}  // namespace weft::testing::collective_faults_test
