/// Kills a process at every marked point of every collective. The other processes must learn which
/// process was killed, and find in all arenas either the old bytes or the right result.
///
/// At some marks the victim is inside a transfer, where start() and poll() don't return. There the
/// victim makes a page read-only for itself and dies when it writes to this page, so that the other
/// processes see a half-finished transfer.

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/conformance/chip_team.hpp"
#include "tests/conformance/collective_cases.hpp"
#include "transport/collectives/algorithm.hpp"
#include "transport/job/control_format.hpp"

namespace weft::testing::collective_kills_test {
namespace {

constexpr int kChipCount = 4;
constexpr std::size_t kPageBytes = 4096;
constexpr std::byte kOld{0xa5};  ///< the old bytes of the destinations

enum class Mark {
  before_start,
  filling,  ///< the victim is filling its mailbox
  announced,
  all_announced,  ///< all chips have announced, and nothing is transferred
  transferring,
  transferred,  ///< the transfers are done, and the victim hasn't announced its exit
  ended,        ///< the collective has ended for the victim, or the victim waits at the exit
};
constexpr std::string_view kMarkNames[] = {"before start",  "filling",      "announced",
                                           "all announced", "transferring", "transferred",
                                           "ended"};

struct Kill {
  Algorithm algorithm = Algorithm::signal;
  bool in_lines = false;
  CollectiveKind kind = CollectiveKind::barrier;
  Mark mark = Mark::before_start;
  int victim = 0;

  std::string to_string() const {
    return fmt::format("{} by {}{}, chip {} dies {}", weft::to_string(kind),
                       weft::to_string(algorithm), in_lines ? " in lines" : "", victim,
                       kMarkNames[static_cast<std::size_t>(mark)]);
  }
  std::string reason() const { return fmt::format("worker {} was killed by signal 9", victim); }
};

const Mesh& team_mesh() {
  static const Mesh mesh({kChipCount}, {"data"});
  return mesh;
}

CollectiveCase make_killed_case(const Kill& kill) {
  const AtomList atoms = team_mesh().axis_atoms(0);
  const auto of_count = [&](std::int64_t count) {
    return make_row_case(kill.kind, DType::f32, atoms, kChipCount, count, 1);
  };
  CollectiveCase which = of_count(0);
  if (kill.in_lines) {
    which = of_count(last_count_in_lines(kill.kind, DType::f32, atoms, kChipCount));
  } else if (kill.algorithm != Algorithm::signal) {
    const std::int64_t last =
        last_count_in_mailboxes(kill.kind, DType::f32, atoms, kChipCount, true);
    which = of_count(has_exit_sync(kill.algorithm) ? 4 * last : last);
  }
  CollectiveCall& call = which.call;
  if (kill.kind == CollectiveKind::broadcast) call.from = {kill.victim};
  const std::uint64_t behind = call.source + bytes_of(call, kChipCount).source;
  // A pushed all_reduce is in place, as in training. Every other result begins in the middle of a
  // page, so that even the shortest one crosses the end of a page.
  call.destination = kill.kind == CollectiveKind::all_reduce && kill.algorithm == Algorithm::push
                         ? call.source
                         : (behind + kPageBytes - 1) / kPageBytes * kPageBytes + kPageBytes / 2;
  solve(which, team_mesh());
  return which;
}

bool exists(const Kill& kill) {
  if (choose_algorithm(make_killed_case(kill).call, kChipCount, true) != kill.algorithm)
    return false;
  const bool whole_pages = kill.algorithm != Algorithm::signal && !kill.in_lines;
  switch (kill.mark) {
    case Mark::filling: return kill.algorithm == Algorithm::mailbox && whole_pages;
    case Mark::transferring: return whole_pages;
    // Chip 0 announces its exit in the step that wakes the other chips, so it can't die in between.
    case Mark::transferred: return has_exit_sync(kill.algorithm) && kill.victim != 0;
    default: return true;
  }
}

/// The times of a kill's events, in memory that all processes of a team share.
struct Times {
  std::atomic<std::int64_t> died;
  std::atomic<std::int64_t> aborted;
  std::atomic<std::int64_t> learned[kChipCount];
};
Times* times = nullptr;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

[[noreturn]] void die() {
  times->died = now_ns();
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/// Makes the next write of this process to the page kill it.
void forbid_writing(const void* place) {
  struct sigaction action {};
  action.sa_handler = [](int) { die(); };
  const auto address = reinterpret_cast<std::uintptr_t>(place) / kPageBytes * kPageBytes;
  if (sigaction(SIGSEGV, &action, nullptr) != 0 ||
      mprotect(reinterpret_cast<void*>(address), kPageBytes, PROT_READ) != 0) {
    throw std::system_error(errno, std::generic_category(), "mprotect");
  }
}

/// Returns the chip in whose arena a page is forbidden to the victim. The page begins in the middle
/// of the victim's own part, which the victim transfers first.
int half_done_chip(const Kill& kill) {
  return kill.algorithm == Algorithm::push ? (kill.victim + 1) % kChipCount : kill.victim;
}
std::size_t half_done_offset(const Kill& kill, const CollectiveCall& call) {
  const std::size_t bytes = bytes_of(call, kChipCount).destination;
  const auto middle = bytes * static_cast<std::size_t>(2 * kill.victim + 1) / (2 * kChipCount);
  return call.destination + std::max(middle, kPageBytes / 2);
}

void run_victim(const Kill& kill, const CollectiveCall& call, PreparingCommunicator& communicator,
                const TeamChip& self) {
  JobMemory& memory = self.memory;
  const auto await_all = [&] {
    const std::uint64_t called = memory.call_record(self.id).number.load();
    for (int chip = 0; chip < kChipCount; ++chip) {
      while (self.board.read(2 + chip).collective < called) {
        if (memory.aborted()) throw std::runtime_error(memory.abort_reason());
        sched_yield();
      }
    }
  };
  const std::uint16_t mask = call.atoms.mask();
  if (kill.mark == Mark::before_start) die();
  if (kill.mark == Mark::filling) {
    std::byte* mailboxes = memory.mailboxes(mask, kill.victim);
    forbid_writing(mailboxes + kPageBytes);
    forbid_writing(mailboxes + kMailboxBytes + kPageBytes);
  }
  communicator.start(call);
  if (kill.mark == Mark::announced) die();
  if (kill.mark == Mark::transferring) {
    forbid_writing(memory.arena(half_done_chip(kill)) + half_done_offset(kill, call));
  }
  if (kill.mark == Mark::transferred) forbid_writing(&memory.group_line(mask, kill.victim));
  await_all();
  if (kill.mark == Mark::all_announced) die();
  communicator.poll();
  if (kill.mark == Mark::ended) die();
  throw std::runtime_error("the victim lives");
}

/// Tells whether a destination has old elements, and whether it has elements of the result.
struct Held {
  bool old = false;
  bool fresh = false;
};
/// Reads the destination of a chip. Throws if an element is neither the old nor the right one.
Held read_destination(const Kill& kill, const CollectiveCase& which, const JobMemory& memory,
                      int chip) {
  const std::vector<std::byte>& operand = which.operands[static_cast<std::size_t>(chip)];
  const std::vector<std::byte>& result = which.results[static_cast<std::size_t>(chip)];
  const std::byte* arena = memory.arena(chip);
  const bool in_place = which.call.source == which.call.destination;
  if (!in_place && !std::equal(operand.begin(), operand.end(), arena + which.call.source)) {
    throw std::runtime_error(fmt::format("the source of chip {} has changed", chip));
  }
  const std::vector<std::byte> before =
      in_place ? operand : std::vector<std::byte>(result.size(), kOld);
  Held held;
  for (std::size_t i = 0; i < result.size(); i += sizeof(float)) {
    const std::byte* element = arena + which.call.destination + i;
    const bool is_old = std::memcmp(element, before.data() + i, sizeof(float)) == 0;
    const bool is_fresh = std::memcmp(element, result.data() + i, sizeof(float)) == 0;
    if (!is_old && (!is_fresh || kill.mark < Mark::announced)) {
      throw std::runtime_error(fmt::format("byte {} of chip {} is of no result", i, chip));
    }
    held.old = held.old || !is_fresh;
    held.fresh = held.fresh || !is_old;
  }
  return held;
}

/// Runs the killed collective and a barrier. A survivor may end the collective but not the barrier.
void run_survivor(const Kill& kill, const CollectiveCase& which,
                  PreparingCommunicator& communicator, const TeamChip& chip) {
  try {
    communicator.run(which.call);
    communicator.run(CollectiveCall{.atoms = which.call.atoms});
  } catch (const Error& error) {
    times->learned[chip.id] = now_ns();
    const std::string_view message = error.what();
    if (error.code() != Errc::peer_lost || message.find(kill.reason()) == message.npos) throw;
    for (int other = 0; other < kChipCount; ++other)
      read_destination(kill, which, chip.memory, other);
    return;
  }
  throw std::runtime_error("it learned nothing");
}

/// Returns a different way of waiting for each of three successive chips.
WaitPolicy policy_of(int chip) {
  WaitPolicy policy{.deadline = kDeadline};
  if (chip % 3 != 0) policy = WaitPolicy::for_threads(kChipCount, kDeadline);
  if (chip % 3 == 2) policy.yield_for = {};
  return policy;
}

/// Returns whether the victim has completed its part of this chip's result before it dies.
bool could_end(const Kill& kill, int chip) {
  if (kill.mark >= Mark::transferred) return true;
  return kill.mark >= Mark::all_announced && chip != kill.victim &&
         kill.algorithm != Algorithm::push;
}

struct Latency {
  std::int64_t from_death = 0;
  std::int64_t from_abort = 0;
};

void expect_survived(const Kill& kill, Latency& longest) {
  SCOPED_TRACE(kill.to_string());
  const Mesh& mesh = team_mesh();
  const CollectiveCase which = make_killed_case(kill);
  ProcessTeam team(
      kChipCount, capacity_for({which}, mesh),
      [&](const TeamChip& chip) {
        PreparingCommunicator communicator = chip.communicator(mesh, policy_of(chip.id));
        std::fill_n(chip.arena() + which.call.destination,
                    bytes_of(which.call, kChipCount).destination, kOld);
        place_operand(which, chip.id, chip.arena());
        communicator.run(CollectiveCall{.atoms = which.call.atoms});
        if (chip.id == kill.victim) run_victim(kill, which.call, communicator, chip);
        if (chip.id != kill.victim) run_survivor(kill, which, communicator, chip);
      },
      true);
  EXPECT_EQ(team.chip(kill.victim).join(), "killed by signal 9");
  times->aborted = now_ns();
  team.memory().abort(kill.reason());
  for (int chip = 0; chip < kChipCount; ++chip) {
    if (chip == kill.victim) continue;
    EXPECT_EQ(team.chip(chip).join(), "");
    longest.from_death = std::max(longest.from_death, times->learned[chip] - times->died);
    longest.from_abort = std::max(longest.from_abort, times->learned[chip] - times->aborted);
  }
  for (int chip = 0; chip < kChipCount; ++chip) {
    const Held held = read_destination(kill, which, team.memory(), chip);
    EXPECT_FALSE(held.old && could_end(kill, chip)) << "chip " << chip << " left its result undone";
    if (kill.mark == Mark::transferring && chip == half_done_chip(kill)) {
      EXPECT_TRUE(held.old && held.fresh) << "nothing is half done";
    }
  }
}

class KilledInACollective : public ::testing::Test {
 protected:
  KilledInACollective() {
    void* pages =
        mmap(nullptr, sizeof(Times), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    times = new (pages) Times{};
  }
  ~KilledInACollective() override { munmap(times, sizeof(Times)); }

  /// Kills a chip at every mark of every collective that uses this algorithm.
  void expect_survived_at_every_mark(Kill kill) {
    Latency longest;
    int count = 0;
    const auto at_every_mark = [&](CollectiveKind kind) {
      for (std::size_t mark = 0; mark < std::size(kMarkNames); ++mark) {
        for (const int victim : {0, 2}) {
          kill.kind = kind;
          kill.mark = static_cast<Mark>(mark);
          kill.victim = victim;
          if (!exists(kill)) continue;
          expect_survived(kill, longest);
          ++count;
        }
      }
    };
    if (kill.algorithm == Algorithm::signal) at_every_mark(CollectiveKind::barrier);
    for (const CollectiveKind kind : kDataKinds) at_every_mark(kind);
    EXPECT_GT(count, 0);
    RecordProperty("kills", count);
    RecordProperty("death_to_error_us_max", std::to_string(longest.from_death / 1000));
    RecordProperty("abort_to_error_us_max", std::to_string(longest.from_abort / 1000));
  }
};

#ifndef WEFT_THREAD_SANITIZER
TEST_F(KilledInACollective, BySignal) {
  expect_survived_at_every_mark({.algorithm = Algorithm::signal});
}

TEST_F(KilledInACollective, BySlots) {
  expect_survived_at_every_mark({.algorithm = Algorithm::slots, .in_lines = true});
}

TEST_F(KilledInACollective, ByMailboxInTheLines) {
  expect_survived_at_every_mark({.algorithm = Algorithm::mailbox, .in_lines = true});
}

TEST_F(KilledInACollective, ByMailbox) {
  expect_survived_at_every_mark({.algorithm = Algorithm::mailbox});
}

TEST_F(KilledInACollective, ByPush) {
  expect_survived_at_every_mark({.algorithm = Algorithm::push});
}

TEST_F(KilledInACollective, ByPull) {
  expect_survived_at_every_mark({.algorithm = Algorithm::pull});
}
#endif

}  // namespace
}  // namespace weft::testing::collective_kills_test
