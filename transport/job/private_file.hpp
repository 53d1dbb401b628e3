#pragma once
/// Secrets, and the files that keep them.

#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

/// Returns this number of random bytes in hex. Throws io.
std::string random_hex(std::size_t bytes);

/// Creates a file that only its owner may read. Throws io, also if it exists already.
void write_private_file(const std::string& path, std::string_view text);

}  // namespace weft
