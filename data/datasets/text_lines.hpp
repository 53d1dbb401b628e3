#pragma once
/// TextLines: where the lines of a text file are.

#include <cstdint>
#include <string>
#include <vector>

#include "data/datasets/input_file.hpp"

namespace weft {

/// The maximum of a line.
inline constexpr std::uint64_t kLineBytesMax = std::uint64_t{1} << 28;

enum class EmptyLines : std::uint8_t { kept, left_out };

/// Lines end with LF, or CR LF. A mark of UTF-8 at the beginning belongs to none.
class TextLines {
 public:
  /// Reads the file once. `left_out` leaves out lines of white space alone. Throws corrupt for a
  /// line beyond its maximum.
  TextLines(const std::string& path, EmptyLines empty);

  const InputFile& file() const { return file_; }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  /// Without its end.
  std::string read(std::int64_t line) const;
  /// Its number in the file, from 1 on. Reads the file up to it.
  std::size_t number(std::int64_t line) const;

 private:
  void find_lines(EmptyLines empty);

  const InputFile file_;
  std::vector<std::uint64_t> begins_;  // and the end
};

/// The number of the line, from 1 on, of a byte of the file.
std::size_t line_number(const InputFile& file, std::uint64_t offset);

}  // namespace weft
