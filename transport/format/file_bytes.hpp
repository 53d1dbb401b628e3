#pragma once
/// Reads a file that anyone may have named: it ends, whatever it is.

#include <cstddef>
#include <string>
#include <vector>

namespace weft {

/// The bytes of a plain file, 8-byte aligned. Throws not_found where there is none; io where it
/// can't be read; invalid_argument for a folder, a fifo or a device, and for a file of more than
/// `bytes_max`.
std::vector<std::byte> read_file_bytes(const std::string& path, std::size_t bytes_max);

}  // namespace weft
