#include "tests/unit/transport/lanes/lane_model.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace weft::testing::lane_model {
namespace {

constexpr std::uint8_t kHalf = kEntryCount / 2;

constexpr std::uint8_t bit_of(std::size_t lane) { return static_cast<std::uint8_t>(1U << lane); }

void ring(State& state) {
  ++state.rung;
  state.taker.sleep.is_asleep = false;
}

/// The program of a sender: LaneSender::send(), ring() and wait_for_room().
class SenderProgram {
 public:
  SenderProgram(const Case& which, std::size_t index) : case_(which), index_(index) {}

  void step(const State& before, std::vector<State>& next) const {
    const Sender& sender = before.senders[index_];
    if (sender.sleep.is_asleep || sender.at == Sender::At::done) return;
    State& after = next.emplace_back(before);
    if (sender.at <= Sender::At::fall_asleep) {
      wait(after, after.lanes[index_], after.senders[index_]);
    } else {
      send(after, after.senders[index_]);
    }
  }

 private:
  using At = Sender::At;
  bool is(Mutant mutant) const { return case_.mutant == mutant; }
  static bool has_room(const Lane& lane, const Sender& sender) {
    return sender.sent - lane.head < kEntryCount;
  }

  void wait(State& state, Lane& lane, Sender& sender) const {
    const bool looks_first = is(Mutant::looks_before_it_waits);
    switch (sender.at) {
      case At::look_for_room:
        sender.sleep = {};
        if (has_room(lane, sender)) {
          sender.at = asks_early() ? At::ask_early : At::store_number;
        } else {
          sender.at = At::read_room;
        }
        return;
      case At::read_room:
        sender.sleep.seen = lane.room;
        sender.at = looks_first ? At::look_again : At::announce;
        return;
      case At::announce:
        lane.sender_waits = true;
        sender.at = looks_first ? At::fall_asleep : At::look_again;
        return;
      case At::look_again:
        sender.at = has_room(lane, sender) ? At::look_for_room
                    : looks_first          ? At::announce
                                           : At::fall_asleep;
        return;
      default:  // the kernel compares and sleeps in one step
        if (is(Mutant::reads_room_late)) sender.sleep.seen = lane.room;
        sender.sleep.is_asleep = lane.room == sender.sleep.seen;
        sender.at = At::look_for_room;
        if (sender.sleep.is_asleep) ring(state);
    }
  }

  bool asks_early() const {
    return is(Mutant::asks_for_sleepers_first) || is(Mutant::watches_before_number);
  }
  void send(State& state, Sender& sender) const {
    const bool is_watched = (state.watched & bit_of(index_)) != 0;
    switch (sender.at) {
      case At::ask_early:
        sender.saw_early = is(Mutant::watches_before_number) ? is_watched : state.asleep;
        sender.at = At::store_number;
        return;
      case At::store_number:
        state.lanes[index_].numbers[sender.sent % kEntryCount] =
            static_cast<std::uint8_t>(sender.sent + 1);
        ++sender.sent;
        sender.at = At::look_at_bit;
        return;
      case At::look_at_bit: {
        const bool saw_bit = is(Mutant::watches_before_number) ? sender.saw_early : is_watched;
        sender.at = saw_bit ? At::ask_for_sleepers : At::set_bit;
        return;
      }
      case At::set_bit:
        state.watched |= bit_of(index_);
        sender.at = At::ask_for_sleepers;
        return;
      case At::ask_for_sleepers: {
        const bool saw_sleeper =
            is(Mutant::asks_for_sleepers_first) ? sender.saw_early : state.asleep;
        sender.saw_early = false;
        sender.at = saw_sleeper ? At::ring : after_send(sender);
        return;
      }
      default: ring(state); sender.at = after_send(sender);
    }
  }
  At after_send(const Sender& sender) const {
    return sender.sent == case_.message_count ? At::done : At::look_for_room;
  }

  Case case_;
  std::size_t index_;
};

/// The program of the taker: LanePort::take() and wait().
class TakerProgram {
 public:
  explicit TakerProgram(const Case& which) : case_(which) {}

  void step(const State& before, std::vector<State>& next) const {
    if (before.taker.sleep.is_asleep) return;
    State& after = next.emplace_back(before);
    Taker& taker = after.taker;
    if (taker.at <= At::set_bit) {
      take(after, taker);
    } else if (taker.at <= At::give_room) {
      skip(after, after.lanes[taker.lane], taker);
    } else {
      wait(after, taker);
    }
  }

 private:
  using At = Taker::At;
  bool is(Mutant mutant) const { return case_.mutant == mutant; }
  static bool has_entry(const State& state, std::size_t lane) {
    const std::uint8_t taken = state.taker.taken[lane];
    return state.lanes[lane].numbers[taken % kEntryCount] == taken + 1;
  }
  /// Moves `lane` to the next lane that wasn't visited. Returns false if there is none.
  static bool go_on(Taker& taker) {
    for (std::uint8_t lane = 0; lane < kSendersMax; ++lane) {
      if ((taker.lanes & bit_of(lane)) == 0) continue;
      taker.lane = lane;
      taker.lanes &= static_cast<std::uint8_t>(~bit_of(lane));
      return true;
    }
    taker.lane = 0;
    return false;
  }

  void take(State& state, Taker& taker) const {
    switch (taker.at) {
      case At::load_watched:
        taker.lanes = state.watched;
        taker.at = go_on(taker) ? At::visit : At::read_rung;
        return;
      case At::visit:
        if (has_entry(state, taker.lane)) return begin_to_take(taker);
        taker.at = At::count_watched;
        return;
      case At::count_watched: {
        const int count = (state.watched & 1) + (state.watched >> 1 & 1);
        if (count > case_.watched_when_empty) {
          taker.at = At::clear_bit;
        } else {
          taker.at = go_on(taker) ? At::visit : At::read_rung;
        }
        return;
      }
      case At::clear_bit:
        state.watched &= static_cast<std::uint8_t>(~bit_of(taker.lane));
        taker.at = At::look_after_clear;
        if (is(Mutant::unwatches_unseen)) taker.at = go_on(taker) ? At::visit : At::read_rung;
        return;
      case At::look_after_clear:
        if (!has_entry(state, taker.lane)) {
          taker.at = go_on(taker) ? At::visit : At::read_rung;
        } else if (is(Mutant::forgets_the_bit)) {
          begin_to_take(taker);
        } else {
          taker.at = At::set_bit;
        }
        return;
      default: state.watched |= bit_of(taker.lane); begin_to_take(taker);
    }
  }
  static void begin_to_take(Taker& taker) {
    ++taker.taken[taker.lane];
    taker.at = At::store_head;
  }

  void skip(State& state, Lane& lane, Taker& taker) const {
    const bool clears_late = is(Mutant::clears_waits_late);
    const std::uint8_t taken = taker.taken[taker.lane];
    switch (taker.at) {
      case At::store_head:
        lane.head = taken;
        taker.at = At::ask_for_waiters;
        return;
      case At::ask_for_waiters:
        if (!lane.sender_waits) return start_again(taker);
        taker.at = At::look_ahead;
        return;
      case At::look_ahead:
        if (lane.numbers[(taken + kHalf - 1U) % kEntryCount] == taken + kHalf) {
          return start_again(taker);
        }
        taker.at = clears_late ? At::give_room : At::clear_waits;
        return;
      case At::clear_waits:
        lane.sender_waits = false;
        taker.at = At::give_room;
        if (clears_late) start_again(taker);
        return;
      default:
        ++lane.room;
        state.senders[taker.lane].sleep.is_asleep = false;
        if (!clears_late) return start_again(taker);
        taker.at = At::clear_waits;
    }
  }
  static void start_again(Taker& taker) {
    taker.lanes = 0;
    taker.lane = 0;
    taker.at = At::load_watched;
  }

  void wait(State& state, Taker& taker) const {
    switch (taker.at) {
      case At::read_rung:
        taker.sleep.seen = state.rung;
        taker.at = At::look;
        return;
      case At::look: return look(state, taker, At::load_watched, At::announce);
      case At::announce:
        state.asleep = true;
        taker.at = is(Mutant::sleeps_unseen) ? At::fall_asleep : At::look_again;
        return;
      case At::look_again: return look(state, taker, At::wake_up, At::fall_asleep);
      case At::fall_asleep:  // the kernel compares and sleeps in one step
        if (is(Mutant::reads_rung_late)) taker.sleep.seen = state.rung;
        taker.sleep.is_asleep = state.rung == taker.sleep.seen;
        taker.at = At::wake_up;
        return;
      default:
        state.asleep = false;
        taker.sleep = {};
        start_again(taker);
    }
  }
  /// Loads `watched` in one step, and looks at each lane in a step of its own.
  static void look(const State& state, Taker& taker, At found, At nothing) {
    if (!taker.has_loaded) {
      taker.lanes = state.watched;
      taker.has_loaded = true;
    } else if (has_entry(state, taker.lane)) {
      start_again(taker);
      taker.has_loaded = false;
      taker.at = found;
      return;
    }
    if (go_on(taker)) return;
    taker.has_loaded = false;
    taker.at = nothing;
  }

  Case case_;
};

/// Returns the fault in a state, or "".
std::string fault(const Case& which, const State& state, bool stuck) {
  for (std::size_t i = 0; i < which.sender_count; ++i) {
    const Sender& sender = state.senders[i];
    const std::uint8_t taken = state.taker.taken[i];
    for (int number = taken + 1; number <= sender.sent; ++number) {
      if (state.lanes[i].numbers[static_cast<std::size_t>(number - 1) % kEntryCount] != number) {
        return fmt::format("message {} of sender {} was overwritten", number, i);
      }
    }
    if (!stuck) continue;
    if (taken < sender.sent) return fmt::format("sender {} has sent, and the taker sleeps", i);
    if (sender.at != Sender::At::done) return fmt::format("sender {} waits for ever", i);
  }
  return {};
}

}  // namespace

Exploration explore_case(const Case& which) {
  std::vector<ModelThread<State>> threads;
  State initial;
  for (std::size_t i = 0; i < kSendersMax; ++i) {
    if (i >= which.sender_count) {
      initial.senders[i].at = Sender::At::done;
      continue;
    }
    const SenderProgram sender(which, i);
    threads.push_back({fmt::format("s{}", i),
                       [sender](const State& state, auto& next) { sender.step(state, next); }});
  }
  const TakerProgram taker(which);
  threads.push_back({"t", [taker](const State& state, auto& next) { taker.step(state, next); }});
  return explore<State>(initial, threads,
                        [&](const State& state, bool stuck) { return fault(which, state, stuck); });
}

}  // namespace weft::testing::lane_model
