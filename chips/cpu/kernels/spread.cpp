#include "chips/cpu/kernels/spread.hpp"

#include <algorithm>
#include <cstring>

namespace weft::kernels {

void write_spread(const Spread& spread, std::size_t element_bytes, const std::byte* from,
                  std::int64_t begin, std::int64_t count, std::byte* to) {
  for (const std::int64_t end = begin + count; begin < end;) {
    const std::int64_t row = begin / spread.columns;
    const std::int64_t column = begin % spread.columns;
    const std::int64_t run = std::min(spread.columns - column, end - begin);
    const std::size_t bytes = static_cast<std::size_t>(run) * element_bytes;
    if (spread.repeats_row) {
      std::memcpy(to, from + static_cast<std::size_t>(column) * element_bytes, bytes);
    } else {
      // Copies one element, and then doubles the copied part again and again.
      std::memcpy(to, from + static_cast<std::size_t>(row) * element_bytes, element_bytes);
      for (std::size_t done = element_bytes; done < bytes; done *= 2) {
        std::memcpy(to + done, to, std::min(done, bytes - done));
      }
    }
    to += bytes;
    begin += run;
  }
}

}  // namespace weft::kernels
