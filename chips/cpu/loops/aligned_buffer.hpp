#pragma once
/// AlignedBuffer: memory outside the arenas, for kernels.

#include <array>
#include <cstddef>
#include <vector>

namespace weft::kernels {

/// Memory that begins at a multiple of 64 bytes and is initially zero.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)) {}

  std::size_t size() const { return lines_.size() * sizeof(Line); }
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }

 private:
  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  std::vector<Line> lines_;
};

}  // namespace weft::kernels
