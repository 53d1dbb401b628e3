#pragma once
/// AliasTable: draws numbers with given probabilities in constant time (A. J. Walker, 1977; the
/// table is built by the method of M. D. Vose, 1991).

#include <cstdint>
#include <vector>

#include "data/items/words.hpp"

namespace weft {

class AliasTable {
 public:
  /// Throws invalid_argument if a weight is negative or not finite, or all weights are 0.
  explicit AliasTable(const std::vector<double>& weights);

  std::int64_t draw(WordSequence& words) const {
    const Column& column = columns_[number_below(words, columns_.size())];
    const std::uint64_t high = words();
    const double share = static_cast<double>((high << 32 | words()) >> 11) * 0x1p-53;
    return share < column.share ? &column - columns_.data() : column.other;
  }

 private:
  /// A column of the table. If a draw hits the column, the result is the column's own number with
  /// the probability `share`, and otherwise `other`.
  struct Column {
    double share = 0;
    std::int64_t other = 0;
  };
  std::vector<Column> columns_;
};

}  // namespace weft
