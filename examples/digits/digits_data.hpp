#pragma once
/// The UCI optical digits: reading, and the split into training and test images.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace digits {

inline constexpr std::int64_t kPixels = 64;
inline constexpr std::int64_t kClasses = 10;

/// Images as rows of kPixels floats from 0 to 1, labels 0 to 9.
struct Images {
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// The images of these indices.
  Images pick(std::span<const std::int64_t> indices) const;
};

struct Dataset {
  Images train;
  Images test;  ///< the last 20 % of the file
};

/// Throws weft::Error{io} or {corrupt}, with the line, for a file that isn't 65 numbers a line.
Dataset load(const std::string& path);

/// The images, each slanted, turned, scaled and moved a little (shear to 0.3, 0.2 rad, 15 %, 0.7
/// pixels), as other people would have written them. A function of the images, seed and step alone.
Images augmented(Images images, std::uint64_t seed, std::uint64_t step);

}  // namespace digits
