#pragma once
/// ReadAt: how a file is read by those who don't know where it lies.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace weft {

/// Fills `out` with the file's bytes from `offset` on; it is asked only for bytes that there are.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

}  // namespace weft
