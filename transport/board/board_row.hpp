#pragma once
/// Functions that initialize and read one row of a board; see board_format.hpp.

#include <sched.h>

#include "transport/board/board.hpp"
#include "transport/board/board_format.hpp"
#include "transport/memory/shared_field.hpp"
#include "transport/memory/text_words.hpp"

namespace weft {

/// Initializes the row of an actor that hasn't started.
void init_row(board_format::BoardRowV2& row, ActorKind kind, int worker, int chip);

/// Reads a row between two writes. After a bounded number of tries, returns the row as it is,
/// marked `torn`.
ActorRow read_row(const board_format::BoardRowV2& row);

/// Calls `read` until no write was in progress during a call. Returns false after a bounded number
/// of failed tries.
template <typename Read>
bool read_between_writes(const std::uint64_t& sequence, const Read& read) {
  constexpr int kTryCount = 100;
  constexpr int kTryCountBeforeYield = 10;  // enough, since a writer needs less than a microsecond
  for (int i = 0; i < kTryCount; ++i) {
    if (i >= kTryCountBeforeYield) sched_yield();
    const std::uint64_t before = load_field(sequence);
    read();
    if (before % 2 == 0 && load_field(sequence) == before) return true;
  }
  return false;
}

}  // namespace weft
