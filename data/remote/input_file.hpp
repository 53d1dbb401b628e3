#pragma once
/// InputFile: reads a file of a dataset. Any thread may use it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/items/item_reading.hpp"

namespace weft {

class InputFile {
 public:
  /// Opens the file. Throws not_found or io with the path, and invalid_argument unless it is a
  /// plain file.
  explicit InputFile(std::string path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  /// Returns the size that the file had when it was opened.
  std::uint64_t bytes() const { return bytes_; }
  /// Fills `out` with the bytes from `offset` on. Throws io, also if the file was truncated
  /// meanwhile.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// Returns the first `count` bytes, or all bytes if there are fewer.
  std::vector<std::byte> head(std::uint64_t count) const;
  /// Reads all bytes from `begin` on, in pieces. The size of each piece except the last is a
  /// multiple of 8 bytes.
  void scan(std::uint64_t begin,
            const std::function<void(std::span<const std::byte> piece)>& take) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t bytes_ = 0;
};

/// Runs the function. Puts the path in front of the messages of its exceptions (with_place()).
template <typename Function>
auto of_file(const std::string& path, Function&& function) {
  return with_place(std::forward<Function>(function), [&] { return path; });
}

}  // namespace weft
