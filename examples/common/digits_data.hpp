#pragma once
/// The UCI optical digits: images of hand-written digits, 8 by 8 pixels, for training and for
/// tests.

#include <cstdint>
#include <string>

#include <weft/weft.hpp>

namespace digits {

inline constexpr std::int64_t kPixels = 64;
inline constexpr std::int64_t kClasses = 10;

/// Datasets with the fields "x", f32[64] from 0 to 1, and "y", the digit.
struct Data {
  /// Each image is sheared (by up to 0.3), rotated (0.2 rad), scaled (15 %) and moved (0.7 pixels)
  /// at random in each epoch, as if another person had written it.
  weft::DatasetPtr train;
  weft::DatasetPtr test;  ///< the last 20 % of the file
};

/// Loads the digits from a CSV file. If `redrawn` is false, the images remain unchanged. Throws as
/// csv_file() does.
Data load(const std::string& path, bool redrawn = true);

}  // namespace digits
