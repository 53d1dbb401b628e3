#pragma once
/// Where the programs of two workers part.

#include <string>

namespace weft {

struct Difference {
  int line = 0;
  std::string first, second;
};

/// The first line in which two listings (to_text) differ.
Difference first_difference(const std::string& first, const std::string& second);

}  // namespace weft
