#pragma once
/// Finds the first difference between the listings of two programs.

#include <string>

namespace weft {

struct Difference {
  int line = 0;
  std::string first, second;
};

/// Returns the first line in which two listings (to_text) differ in their computation. If the
/// computations are equal, returns the first line in which the layouts on the chips differ. Line 0
/// means that nothing differs.
Difference first_difference(const std::string& first, const std::string& second);

}  // namespace weft
