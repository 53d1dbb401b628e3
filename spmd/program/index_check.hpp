#pragma once
/// IndexCheck: the index values that check_index accepts.

#include <cstdint>
#include <string>

#include "spmd/program/program.hpp"

namespace weft {

struct IndexCheck {
  std::int64_t limit;    ///< accepts 0..limit-1,
  std::int64_t ignored;  ///< and this value; 0: no other
  std::string loc;       ///< of the op
  std::string cache;     ///< of a KeyValueCache, whose last new position the index is: its name

  IndexCheck(const Program& program, OpId op);

  bool allows(std::int64_t index) const {
    return (index >= 0 && index < limit) || (index == ignored && ignored != 0);
  }
  /// Throws invalid_argument, naming the index, or the cache that is full, and the op's line.
  [[noreturn]] void refuse(std::int64_t index) const;
};

}  // namespace weft
