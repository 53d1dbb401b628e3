#pragma once
/// Random crops, flips and normalisation of pictures: torchvision's, as steps of a dataset.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <weft/dataset.hpp>

namespace weft {

/// A part of a picture, at random: its area and its ratio of width to height are drawn, the latter
/// by its logarithm, then its place. After ten parts that lie beyond the picture, the largest one
/// in the middle whose ratio is within the bounds. torchvision's RandomResizedCrop.
struct RandomArea {
  double area_min = 0.08;  ///< of the picture
  double area_max = 1;
  double ratio_min = 3.0 / 4;
  double ratio_max = 4.0 / 3;
};

/// A part of this size, at a random place in the picture with `padding` pixels of `fill` around it.
struct RandomCrop {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t padding = 0;
  float fill = 0;
};
/// The middle.
struct CenterCrop {
  std::int64_t height = 0;
  std::int64_t width = 0;
};
/// A random part, which gets this size as in ImageField. f32 only.
struct RandomResizedCrop {
  std::int64_t height = 0;
  std::int64_t width = 0;
  RandomArea area{};
};
/// Left becomes right.
struct RandomHorizontalFlip {
  double probability = 0.5;
};
/// (value - mean) / stddev, with a number for each channel, or one for all. f32 only.
struct Normalize {
  std::vector<float> mean{};
  std::vector<float> stddev{};
};
using ImageStep =
    std::variant<RandomCrop, CenterCrop, RandomResizedCrop, RandomHorizontalFlip, Normalize>;

/// A map() that takes a field [channels, height, width], f32 or i32, through steps, one after the
/// other; it becomes the first field, and the others stay as they are. Two datasets with equal
/// steps draw the same numbers in a zip(), so that a picture and its mask stay together. Throws
/// invalid_argument for another field and for steps that don't fit.
DatasetPtr transform_images(DatasetPtr source, std::vector<ImageStep> steps,
                            const std::string& field = "x");

}  // namespace weft
