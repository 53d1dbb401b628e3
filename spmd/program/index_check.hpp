#pragma once
/// IndexCheck: decides which index values the op check_index accepts.

#include <cstdint>
#include <string>

#include <weft/tensor/error.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The error for an index that isn't accepted. It contains the number of the program input from
/// which the index comes.
class IndexFault : public Error {
 public:
  IndexFault(std::string message, std::int64_t index, std::uint32_t input)
      : Error(Errc::invalid_argument, std::move(message)), index_(index), input_(input) {}

  std::int64_t index() const { return index_; }
  /// Returns the number of the input that has the index; kNoId if the program computed the index.
  std::uint32_t input() const { return input_; }

 private:
  std::int64_t index_;
  std::uint32_t input_;
};

struct IndexCheck {
  std::int64_t limit;           ///< accepts 0..limit-1
  std::int64_t ignored;         ///< another value that is accepted; 0: none
  std::int64_t new_tokens;      ///< number of tokens added to a KeyValueCache, else -1
  std::string loc;              ///< source line of the op
  std::uint32_t input = kNoId;  ///< number of the input that has the indices
  std::string input_name;

  /// `source` is the value whose elements are the indices.
  IndexCheck(const Program& program, OpId op, ValueId source);

  bool allows(std::int64_t index) const {
    return (index >= 0 && index < limit) || (index == ignored && ignored != 0);
  }
  /// Throws IndexFault. The message has the index, or the name of the cache that is full, and the
  /// op's source line.
  [[noreturn]] void refuse(std::int64_t index) const;

 private:
  [[noreturn]] void refuse_tokens(std::int64_t length, const std::string& at) const;
};

}  // namespace weft
