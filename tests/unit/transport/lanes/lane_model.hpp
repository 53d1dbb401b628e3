#pragma once
/// Models how senders and a taker wait for each other at the lanes of a port (invariants 7 to 9 of
/// lane_node.hpp) as programs of atomic steps. The mutants break the protocol.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "tests/support/interleavings.hpp"

namespace weft::testing::lane_model {

inline constexpr std::size_t kSendersMax = 2;
inline constexpr std::uint8_t kEntryCount = 2;

enum class Mutant {
  none,
  asks_for_sleepers_first,  ///< the sender loads `asleep` before it stores `number`
  sleeps_unseen,            ///< the taker doesn't look again after it has stored `asleep`
  reads_rung_late,          ///< the taker reads `rung` after its last look
  looks_before_it_waits,    ///< the sender loads `head` before it stores `sender_waits`
  clears_waits_late,        ///< the taker clears `sender_waits` after it has woken the sender
  reads_room_late,          ///< the sender reads `room` after it has found no room
  unwatches_unseen,         ///< the taker doesn't look again after it has cleared a bit
  forgets_the_bit,          ///< the taker finds an entry then, and doesn't set the bit again
  watches_before_number,    ///< the sender looks at its bit before it stores `number`
};

struct Case {
  std::size_t sender_count = 1;
  std::uint8_t message_count = 5;       ///< of each sender
  std::uint8_t watched_when_empty = 0;  ///< so many empty lanes stay watched
  Mutant mutant = Mutant::none;
};

/// A process that waits for changes of a word. `seen` is the value with which it compares the word.
struct Sleep {
  std::uint8_t seen = 0;
  bool is_asleep = false;
  auto operator<=>(const Sleep&) const = default;
};

struct Lane {
  std::array<std::uint8_t, kEntryCount> numbers{};
  std::uint8_t head = 0;
  bool sender_waits = false;
  std::uint8_t room = 0;
  auto operator<=>(const Lane&) const = default;
};

struct Sender {
  enum class At : std::uint8_t {
    look_for_room,
    read_room,
    announce,
    look_again,
    fall_asleep,
    ask_early,
    store_number,
    look_at_bit,
    set_bit,
    ask_for_sleepers,
    ring,
    done
  };
  At at = At::look_for_room;
  std::uint8_t sent = 0;
  bool saw_early = false;  ///< the bit, or the sleeper, that it found before it stored `number`
  Sleep sleep{};
  auto operator<=>(const Sender&) const = default;
};

struct Taker {
  enum class At : std::uint8_t {
    load_watched,
    visit,
    count_watched,
    clear_bit,
    look_after_clear,
    set_bit,
    store_head,
    ask_for_waiters,
    look_ahead,
    clear_waits,
    give_room,
    read_rung,
    look,
    announce,
    look_again,
    fall_asleep,
    wake_up
  };
  At at = At::load_watched;
  std::uint8_t lanes = 0;  ///< the watched lanes that it hasn't visited yet
  std::uint8_t lane = 0;
  std::array<std::uint8_t, kSendersMax> taken{};
  bool has_loaded = false;  ///< it looks for news, and has loaded `watched`
  Sleep sleep{};
  auto operator<=>(const Taker&) const = default;
};

struct State {
  std::array<Lane, kSendersMax> lanes{};
  std::uint8_t watched = 0;
  bool asleep = false;
  std::uint8_t rung = 0;
  std::array<Sender, kSendersMax> senders{};
  Taker taker{};
  auto operator<=>(const State&) const = default;
};

/// Explores every schedule of the case.
Exploration explore_case(const Case& which);

}  // namespace weft::testing::lane_model
