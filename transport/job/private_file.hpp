#pragma once
/// Private files: files that only their owner can read, and random secrets to store in them.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// Returns `bytes` random bytes as hex digits. Throws io.
std::string random_hex(std::size_t bytes);

/// Creates a file that only its owner may read. Throws io, including if the file exists already.
void write_private_file(const std::string& path, std::string_view text);
/// Writes a private file, which replaces an existing file at once: readers see either the old file
/// or the complete new one. Throws io.
void replace_private_file(const std::string& path, std::string_view text);

/// Returns at most `bytes_max` bytes of a plain file that belongs to this user and has none of the
/// permissions `forbidden`. Reads the file that it has checked, and doesn't follow links. Returns
/// nothing if no file has this name. Throws io, with owner and mode, for any other file.
std::optional<std::string> find_own_file(const std::string& path, mode_t forbidden,
                                         std::size_t bytes_max);

}  // namespace weft
