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

  IndexCheck(const Program& program, OpId op)
      : limit(program.op_attrs(op)[0]), ignored(program.op_attrs(op)[1]), loc(program.loc(op)) {}

  bool allows(std::int64_t index) const {
    return (index >= 0 && index < limit) || (index == ignored && ignored != 0);
  }
  /// Throws invalid_argument, naming the index and the op's line.
  [[noreturn]] void refuse(std::int64_t index) const;
};

}  // namespace weft
