#pragma once
/// A text as numbers: each of its letters has one.

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace char_gpt {

struct Text {
  std::string letters;  ///< that occur, in ascending order; a letter's number is its place
  std::vector<std::int32_t> ids;

  /// `batch` windows of `length` letters, and the letters that follow each: a function of seed and
  /// step alone.
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> batch(std::int64_t batch,
                                                                        std::int64_t length,
                                                                        std::uint64_t seed,
                                                                        std::uint64_t step) const;
  std::string decode(std::span<const std::int32_t> numbers) const;
};

/// Throws weft::Error{io} for a file that can't be read and {invalid_argument} for one without
/// `length` + 1 letters.
Text read_text(const std::string& path, std::int64_t length);

}  // namespace char_gpt
