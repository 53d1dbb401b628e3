#include "tests/unit/transport/collectives/sync_model.hpp"

#include <array>
#include <cstring>
#include <string>
#include <type_traits>

#include <fmt/format.h>

namespace weft::testing {
namespace {

using Call = SyncCall;
using Mutant = SyncMutant;

constexpr std::size_t kChipCountMax = 3;
constexpr std::size_t kEpochCountMax = 8;

enum class At : std::uint8_t {
  begin,
  fill_late,
  look,
  copy,
  ask_for_sleepers,
  set_woken,
  wake,
  perform,
  count_itself,
  read_woken,
  fence,
  fall_asleep,
  asleep,
  uncount_itself,
  ended,
  diverged,
};

struct Chip {
  At at = At::begin;
  std::uint8_t number = 0;   ///< the number of the chip's call
  std::uint8_t epoch = 0;    ///< the epoch that the chip has announced
  std::uint8_t visible = 0;  ///< the epoch that other chips see
  std::uint8_t arrived = 0;  ///< how many peers have arrived at this epoch
  std::uint8_t woken = 0;    ///< the wake count as the chip read it
  bool at_exit = false;
  bool counted = false;
  /// The epoch that each peer had announced when its arrival was seen.
  std::array<std::uint8_t, kChipCountMax> announced{};
  std::array<std::uint8_t, kChipCountMax> copies{};  ///< copies of the mailboxes in lines
};

using Mailboxes = std::array<std::uint8_t, 2>;

struct State {
  std::array<Chip, kChipCountMax> chips;
  /// The contents of each chip's arena, in slices.
  std::array<std::array<std::uint8_t, kChipCountMax>, kChipCountMax> arenas{};
  std::array<Mailboxes, kChipCountMax> mailboxes{};
  std::array<Mailboxes, kChipCountMax> line_mailboxes{};
  std::uint8_t woken = 0;
  std::uint8_t sleepers = 0;
  bool misread = false;
  bool operator<(const State& other) const { return std::memcmp(this, &other, sizeof(State)) < 0; }
};
static_assert(std::has_unique_object_representations_v<State>);

/// The program of one chip.
class Program {
 public:
  Program(const SyncCase& which, std::size_t self)
      : case_(which), self_(self), n_(which.calls.size()), names_(which.calls.size()) {
    for (std::size_t chip = 0; chip < n_; ++chip) {
      std::size_t epoch = 0;
      for (const Call& call : which.calls[chip]) {
        names_[chip][++epoch] = call.name;
        if (has_exit_sync(call)) names_[chip][++epoch] = call.name;
      }
    }
  }

  void step(const State& before, std::vector<State>& next) const {
    const At at = before.chips[self_].at;
    if (at == At::asleep || at == At::ended || at == At::diverged) return;
    State& after = next.emplace_back(before);
    Chip& chip = after.chips[self_];
    if (at >= At::count_itself) {
      go_to_sleep(after, chip);
    } else if (at >= At::ask_for_sleepers) {
      pass(after, chip);
    } else {
      arrive(after, chip);
    }
  }

 private:
  bool is(Mutant mutant) const { return case_.mutant == mutant; }
  const std::vector<Call>& calls() const { return case_.calls[self_]; }
  const Call& call(const Chip& chip) const { return calls()[chip.number]; }
  bool has_exit_sync(const Call& which) const {
    return weft::has_exit_sync(which.algorithm) && !is(Mutant::has_no_exit_sync);
  }
  std::size_t parity(int epoch) const {
    return is(Mutant::has_one_mailbox) ? 0 : static_cast<std::size_t>(epoch) % 2;
  }
  static void expect(State& state, std::uint8_t actual, std::uint8_t expected) {
    state.misread = state.misread || actual != expected;
  }

  // The steps below come before all chips have arrived.

  void arrive(State& state, Chip& chip) const {
    switch (chip.at) {
      case At::begin: return begin(state, chip);
      case At::fill_late:
        fill(state, chip);
        chip.at = At::look;
        return;
      case At::look: return look(state, chip);
      default:  // copy
        chip.copies[peer(chip)] = state.line_mailboxes[peer(chip)][parity(chip.epoch)];
        return see(chip);
    }
  }

  /// Checks the result of the last call, and overwrites it with the operand of the next one.
  void begin(State& state, Chip& chip) const {
    std::array<std::uint8_t, kChipCountMax>& arena = state.arenas[self_];
    if (chip.number > 0) {
      const auto last = static_cast<std::uint8_t>(chip.number - 1);
      for (std::size_t i = 0; i < n_; ++i) expect(state, arena[i], calls()[last].result(last));
    }
    if (chip.number == calls().size()) {
      chip.at = At::ended;
      return;
    }
    arena.fill(operand(chip));
    announce(chip);
    if (is(Mutant::announces_first)) {
      chip.at = At::fill_late;
    } else {
      fill(state, chip);
    }
  }
  /// Announces an epoch in the chip's own store buffer, which no other chip sees yet, so this needs
  /// no step of its own.
  static void announce(Chip& chip) {
    ++chip.epoch;
    chip.arrived = 0;
    chip.at = At::look;
  }
  std::uint8_t operand(const Chip& chip) const { return call(chip).operand(chip.number); }
  void fill(State& state, const Chip& chip) const {
    if (call(chip).algorithm != Algorithm::mailbox) return;
    auto& mailboxes = call(chip).in_lines ? state.line_mailboxes : state.mailboxes;
    mailboxes[self_][parity(chip.epoch)] = operand(chip);
  }

  bool has_seen_all(const Chip& chip) const {
    return chip.arrived == (is(Mutant::awaits_one_peer) ? 1 : n_ - 1);
  }
  std::size_t peer(const Chip& chip) const { return (self_ + 1 + chip.arrived) % n_; }
  void look(const State& state, Chip& chip) const {
    const std::uint8_t announced = state.chips[peer(chip)].visible;
    if (announced < chip.epoch) {
      chip.at = !chip.counted                  ? At::count_itself
                : is(Mutant::reads_woken_last) ? At::read_woken
                                               : At::fall_asleep;
      return;
    }
    chip.announced[peer(chip)] = announced;
    if (call(chip).in_lines) {
      chip.at = At::copy;
    } else {
      see(chip);
    }
  }
  void see(Chip& chip) const {
    ++chip.arrived;
    chip.at = !has_seen_all(chip) ? At::look
              : chip.counted      ? At::uncount_itself
                                  : At::ask_for_sleepers;
  }

  // The steps below come after all chips have arrived.

  void pass(State& state, Chip& chip) const {
    const auto go_on = [&] { chip.at = At::perform; };
    switch (chip.at) {
      case At::ask_for_sleepers:
        chip.at = At::set_woken;
        if (state.sleepers == 0) go_on();
        return;
      case At::set_woken:
        chip.at = At::wake;
        if (state.woken == chip.epoch) go_on();
        state.woken = chip.epoch;
        return;
      case At::wake:
        for (Chip& other : state.chips) {
          if (other.at == At::asleep) other.at = At::uncount_itself;
        }
        return go_on();
      default: return chip.at_exit ? finish(chip) : enter(state, chip);
    }
  }

  void enter(State& state, Chip& chip) const {
    if (is(Mutant::compares_last)) perform(state, chip);
    if (!all_call_the_same(chip)) {
      if (is(Mutant::goes_on_after_divergence)) return finish(chip);
      chip.at = At::diverged;
      return;
    }
    if (!is(Mutant::compares_last)) perform(state, chip);
    if (!has_exit_sync(call(chip))) return finish(chip);
    chip.at_exit = true;
    announce(chip);
  }
  void finish(Chip& chip) const {
    ++chip.number;
    chip.at_exit = false;
    chip.announced = {};
    chip.copies = {};
    chip.at = At::begin;
  }

  bool all_call_the_same(const Chip& chip) const {
    for (std::size_t q = 0; q < n_; ++q) {
      if (chip.announced[q] == chip.epoch && names_[q][chip.epoch] != call(chip).name) return false;
    }
    return true;
  }

  void perform(State& state, const Chip& chip) const {
    const std::uint8_t result = call(chip).result(chip.number);
    switch (call(chip).algorithm) {
      case Algorithm::slices:  // only between hosts
      case Algorithm::slots:   // has no sync: see message_model_test.cpp
      case Algorithm::signal:
      // A shared value is written before the sync, to memory that the planner keeps apart, so there
      // is nothing to model.
      case Algorithm::share: return;
      case Algorithm::mailbox:
        for (std::size_t q = 0; q < n_; ++q) {
          if (q == self_) continue;
          expect(state,
                 call(chip).in_lines ? chip.copies[q] : state.mailboxes[q][parity(chip.epoch)],
                 operand(chip));
        }
        state.arenas[self_].fill(result);
        return;
      case Algorithm::push:
        for (std::size_t q = 0; q < n_; ++q) {
          expect(state, state.arenas[q][self_], operand(chip));
          state.arenas[q][self_] = result;
        }
        return;
      case Algorithm::pull:
        expect(state, state.arenas[(self_ + 1) % n_][self_], operand(chip));
        return;
    }
  }

  void go_to_sleep(State& state, Chip& chip) const {
    switch (chip.at) {
      case At::count_itself:
        ++state.sleepers;
        chip.counted = true;
        chip.at = is(Mutant::reads_woken_last) ? At::fence : At::read_woken;
        return;
      case At::read_woken:
        chip.woken = state.woken;
        chip.at = is(Mutant::reads_woken_last) ? At::fall_asleep : At::fence;
        return;
      case At::fence:
        for (Chip& other : state.chips) {
          if (!is(Mutant::has_no_fence)) other.visible = other.epoch;
        }
        chip.at = is(Mutant::sleeps_unseen) ? At::fall_asleep : At::look;
        return;
      case At::fall_asleep:  // the kernel compares and sleeps in one step
        chip.at = state.woken == chip.woken ? At::asleep : At::uncount_itself;
        return;
      default:
        --state.sleepers;
        chip.counted = false;
        chip.woken = 0;
        chip.at = has_seen_all(chip) ? At::ask_for_sleepers : At::look;
    }
  }

  SyncCase case_;
  std::size_t self_;
  std::size_t n_;
  /// The names of calls, by chip and epoch.
  std::vector<std::array<std::uint8_t, kEpochCountMax>> names_;
};

}  // namespace

Exploration explore_syncs(const SyncCase& which, SyncEnd end) {
  std::vector<ModelThread<State>> threads;
  for (std::size_t self = 0; self < which.calls.size(); ++self) {
    threads.push_back(
        {std::to_string(self), [program = Program(which, self)](const State& state, auto& next) {
           program.step(state, next);
         }});
    threads.push_back({fmt::format("drain{}", self), [self](const State& state, auto& next) {
                         const Chip& chip = state.chips[self];
                         if (chip.visible < chip.epoch)
                           ++next.emplace_back(state).chips[self].visible;
                       }});
  }
  const At last = end == SyncEnd::all_done ? At::ended : At::diverged;
  State initial;
  initial.sleepers = which.dead_sleepers;
  return explore<State>(initial, threads, [&](const State& state, bool stuck) -> std::string {
    if (state.misread) return "a value was misread";
    for (std::size_t chip = 0; stuck && chip < which.calls.size(); ++chip) {
      const At at = state.chips[chip].at;
      if (at != last) {
        return fmt::format("chip {} {}", chip,
                           at == At::asleep ? "sleeps for ever" : "ended otherwise");
      }
    }
    return {};
  });
}

}  // namespace weft::testing
