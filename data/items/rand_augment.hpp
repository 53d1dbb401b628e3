#pragma once
/// Checks and applies RandAugment. Declares the functions for pictures of bytes that it needs
/// besides those of image_steps.hpp.

#include <cstdint>

#include <weft/data/image_transforms.hpp>
#include <weft/data/item_random.hpp>

#include "data/items/image_steps.hpp"

namespace weft {

using ByteImage = Image<std::uint8_t>;

// The following functions do the same as the functions of Pillow's ImageOps with the same names,
// but in place.

/// Keeps the upper `bits` bits of each pixel.
void posterize(const ByteImage& image, int bits);
/// Replaces pixels that are at least `threshold` by their complements.
void solarize(const ByteImage& image, double threshold);
/// Stretches the values of each channel to the range 0 to 255.
void auto_contrast(const ByteImage& image);
/// Spreads the values of each channel so that they occur about equally often.
void equalize(const ByteImage& image);
/// Changes the sharpness like Pillow's ImageEnhance.Sharpness.
void adjust_sharpness(const ByteImage& image, double factor);

/// Throws invalid_argument if the options are invalid, or the field isn't u8.
void check_augment(const RandAugment& step, const TensorType& type);
void apply_augment(const RandAugment& step, const ByteImage& image, ItemRandom& random);

}  // namespace weft
