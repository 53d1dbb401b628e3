#pragma once
/// TextLines: finds the lines of a text file, and reads single lines.

#include <cstdint>
#include <string>
#include <vector>

#include "data/remote/input_file.hpp"

namespace weft {

/// The maximum size of a line in bytes.
inline constexpr std::uint64_t kLineBytesMax = std::uint64_t{1} << 28;

enum class EmptyLines : std::uint8_t { kept, left_out };

/// The lines of a file. They end with LF or CR LF. A UTF-8 byte order mark at the beginning isn't
/// part of a line.
class TextLines {
 public:
  /// Reads the file once. `empty` says whether lines of only white space are omitted. Throws
  /// corrupt if a line is longer than kLineBytesMax.
  TextLines(const std::string& path, EmptyLines empty);

  const InputFile& file() const { return file_; }
  std::int64_t size() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  /// Returns the line without the LF or CR LF at its end.
  std::string read(std::int64_t line) const;
  /// Returns the line's number in the file, counted from 1. Reads the file up to the line.
  std::size_t number(std::int64_t line) const;

 private:
  void find_lines(EmptyLines empty);

  const InputFile file_;
  std::vector<std::uint64_t> begins_;  // offsets of the lines, and the end of the file
};

/// Returns the number, counted from 1, of the line that contains the byte at `offset`.
std::size_t line_number(const InputFile& file, std::uint64_t offset);

}  // namespace weft
