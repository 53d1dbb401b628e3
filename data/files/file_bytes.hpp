#pragma once
/// Reads a whole file of at most a given size, or tells whether it is the same file as before.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// Returns the bytes of a plain file, 8-byte aligned. Throws like open_plain_file(), io if the file
/// can't be read, and invalid_argument if it has more than `bytes_max` bytes.
std::vector<std::byte> read_file_bytes(const std::string& path, std::size_t bytes_max);
/// Returns the same bytes as text.
std::string read_file_text(const std::string& path, std::size_t bytes_max);
/// Acts like read_file_text(), but returns nothing if there is no such file.
std::optional<std::string> find_file_text(const std::string& path, std::size_t bytes_max);

/// Returns a text that is another one after the file has changed: its path without links, its size
/// and the time of its last change.
std::string file_identity(const std::string& path);

}  // namespace weft
