#pragma once
/// The UCI optical digits: images of hand-written digits, 8 by 8, for training and for tests.

#include <cstdint>
#include <string>

#include <weft/weft.hpp>

namespace digits {

inline constexpr std::int64_t kPixels = 64;
inline constexpr std::int64_t kClasses = 10;

/// Fields "x", f32[64] from 0 to 1, and "y", the digit.
struct Data {
  /// Each image slanted, turned, scaled and moved a little (shear to 0.3, 0.2 rad, 15 %, 0.7
  /// pixels), in each epoch otherwise, as other people would have written it.
  weft::DatasetPtr train;
  weft::DatasetPtr test;  ///< the last 20 % of the file
};

/// Throws as csv_file() does. `redrawn`: false leaves the images as they are.
Data load(const std::string& path, bool redrawn = true);

}  // namespace digits
