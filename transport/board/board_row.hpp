#pragma once
/// Access to one row of a board; see board_format.hpp.

#include <atomic>

#include "transport/board/board.hpp"
#include "transport/board/board_format.hpp"
#include "transport/memory/text_words.hpp"

namespace weft {

/// Shared fields are read and written through these only. The store releases: a reader that sees it
/// sees the odd sequence number stored before it. The load acquires: the sequence number that is
/// read next isn't older than the field.
template <typename T>
void store_field(T& field, T value) {
  std::atomic_ref<T>(field).store(value, std::memory_order_release);
}
template <typename T>
T load_field(const T& field) {
  return std::atomic_ref<T>(const_cast<T&>(field)).load(std::memory_order_acquire);
}

/// The row of an actor that hasn't started.
void init_row(board_format::BoardRowV1& row, ActorKind kind, int worker, int chip);

/// Tries a bounded number of times to read a row between two writes.
ActorRow read_row(const board_format::BoardRowV1& row);

}  // namespace weft
