#pragma once
/// MNIST's file format: images and labels as IDX files (Y. LeCun, C. Cortes, C. Burges).

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mnist {

/// Grey images of one size, with a label each.
struct Images {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< image by image, row by row
  std::vector<std::int32_t> labels;

  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// Pixels of these images as floats of about mean 0 and variance 1.
  std::vector<float> normalized(std::span<const std::int64_t> indices) const;
  std::vector<std::int32_t> labels_of(std::span<const std::int64_t> indices) const;
};

/// `folder`/`prefix`-images-idx3-ubyte and -labels-idx1-ubyte. Throws weft::Error{io} where a file
/// can't be read and {corrupt}, with what was found and expected, where it isn't of the format.
Images load(const std::string& folder, const std::string& prefix);

}  // namespace mnist
