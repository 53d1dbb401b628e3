/// Models the protocol of channel_port.cpp as two programs of atomic steps, and explores every
/// schedule. The mutants, which break the protocol, show that the exploration finds faults.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/support/interleavings.hpp"

namespace weft::testing::channel_model_test {
namespace {

constexpr int kSlotCountMax = 3;
constexpr std::uint8_t kEnd = 0xff;

enum class Mutant {
  none,
  asks_for_sleepers_first,  ///< as if the store of `number` weren't seq_cst
  numbers_before_the_slot,
  has_no_word_for_the_end,
  sleeps_unseen,
  releases_while_reading,
  trusts_the_lock_alone,  ///< doesn't look again after it has found the peer's lock free
};

struct Case {
  int slot_count = 1;
  int frame_count = 5;  ///< enough to go once around the lanes of three slots
  bool reader_may_leave = false;
  int killed = -1;  ///< the side that dies at any moment; -1: neither
  Mutant mutant = Mutant::none;

  int word_count() const {
    return mutant == Mutant::has_no_word_for_the_end ? slot_count : slot_count + 1;
  }
  /// Returns a message's number. Numbers wrap as early as possible.
  std::uint8_t number(int message) const {
    return static_cast<std::uint8_t>(message % (word_count() + 1));
  }
};

enum class At : std::uint8_t {
  choose,  ///< the reader receives, releases or leaves
  look,
  take,
  fill,
  fill_rest,
  read,
  read_rest,
  ask_early,
  post_slot,
  post_number,
  ask_for_sleepers,
  announce_sleep,
  look_again,
  fall_asleep,
  wake_up,
  look_after_sleep,
  probe,
  look_after_probe,
  done,
  lost,
};

struct Word {
  std::uint8_t number = 0;
  std::uint8_t slot = 0;
  auto operator<=>(const Word&) const = default;
};

struct Side {
  At at = At::look;
  std::uint8_t sent = 0;
  std::uint8_t taken = 0;
  std::uint8_t slot = 0;  ///< the slot that the side fills, reads or sends; or kEnd
  bool asleep = false;    ///< the side has announced that it sleeps
  bool sleeping = false;  ///< the side sleeps in the kernel
  bool saw_sleeper = false;
  bool dead = false;
  bool peer_ended = false;
  std::uint8_t owned_count = 0;
  std::array<std::uint8_t, kSlotCountMax> owned{};  ///< slots in the order of arrival
  auto operator<=>(const Side&) const = default;
};

struct State {
  std::array<Side, 2> sides;  ///< the writer, the reader
  std::array<std::array<Word, kSlotCountMax + 1>, 2> lanes;
  std::array<std::array<std::uint8_t, 2>, kSlotCountMax> slots{};  ///< the contents, in two halves
  std::uint8_t received = 0;
  bool misread = false;
  auto operator<=>(const State&) const = default;
};

/// The program of one side. The steps that both sides have are those of ChannelPort.
class Program {
 public:
  Program(const Case& which, int role) : case_(which), role_(static_cast<std::size_t>(role)) {}

  void step(const State& before, std::vector<State>& next) const {
    const Side& side = before.sides[role_];
    if (side.dead || side.at == At::done || side.at == At::lost) return;
    if (side.sleeping) {
      // If a side may die, a sleep also ends by its own timeout. Otherwise only a wake ends it.
      if (case_.killed >= 0) wake(next.emplace_back(before), role_);
      return;
    }
    if (side.at == At::choose) return choose(before, next);
    State& after = next.emplace_back(before);
    step_alone(after, after.sides[role_]);
  }

 private:
  bool is_writer() const { return role_ == 0; }
  Word& out_word(State& state) const { return word(state, role_, state.sides[role_].sent); }
  Word& in_word(State& state) const { return word(state, 1 - role_, state.sides[role_].taken); }
  Word& word(State& state, std::size_t lane, int index) const {
    return state.lanes[lane][static_cast<std::size_t>(index % case_.word_count())];
  }
  bool arrived(State& state) const {
    const int awaited = state.sides[role_].taken + 1;
    const int before = awaited - case_.word_count();
    return in_word(state).number != (before > 0 ? case_.number(before) : 0);
  }
  At start() const { return is_writer() ? At::look : At::choose; }

  static void wake(State& state, std::size_t role) { state.sides[role].sleeping = false; }

  void choose(const State& before, std::vector<State>& next) const {
    const Side& side = before.sides[role_];
    const auto add = [&](At at) -> State& {
      State& after = next.emplace_back(before);
      after.sides[role_].at = at;
      return after;
    };
    for (std::uint8_t i = 0; i < side.owned_count; ++i) {
      Side& reader = add(At::post_slot).sides[role_];
      reader.slot = reader.owned[i];
    }
    if (!side.peer_ended && side.owned_count < case_.slot_count) add(At::look);
    if (case_.reader_may_leave || (side.peer_ended && side.owned_count == 0)) {
      add(At::post_slot).sides[role_].slot = kEnd;
    }
  }

  void step_alone(State& state, Side& side) const {
    switch (side.at) {
      case At::look:
        if (arrived(state)) {
          side.at = At::take;
        } else if (is_writer() && side.owned_count > 0) {
          side.slot = side.owned[side.owned_count - 1U];
          side.at = At::fill;
        } else {
          side.at = At::announce_sleep;
        }
        return;
      case At::take: return take(state, side);
      case At::fill: return fill(state, side, 0, At::fill_rest);
      case At::fill_rest: return fill(state, side, 1, At::post_slot);
      case At::read: return read(state, side, 0, At::read_rest);
      case At::read_rest: return read(state, side, 1, start());
      default: return is_posting(side.at) ? post(state, side) : await(state, side);
    }
  }

  void fill(State& state, Side& side, std::size_t half, At then) const {
    state.slots[side.slot][half] = static_cast<std::uint8_t>(side.sent + 1);
    side.at = then;
  }
  void read(State& state, Side& side, std::size_t half, At then) const {
    const std::uint8_t frame = state.slots[side.slot][half];
    state.misread = state.misread || frame != state.received + 1;
    if (half == 1) ++state.received;
    side.at = half == 0 && releases_early() ? At::post_slot : then;
  }
  bool releases_early() const { return case_.mutant == Mutant::releases_while_reading; }
  void take(State& state, Side& side) const {
    const std::uint8_t slot = in_word(state).slot;
    if (slot == kEnd) {
      side.peer_ended = true;
      side.at = is_writer() ? At::lost : start();
      return;
    }
    side.owned[side.owned_count++] = slot;
    side.slot = slot;
    ++side.taken;
    side.at = is_writer() ? At::look : At::read;
  }

  static bool is_posting(At at) { return at >= At::ask_early && at <= At::ask_for_sleepers; }
  void post(State& state, Side& side) const {
    Side& peer = state.sides[1 - role_];
    const bool asks_first = case_.mutant == Mutant::asks_for_sleepers_first;
    const bool numbers_first = case_.mutant == Mutant::numbers_before_the_slot;
    switch (side.at) {
      case At::post_slot:
        if (!numbers_first) out_word(state).slot = side.slot;
        side.at = asks_first ? At::ask_early : At::post_number;
        return;
      case At::ask_early:
        side.saw_sleeper = peer.asleep;
        side.at = At::post_number;
        return;
      case At::post_number:
        out_word(state).number = case_.number(side.sent + 1);
        if (side.slot != kEnd) disown(side);
        side.at = At::ask_for_sleepers;
        return;
      default:
        if (numbers_first)
          word(state, role_, side.sent - (side.slot == kEnd ? 0 : 1)).slot = side.slot;
        if (asks_first ? side.saw_sleeper : peer.asleep) wake(state, 1 - role_);
        side.saw_sleeper = false;
        go_on_after_post(state, side);
    }
  }

  void go_on_after_post(const State& state, Side& side) const {
    if (side.slot == kEnd) {
      side.at = At::done;
    } else if (is_writer() && side.sent == case_.frame_count) {
      side.slot = kEnd;
      side.at = At::post_slot;
    } else {
      const bool still_reading = !is_writer() && state.received < side.taken;
      side.at = still_reading ? At::read_rest : start();
    }
  }

  static void disown(Side& side) {
    const auto begin = side.owned.begin();
    (void)std::remove(begin, begin + side.owned_count, side.slot);
    side.owned[--side.owned_count] = 0;
    ++side.sent;
  }

  void await(State& state, Side& side) const {
    const auto go_on = [&](At otherwise) { side.at = arrived(state) ? At::look : otherwise; };
    const bool unseen = case_.mutant == Mutant::sleeps_unseen;
    switch (side.at) {
      case At::announce_sleep:
        side.asleep = true;
        side.at = unseen ? At::fall_asleep : At::look_again;
        return;
      case At::look_again: side.at = arrived(state) ? At::wake_up : At::fall_asleep; return;
      case At::fall_asleep:  // the kernel compares and sleeps in one step
        side.sleeping = unseen || !arrived(state);
        side.at = At::wake_up;
        return;
      case At::wake_up:
        side.asleep = false;
        side.at = case_.killed >= 0 ? At::look_after_sleep : At::look;
        return;
      case At::look_after_sleep: return go_on(At::probe);
      case At::probe:
        side.at = !state.sides[1 - role_].dead                    ? At::look
                  : case_.mutant == Mutant::trusts_the_lock_alone ? At::lost
                                                                  : At::look_after_probe;
        return;
      default: return go_on(At::lost);
    }
  }

  Case case_;
  std::size_t role_;
};

/// Returns the fault in a state, or "".
std::string fault(const Case& which, const State& state, bool stuck) {
  const Side& writer = state.sides[0];
  const Side& reader = state.sides[1];
  if (state.misread) return fmt::format("frame {} was misread", state.received + 1);
  std::array<int, kSlotCountMax> owners{};
  for (std::size_t role = 0; role < 2; ++role) {
    const Side& side = state.sides[role];
    for (std::size_t i = 0; i < side.owned_count; ++i) ++owners[side.owned[i]];
    for (int i = state.sides[1 - role].taken; i < side.sent; ++i) {
      const Word& word = state.lanes[role][static_cast<std::size_t>(i % which.word_count())];
      if (word.number != which.number(i + 1) || word.slot == kEnd) {
        return fmt::format("message {} of side {} was overwritten", i + 1, role);
      }
      ++owners[word.slot];
    }
  }
  for (int slot = 0; slot < which.slot_count; ++slot) {
    const int count = owners[static_cast<std::size_t>(slot)];
    if (count != 1) return fmt::format("slot {} has {} owners", slot, count);
  }
  if (!stuck) return {};
  for (const Side& side : state.sides) {
    if (!side.dead && side.at != At::done && side.at != At::lost) {
      return fmt::format("the {} waits for ever", &side == &writer ? "writer" : "reader");
    }
  }
  const bool whole = which.killed < 0 && !which.reader_may_leave;
  const int expected = whole ? which.frame_count : writer.sent;
  if (reader.peer_ended || reader.at == At::lost || whole) {
    if (state.received != expected) {
      return fmt::format("{} frames were received of {}", state.received, expected);
    }
  }
  return {};
}

Exploration explore_case(const Case& which) {
  State initial;
  for (int slot = which.slot_count; slot > 0; --slot) {
    Side& writer = initial.sides[0];
    writer.owned[writer.owned_count++] = static_cast<std::uint8_t>(slot - 1);
  }
  initial.sides[1].at = At::choose;
  std::vector<ModelThread<State>> threads;
  for (const int role : {0, 1}) {
    const Program program(which, role);
    threads.push_back({role == 0 ? "w" : "r",
                       [program](const State& state, auto& next) { program.step(state, next); }});
  }
  if (which.killed >= 0) {
    const auto victim = static_cast<std::size_t>(which.killed);
    threads.push_back({"kill", [victim](const State& state, auto& next) {
                         if (!state.sides[victim].dead)
                           next.emplace_back(state).sides[victim].dead = true;
                       }});
  }
  return explore<State>(initial, threads,
                        [&](const State& state, bool stuck) { return fault(which, state, stuck); });
}

void expect_sound(Case which) {
  for (which.slot_count = 1; which.slot_count <= kSlotCountMax; ++which.slot_count) {
    SCOPED_TRACE(which.slot_count);
    const Exploration explored = explore_case(which);
    EXPECT_EQ(explored.failure, "");
    EXPECT_GT(explored.state_count, 100U);
  }
}

TEST(ChannelModel, EveryScheduleDeliversEveryFrameInOrder) { expect_sound({}); }

TEST(ChannelModel, AReaderMayLeaveAtAnyMoment) { expect_sound({.reader_may_leave = true}); }

TEST(ChannelModel, AWriterMayDieAtAnyMoment) { expect_sound({.frame_count = 4, .killed = 0}); }

TEST(ChannelModel, AReaderMayDieAtAnyMoment) { expect_sound({.frame_count = 4, .killed = 1}); }

/// Expects that a mutant fails in this case with these words.
void expect_found(Case which, std::string_view words) {
  const std::string failure = explore_case(which).failure;
  EXPECT_NE(failure.find(words), std::string::npos) << failure;
}

TEST(ChannelModel, MutantsAreFoundOut) {
  expect_found({.mutant = Mutant::asks_for_sleepers_first}, "waits for ever");
  expect_found({.mutant = Mutant::sleeps_unseen}, "waits for ever");
  expect_found({.slot_count = 2, .mutant = Mutant::numbers_before_the_slot}, "has 2 owners");
  expect_found({.mutant = Mutant::has_no_word_for_the_end}, "was overwritten");
  expect_found({.mutant = Mutant::releases_while_reading}, "misread");
  expect_found({.killed = 0, .mutant = Mutant::trusts_the_lock_alone}, "frames were received of");
}

}  // namespace
}  // namespace weft::testing::channel_model_test
