#pragma once
/// RandAugment, and functions on pictures of bytes that it needs beside those of image_steps.hpp.

#include <cstdint>

#include <weft/image_transforms.hpp>
#include <weft/item_random.hpp>

#include "data/items/image_steps.hpp"

namespace weft {

using ByteImage = Image<std::uint8_t>;

// Pillow's ImageOps of these names, in place.

/// Keeps the upper bits of each pixel.
void posterize(const ByteImage& image, int bits);
/// Complements the pixels from a threshold on.
void solarize(const ByteImage& image, double threshold);
/// Each channel gets the values 0 and 255.
void auto_contrast(const ByteImage& image);
/// Each channel gets its values about equally often.
void equalize(const ByteImage& image);
/// ImageEnhance's Sharpness.
void adjust_sharpness(const ByteImage& image, double factor);

/// Throws invalid_argument for options that can't be, and for other fields than u8.
void check_augment(const RandAugment& step, const TensorType& type);
void apply_augment(const RandAugment& step, const ByteImage& image, ItemRandom& random);

}  // namespace weft
