#pragma once
/// Draws images of digits, in files like those of MNIST.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace weft::testing {

inline void put_word(std::ofstream& out, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(number >> shift));
}

/// Draws images of 24 x 24 pixels. Digit d is a bar that is 3 pixels wide and begins at pixel 2 d;
/// it is vertical for even digits and horizontal for odd ones.
inline void draw_digits(const std::filesystem::path& folder, const std::string& prefix,
                        std::uint32_t count) {
  std::ofstream images(folder / (prefix + "-images-idx3-ubyte"), std::ios::binary);
  std::ofstream labels(folder / (prefix + "-labels-idx1-ubyte"), std::ios::binary);
  for (const std::uint32_t word : {0x0803U, count, 24U, 24U}) put_word(images, word);
  for (const std::uint32_t word : {0x0801U, count}) put_word(labels, word);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t digit = (i * 7 + i / 10) % 10;
    labels.put(static_cast<char>(digit));
    for (std::uint32_t y = 0; y < 24; ++y) {
      for (std::uint32_t x = 0; x < 24; ++x) {
        const std::uint32_t across = digit % 2 == 0 ? x : y;
        const bool ink = across >= 2 * digit && across < 2 * digit + 3;
        images.put(static_cast<char>(ink ? 200 + (i + x + y) % 50 : (i * x + y) % 40));
      }
    }
  }
}

/// Draws 320 images for training and 128 for testing.
inline void draw_digits(const std::filesystem::path& folder) {
  draw_digits(folder, "train", 320);
  draw_digits(folder, "t10k", 128);
}

}  // namespace weft::testing
