#pragma once
/// Where the listings of two programs part.

#include <string>

namespace weft {

struct Difference {
  int line = 0;
  std::string first, second;
};

/// The first line in which two listings (to_text) differ: in what is computed, or, where that is
/// the same, in how it lies on the chips. Line 0: in nothing.
Difference first_difference(const std::string& first, const std::string& second);

}  // namespace weft
