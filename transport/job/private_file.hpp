#pragma once
/// Secrets, and the files that keep them.

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

/// Returns this number of random bytes in hex. Throws io.
std::string random_hex(std::size_t bytes);

/// Creates a file that only its owner may read. Throws io, also if it exists already.
void write_private_file(const std::string& path, std::string_view text);
/// Writes such a file in place of one that may exist. Readers see one of the two as a whole. Throws
/// io.
void replace_private_file(const std::string& path, std::string_view text);

/// Reads at most `bytes_max` of a plain file that belongs to this user and has none of the
/// permissions `forbidden`. The checked file is the one that is read, and a link isn't followed.
/// Returns nothing if there is no such name. Throws io, naming owner and mode, for another file.
std::optional<std::string> find_own_file(const std::string& path, mode_t forbidden,
                                         std::size_t bytes_max);

}  // namespace weft
