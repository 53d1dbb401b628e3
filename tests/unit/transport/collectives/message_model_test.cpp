/// Models the messages of slot_call.hpp as programs of atomic steps, and explores every schedule.
/// The mutants, which break the protocol, show that the exploration finds faults.
///
/// The words that a chip announces stay in its store buffer until the buffer is drained, at any
/// time or by the heavy fence of another chip. A mail is visible at once. Only a wake ends a sleep.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "tests/support/interleavings.hpp"

namespace weft::message_model_test {
namespace {

using testing::Exploration;
using testing::ModelThread;

constexpr int kChipCountMax = 3;
constexpr int kSlots = 4;
constexpr int kPublishedEach = 2;

enum class Mutant {
  none,
  overwrites,        ///< overwrites a slot that readers haven't read
  asks_one_reader,   ///< asks only one reader for room
  fills_last,        ///< writes the mail after the number
  says_it_took,      ///< says that it took a message that it has only seen
  sleeps_unseen,     ///< doesn't look again after it is counted as a sleeper
  has_no_fence,      ///< has no fence before it looks again
  reads_woken_last,  ///< reads the wake count after its flag is set
  posts_without_wake,
  publishes_without_wake,
};

struct Case {
  int chips = 2;
  int messages = 7;
  std::vector<int> roots = {0};  ///< the root of each message, cyclically
  Mutant mutant = Mutant::none;
};

enum class At : std::uint8_t {
  begin,
  look,
  fill,
  post,
  publish,
  ask_for_sleepers,
  count_woken,
  wake,
  look_again,
  read_woken,
  set_flag,
  fence,
  look_last,
  fall_asleep,
  asleep,
  take,
  ended,
};

struct Chip {
  At at = At::begin;
  std::uint8_t message = 0;
  std::uint8_t published = 0;  ///< the chip's word `messages`: as written, and as others see it
  std::uint8_t visible = 0;
  std::uint8_t room = 0;  ///< the free slots of its ring that the chip knows of
  bool waits = false;     ///< the chip has published that it waits
  bool woken = false;     ///< a wake has come since the chip read `slot_woken`
};

struct State {
  std::array<Chip, kChipCountMax> chips;
  std::array<std::array<std::uint8_t, kSlots>, kChipCountMax> mails{};
  /// The numbers in each root's store buffer.
  std::array<std::array<std::uint8_t, kSlots>, kChipCountMax> numbers{};
  /// The numbers that other chips see.
  std::array<std::array<std::uint8_t, kSlots>, kChipCountMax> seen{};
  bool flag = false;
  bool misread = false;
  bool operator<(const State& other) const { return std::memcmp(this, &other, sizeof(State)) < 0; }
};
static_assert(std::has_unique_object_representations_v<State>);

void drain(State& state, std::size_t chip) {
  state.chips[chip].visible = state.chips[chip].published;
  state.seen[chip] = state.numbers[chip];
}

class Program {
 public:
  Program(const Case& which, std::size_t self) : case_(which), self_(self) {}

  void step(const State& before, std::vector<State>& next) const {
    const At at = before.chips[self_].at;
    if (at == At::asleep || at == At::ended) return;
    State& state = next.emplace_back(before);
    Chip& chip = state.chips[self_];
    switch (at) {
      case At::begin:
        chip.at = chip.message == case_.messages ? At::ended : At::look;
        if (chip.at == At::look) ++chip.message;
        chip.waits = false;
        return;
      case At::look: return look(state, chip);
      case At::fill: state.mails[self_][slot(chip)] = chip.message; return fill(chip);
      case At::post: return post(state, chip);
      case At::publish:
        chip.published = chip.message;
        if (is(Mutant::says_it_took)) ++chip.published;
        chip.at = is(Mutant::publishes_without_wake) ? after_wake(chip) : At::ask_for_sleepers;
        return;
      case At::ask_for_sleepers:
        chip.at = state.flag ? At::count_woken : after_wake(chip);
        state.flag = false;
        return;
      case At::count_woken:
        for (Chip& other : state.chips) {
          if (other.at > At::read_woken && other.at <= At::fall_asleep) other.woken = true;
        }
        chip.at = At::wake;
        return;
      case At::wake:
        for (Chip& other : state.chips) {
          if (other.at == At::asleep) other.at = At::look_again;
        }
        chip.at = after_wake(chip);
        return;
      case At::take:
        state.misread |= state.mails[root(chip)][slot(chip)] != chip.message;
        chip.at = At::begin;
        return;
      default: return go_to_sleep(state, chip);
    }
  }

 private:
  bool is(Mutant mutant) const { return case_.mutant == mutant; }
  std::size_t root(const Chip& chip) const {
    return static_cast<std::size_t>(case_.roots[chip.message % case_.roots.size()]);
  }
  bool is_root(const Chip& chip) const { return root(chip) == self_; }
  static std::size_t slot(const Chip& chip) { return chip.message % kSlots; }

  bool is_ready(const State& state, Chip& chip) const {
    if (!is_root(chip)) return state.seen[root(chip)][slot(chip)] == chip.message;
    if (is(Mutant::overwrites) || chip.message <= chip.room) return true;
    int asked = 0;
    int least = chip.message;
    for (std::size_t peer = 0; peer < static_cast<std::size_t>(case_.chips); ++peer) {
      if (peer == self_ || (is(Mutant::asks_one_reader) && ++asked > 1)) continue;
      if (state.chips[peer].visible + kSlots / 2 < chip.message) return false;
      least = std::min<int>(least, state.chips[peer].visible);
    }
    chip.room = static_cast<std::uint8_t>(least + kSlots - 1);
    return true;
  }

  void look(const State& state, Chip& chip) const {
    const bool ready = is_ready(state, chip);
    if (is_root(chip)) {
      chip.at = ready ? (is(Mutant::fills_last) ? At::post : At::fill) : At::read_woken;
    } else if (ready) {
      chip.at = chip.message % kPublishedEach == 0 ? At::publish : At::take;
    } else {
      chip.waits = true;
      chip.at = At::publish;
    }
  }
  void fill(Chip& chip) const { chip.at = is(Mutant::fills_last) ? after_post() : At::post; }
  At after_post() const {
    return is(Mutant::posts_without_wake) ? At::begin : At::ask_for_sleepers;
  }
  void post(State& state, Chip& chip) const {
    state.numbers[self_][slot(chip)] = chip.message;
    chip.published = chip.message;
    chip.at = is(Mutant::fills_last) ? At::fill : after_post();
  }
  /// Returns where a chip continues after it has woken other chips or found that none sleeps.
  At after_wake(const Chip& chip) const {
    if (is_root(chip)) return At::begin;
    return chip.waits ? At::look_again : At::take;
  }
  At when_ready(const Chip& chip) const {
    if (!is_root(chip)) return At::take;
    return is(Mutant::fills_last) ? At::post : At::fill;
  }

  void go_to_sleep(State& state, Chip& chip) const {
    const bool last = is(Mutant::reads_woken_last);
    switch (chip.at) {
      case At::look_again:
        chip.at = is_ready(state, chip) ? when_ready(chip) : last ? At::set_flag : At::read_woken;
        return;
      case At::read_woken:
        chip.woken = false;
        chip.at = last ? At::fall_asleep : At::set_flag;
        return;
      case At::set_flag:
        state.flag = true;
        chip.at = At::fence;
        return;
      case At::fence:
        for (std::size_t other = 0; other < kChipCountMax && !is(Mutant::has_no_fence); ++other) {
          drain(state, other);
        }
        chip.at = is(Mutant::sleeps_unseen) ? At::fall_asleep : At::look_last;
        return;
      case At::look_last:
        chip.at = is_ready(state, chip) ? when_ready(chip)
                  : last                ? At::read_woken
                                        : At::fall_asleep;
        if (chip.at != At::read_woken && chip.at != At::fall_asleep) chip.woken = false;
        return;
      default:  // fall_asleep: the kernel compares and sleeps in one step
        chip.at = chip.woken ? At::look_again : At::asleep;
        chip.woken = false;
    }
  }

  Case case_;
  std::size_t self_;
};

Exploration explore(const Case& which) {
  std::vector<ModelThread<State>> threads;
  for (std::size_t self = 0; self < static_cast<std::size_t>(which.chips); ++self) {
    threads.push_back(
        {std::to_string(self), [program = Program(which, self)](const State& state, auto& next) {
           program.step(state, next);
         }});
    threads.push_back({fmt::format("drain{}", self), [self](const State& state, auto& next) {
                         State after = state;
                         drain(after, self);
                         if (state < after || after < state) next.push_back(after);
                       }});
  }
  return testing::explore<State>(
      State{}, threads, [&](const State& state, bool stuck) -> std::string {
        if (state.misread) return "a mail was misread";
        for (int chip = 0; stuck && chip < which.chips; ++chip) {
          if (state.chips[static_cast<std::size_t>(chip)].at != At::ended)
            return fmt::format("chip {} sleeps for ever", chip);
        }
        return {};
      });
}

void expect_sound(const Case& which) {
  const Exploration explored = explore(which);
  EXPECT_EQ(explored.failure, "");
  EXPECT_GT(explored.state_count, 500U);
}

TEST(MessageModel, ARingThatWrapsAroundLosesNothing) { expect_sound({.chips = 2, .messages = 14}); }

TEST(MessageModel, TheSlowestOfTwoReadersIsWaitedFor) { expect_sound({.chips = 3, .messages = 3}); }

TEST(MessageModel, RootsMayTakeTurns) {
  expect_sound({.chips = 2, .messages = 7, .roots = {0, 1}});
  expect_sound({.chips = 2, .messages = 9, .roots = {0, 0, 0, 1, 1}});
  expect_sound({.chips = 3, .messages = 3, .roots = {0, 1, 2}});
}

void expect_found(Mutant mutant, Case which, std::string_view words) {
  which.mutant = mutant;
  const std::string failure = explore(which).failure;
  EXPECT_NE(failure.find(words), std::string::npos)
      << "mutant " << static_cast<int>(mutant) << ": " << failure;
}

TEST(MessageModel, MutantsThatHurryAreFoundOut) {
  expect_found(Mutant::fills_last, {.chips = 2, .messages = 2}, "misread");
  // A slot that is overwritten too early is misread, or its message is never found.
  expect_found(Mutant::overwrites, {.chips = 2, .messages = 6}, "schedule");
  expect_found(Mutant::asks_one_reader, {.chips = 3, .messages = 6}, "schedule");
  expect_found(Mutant::says_it_took, {.chips = 2, .messages = 8}, "schedule");
}

TEST(MessageModel, MutantsThatSleepForEverAreFoundOut) {
  for (const Mutant mutant : {Mutant::sleeps_unseen, Mutant::has_no_fence, Mutant::reads_woken_last,
                              Mutant::posts_without_wake, Mutant::publishes_without_wake}) {
    expect_found(mutant, {.chips = 2, .messages = 7}, "sleeps for ever");
  }
}

}  // namespace
}  // namespace weft::message_model_test
