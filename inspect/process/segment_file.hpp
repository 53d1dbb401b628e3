#pragma once
/// SegmentFile: reads a segment of another process without mapping it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weft {

/// Copies bytes out of a segment by read calls instead of a mapping. So no memory is allocated
/// where the segment has holes, and a segment that becomes shorter raises no signal. A copy can be
/// checked and then used, because no other process changes the copy.
class SegmentFile {
 public:
  /// Opens a segment. Returns nothing if it doesn't exist. Throws corrupt unless it is a plain file
  /// that belongs to this user alone, or io.
  static std::optional<SegmentFile> open(const std::string& name);
  SegmentFile(SegmentFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)) {}
  SegmentFile& operator=(SegmentFile&&) = delete;
  ~SegmentFile();

  const std::string& name() const { return name_; }
  /// Reads `bytes` bytes at `offset`. Returns false if the segment ends before them.
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const;

 private:
  SegmentFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;
  std::string name_;
};

}  // namespace weft
