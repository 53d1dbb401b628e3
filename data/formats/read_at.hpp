#pragma once
/// ReadAt: reads parts of a file for callers that don't know where it is stored.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace weft {

/// A function that fills `out` with the file's bytes beginning at `offset`. Callers read only bytes
/// that exist.
using ReadAt = std::function<void(std::uint64_t offset, std::span<std::byte> out)>;

}  // namespace weft
