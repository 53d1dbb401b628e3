#pragma once
/// IndexCheck: decides which index values the op check_index accepts.

#include <cstdint>
#include <string>

#include <weft/tensor/error.hpp>

#include "spmd/program/program.hpp"

namespace weft {

/// The error for an index that isn't accepted. It has the number of the program input that holds
/// the index.
class IndexFault : public Error {
 public:
  IndexFault(std::string message, std::int64_t index, std::uint32_t input)
      : Error(Errc::invalid_argument, std::move(message)), index_(index), input_(input) {}

  std::int64_t index() const { return index_; }
  /// Returns the number of the input that holds the index; kNoId if the program computed it.
  std::uint32_t input() const { return input_; }

 private:
  std::int64_t index_;
  std::uint32_t input_;
};

struct IndexCheck {
  std::int64_t limit;           ///< accepts 0..limit-1
  std::int64_t ignored;         ///< another accepted value; 0: there is none
  std::int64_t new_tokens;      ///< if the index is a KeyValueCache's length, else -1
  std::string loc;              ///< source line of the op
  std::uint32_t input = kNoId;  ///< number of the input whose elements are the index
  std::string input_name;

  /// `source` is the value whose elements are the indices.
  IndexCheck(const Program& program, OpId op, ValueId source);

  bool allows(std::int64_t index) const {
    return (index >= 0 && index < limit) || (index == ignored && ignored != 0);
  }
  /// Throws IndexFault. The message names the index, or the cache that is full, and the op's line.
  [[noreturn]] void refuse(std::int64_t index) const;

 private:
  [[noreturn]] void refuse_tokens(std::int64_t length, const std::string& at) const;
};

}  // namespace weft
