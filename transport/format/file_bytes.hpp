#pragma once
/// Reads a whole file of any origin, up to a maximum size.

#include <cstddef>
#include <string>
#include <vector>

namespace weft {

/// The bytes of a plain file, 8-byte aligned. Throws not_found if it doesn't exist; io if it can't
/// be read; invalid_argument for a folder, a fifo or a device, and for a file of more than
/// `bytes_max`.
std::vector<std::byte> read_file_bytes(const std::string& path, std::size_t bytes_max);

}  // namespace weft
