#pragma once
/// ForeignElement: the form of a number in a file that another program wrote.

#include <cstdint>

namespace weft {

struct ForeignElement {
  char kind = 'f';  ///< NumPy's letter: b bool, i signed, u unsigned, f floating
  int bytes = 4;    ///< 1, 2, 4 or 8
  bool big_endian = false;

  friend bool operator==(const ForeignElement&, const ForeignElement&) = default;
};

}  // namespace weft
