#pragma once
/// InputFile: a file of a dataset, for reading by any thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/error.hpp>

#include "data/items/item_reading.hpp"

namespace weft {

class InputFile {
 public:
  /// Throws not_found or io with the path; invalid_argument for what is no plain file.
  explicit InputFile(std::string path);
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  /// When it was opened.
  std::uint64_t bytes() const { return bytes_; }
  /// Throws io, also where the file has become shorter.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  /// The first bytes: `count`, or all if there are fewer.
  std::vector<std::byte> head(std::uint64_t count) const;
  /// All bytes from `begin` on, in pieces of a multiple of 8 bytes but for the last.
  void scan(std::uint64_t begin,
            const std::function<void(std::span<const std::byte> piece)>& take) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t bytes_ = 0;
};

/// Runs the function; what it throws gets the path in front, as with_place() does.
template <typename Function>
auto of_file(const std::string& path, Function&& function) {
  return with_place(std::forward<Function>(function), [&] { return path; });
}

}  // namespace weft
