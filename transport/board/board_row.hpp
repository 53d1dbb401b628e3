#pragma once
/// Functions that initialize and read one row of a board; see board_format.hpp.

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

}  // namespace weft
