/// Models how a hold on a block moves from one process to another while the owner tests whether the
/// block is free, and while a process dies, and explores every schedule. The mutants show that the
/// exploration finds faults; three of them were found in earlier versions by killing processes.

#include <gtest/gtest.h>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/interleavings.hpp"

namespace weft::testing::ledger_model_test {
namespace {

enum class Mutant {
  none,
  no_sets,           ///< the owner only reads the bits
  sets_before_bit,   ///< the taker counts `sets` up before it sets its bit
  head_before_bit,   ///< the taker counts `head` up before it sets its bit
  releases_at_once,  ///< the sender doesn't wait until the message was taken
  clears_all_bits,   ///< the keeper also clears bits of blocks that are on their way
  settles_unheard,   ///< the keeper doesn't wait until living processes have settled the death
};

enum class Victim { none, sender, taker };

struct Case {
  bool reads_sender_first = true;  ///< the order in which the owner reads the words of bits
  Victim victim = Victim::none;
  Mutant mutant = Mutant::none;
};

/// The sender holds the block and sends it to the taker, which releases it later. The owner holds
/// nothing.
struct State {
  bool sender_bit = true;
  bool taker_bit = false;
  std::uint8_t sets = 0;
  bool is_sent = false;
  bool is_taken = false;  ///< the taker has counted `head` up
  bool sender_dead = false;
  bool taker_dead = false;
  bool sender_settled = false;
  bool taker_settled = false;
  bool taker_holds = false;
  bool has_sender_released = false;
  // The next step of each program.
  std::uint8_t sender = 0;
  std::uint8_t taker = 0;
  std::uint8_t owner = 0;
  std::uint8_t keeper = 0;
  // Values that the owner and the keeper have read.
  std::uint8_t sets_before = 0;
  bool saw_bit = false;
  bool is_on_its_way = false;
  bool said_free = false;
  auto operator<=>(const State&) const = default;
};

void step_sender(const Case& which, const State& state, std::vector<State>& next) {
  if (state.sender_dead || state.sender == 2) return;
  State after = state;
  if (state.sender == 0) {
    after.is_sent = true;
  } else if (state.is_taken || state.taker_dead || which.mutant == Mutant::releases_at_once) {
    after.sender_bit = false;
    after.has_sender_released = true;
    after.sender_settled = state.taker_dead;
  } else {
    return;  // the sender waits
  }
  ++after.sender;
  next.push_back(after);
}

void step_taker(const Case& which, const State& state, std::vector<State>& next) {
  if (state.taker_dead) return;
  State after = state;
  const auto set_bit = [&] { after.taker_bit = true; };
  const auto count_set = [&] { ++after.sets; };
  const auto count_head = [&] { after.is_taken = true; };
  switch (state.taker) {
    case 0:
      if (!state.is_sent) {
        // The lane of a dead sender is empty: the taker settles the death.
        if (!state.sender_dead || state.taker_settled) return;
        after.taker_settled = true;
        next.push_back(after);
        return;
      }
      if (which.mutant == Mutant::sets_before_bit) {
        count_set();
      } else if (which.mutant == Mutant::head_before_bit) {
        count_head();
      } else {
        set_bit();
      }
      break;
    case 1:
      which.mutant == Mutant::sets_before_bit || which.mutant == Mutant::head_before_bit
          ? set_bit()
          : count_set();
      break;
    case 2:
      if (which.mutant == Mutant::head_before_bit) {
        count_set();
      } else {
        count_head();
      }
      after.taker_holds = true;
      break;
    case 3:
      after.taker_bit = false;
      after.taker_holds = false;
      break;
    default:
      if (!state.sender_dead || state.taker_settled) return;
      after.taker_settled = true;
      next.push_back(after);
      return;
  }
  ++after.taker;
  next.push_back(after);
}

/// Tests once whether the block is free, beginning at any time.
void step_owner(const Case& which, const State& state, std::vector<State>& next) {
  State after = state;
  switch (state.owner) {
    case 0: after.sets_before = state.sets; break;
    case 1:
    case 2: {
      const bool reads_sender = (state.owner == 1) == which.reads_sender_first;
      after.saw_bit = state.saw_bit || (reads_sender ? state.sender_bit : state.taker_bit);
      break;
    }
    case 3:
      after.said_free =
          !state.saw_bit && (state.sets == state.sets_before || which.mutant == Mutant::no_sets);
      break;
    default: return;
  }
  ++after.owner;
  next.push_back(after);
}

/// Clears the bits of a dead process as Burial does.
void step_keeper(const Case& which, const State& state, std::vector<State>& next) {
  if (!state.sender_dead && !state.taker_dead) return;
  State after = state;
  bool& bit = state.sender_dead ? after.sender_bit : after.taker_bit;
  switch (state.keeper) {
    case 0: after.is_on_its_way = state.sender_dead && state.is_sent && !state.is_taken; break;
    case 1:
      if (!state.is_on_its_way || which.mutant == Mutant::clears_all_bits) bit = false;
      break;
    case 2:
      if (which.mutant != Mutant::settles_unheard &&
          !(state.sender_dead ? state.taker_settled : state.sender_settled || state.sender == 2)) {
        return;
      }
      bit = false;
      break;
    default: return;
  }
  ++after.keeper;
  next.push_back(after);
}

std::string fault(const State& state, bool stuck) {
  const bool is_coming = state.is_sent && !state.is_taken && !state.taker_dead;
  const bool sender_holds = !state.sender_dead && !state.has_sender_released;
  const bool taker_takes = !state.taker_dead && state.taker > 0 && state.taker < 4;
  if (state.said_free && (is_coming || sender_holds || state.taker_holds || taker_takes)) {
    return "the owner takes a held block for a free one";
  }
  if (stuck && (state.sender_bit || state.taker_bit)) return "a block is held by nobody";
  return {};
}

Exploration explore_case(const Case& which) {
  std::vector<ModelThread<State>> threads;
  const auto add = [&](std::string name, auto step) {
    threads.push_back({std::move(name), [which, step](const State& state, auto& next) {
                         step(which, state, next);
                       }});
  };
  add("sender", step_sender);
  add("taker", step_taker);
  add("owner", step_owner);
  add("keeper", step_keeper);
  add("kill", [](const Case& it, const State& state, auto& next) {
    if (state.sender_dead || state.taker_dead || it.victim == Victim::none) return;
    State& after = next.emplace_back(state);
    (it.victim == Victim::sender ? after.sender_dead : after.taker_dead) = true;
    after.taker_holds = state.taker_holds && !after.taker_dead;
  });
  return explore<State>({}, threads,
                        [](const State& state, bool stuck) { return fault(state, stuck); });
}

std::string found(Case which) {
  std::string failure;
  for (const bool order : {true, false}) {
    which.reads_sender_first = order;
    failure += explore_case(which).failure;
  }
  return failure;
}

TEST(LedgerModel, NoScheduleFreesAHeldBlockOrKeepsAFreeOne) {
  for (const Victim victim : {Victim::none, Victim::sender, Victim::taker}) {
    for (const bool order : {true, false}) {
      const Exploration explored = explore_case({.reads_sender_first = order, .victim = victim});
      EXPECT_EQ(explored.failure, "");
      EXPECT_GT(explored.state_count, 50U);
    }
  }
}

TEST(LedgerModel, MutantsAreFoundOut) {
  const auto expect_found = [](Victim victim, Mutant mutant) {
    EXPECT_NE(found({.victim = victim, .mutant = mutant}).find("takes a held block"),
              std::string::npos)
        << static_cast<int>(mutant);
  };
  expect_found(Victim::none, Mutant::no_sets);
  expect_found(Victim::none, Mutant::sets_before_bit);
  expect_found(Victim::none, Mutant::head_before_bit);
  expect_found(Victim::none, Mutant::releases_at_once);
  expect_found(Victim::sender, Mutant::clears_all_bits);
  expect_found(Victim::sender, Mutant::settles_unheard);
}

/// The lane of a dead sender is used again by the next process with its slot.
struct Reuse {
  std::uint8_t number = 1;  ///< the entry's number; 1 is the dead sender's first message
  std::uint8_t expected = 1;
  std::uint8_t taken = 0;
  std::uint8_t taker = 0;
  bool is_settled = false;
  bool has_sent = false;
  auto operator<=>(const Reuse&) const = default;
};

std::string explore_reuse(bool settles_before_it_clears) {
  const auto taker = [=](const Reuse& state, std::vector<Reuse>& next) {
    Reuse after = state;
    const bool clears = state.taker == (settles_before_it_clears ? 2 : 1);
    if (state.taker == 0 || state.taker == 3) {  // takes a message if there is one
      if (state.number != state.expected) return;
      ++after.taken;
      ++after.expected;
      if (state.taker == 0) after.taker = 1;
    } else if (clears) {
      after.number = 0;
      after.expected = 1;
      ++after.taker;
    } else {
      after.is_settled = true;
      ++after.taker;
    }
    next.push_back(after);
  };
  const auto successor = [](const Reuse& state, std::vector<Reuse>& next) {
    if (!state.is_settled || state.has_sent) return;
    Reuse& after = next.emplace_back(state);
    after.number = 1;
    after.has_sent = true;
  };
  return explore<Reuse>({}, {{"taker", taker}, {"successor", successor}},
                        [](const Reuse& state, bool stuck) -> std::string {
                          return stuck && state.taken != 2 ? "a message was lost" : "";
                        })
      .failure;
}

TEST(LedgerModel, ALaneIsClearedBeforeItsDeathIsSettled) {
  EXPECT_EQ(explore_reuse(false), "");
  EXPECT_NE(explore_reuse(true).find("a message was lost"), std::string::npos);
}

enum class LifeWords {
  one,
  two,                     ///< state and incarnation are two words
  two_incarnation_second,  ///< the keeper, too, writes the state first
};

/// A slot whose first process dies and which the keeper gives to a second process, while a sender
/// asks, at any time, whether the first one is alive.
struct Slot {
  bool is_alive = true;
  std::uint8_t incarnation = 1;
  std::uint8_t keeper = 0;
  std::uint8_t sender = 0;
  bool was_alive = false;  ///< the first process was alive when the sender began to ask
  bool saw_alive = false;  ///< the state that the sender has read
  std::uint8_t saw_incarnation = 0;
  bool said_alive = false;
  auto operator<=>(const Slot&) const = default;
};

std::string explore_slot(LifeWords words, bool reads_incarnation_first) {
  const auto keeper = [=](const Slot& state, std::vector<Slot>& next) {
    if (state.keeper == 3) return;
    Slot& after = next.emplace_back(state);
    const bool gives_the_state = words == LifeWords::two_incarnation_second;
    if (state.keeper == 0) {
      after.is_alive = false;
    } else if (words == LifeWords::one) {
      after.is_alive = true;
      after.incarnation = 2;
      after.keeper = 2;
    } else if ((state.keeper == 1) == gives_the_state) {
      after.is_alive = true;
    } else {
      after.incarnation = 2;
    }
    ++after.keeper;
  };
  const auto sender = [=](const Slot& state, std::vector<Slot>& next) {
    if (state.sender == 3) return;
    Slot& after = next.emplace_back(state);
    const auto read = [&](bool incarnation) {
      if (incarnation) {
        after.saw_incarnation = state.incarnation;
      } else {
        after.saw_alive = state.is_alive;
      }
    };
    if (state.sender == 0) {
      after.was_alive = state.is_alive && state.incarnation == 1;
    } else if (words == LifeWords::one) {
      read(true);
      read(false);
      after.sender = 2;
    } else {
      read((state.sender == 1) == reads_incarnation_first);
    }
    ++after.sender;
    after.said_alive = after.sender == 3 && after.saw_alive && after.saw_incarnation == 1;
  };
  return explore<Slot>({}, {{"keeper", keeper}, {"sender", sender}},
                       [](const Slot& state, bool) -> std::string {
                         return state.said_alive && !state.was_alive
                                    ? "a dead process is taken for a living one"
                                    : "";
                       })
      .failure;
}

TEST(LedgerModel, AStateIsNeverReadWithTheIncarnationOfAnotherProcess) {
  constexpr std::string_view kFault = "a dead process is taken for a living one";
  EXPECT_EQ(explore_slot(LifeWords::one, true), "");
  EXPECT_NE(explore_slot(LifeWords::two, true).find(kFault), std::string::npos);
  EXPECT_NE(explore_slot(LifeWords::two_incarnation_second, false).find(kFault), std::string::npos);
}

}  // namespace
}  // namespace weft::testing::ledger_model_test
