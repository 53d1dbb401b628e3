#pragma once
/// SegmentFile: reads a segment of another process without mapping it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace weft {

/// Copies bytes out of a segment with read calls. So unlike through a mapping, no memory is
/// allocated where the segment has holes, and a segment that gets shorter raises no signal. Each
/// copy may be used after it was checked, because no other process changes it.
class SegmentFile {
 public:
  /// Returns nothing if there is no such segment. Throws corrupt unless it is a plain file that
  /// belongs to this user alone, or io.
  static std::optional<SegmentFile> open(const std::string& name);
  SegmentFile(SegmentFile&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), name_(std::move(other.name_)) {}
  SegmentFile& operator=(SegmentFile&&) = delete;
  ~SegmentFile();

  const std::string& name() const { return name_; }
  /// Reads `bytes` at `offset`. Returns false if the segment ends before.
  bool read(std::uint64_t offset, void* to, std::size_t bytes) const;

 private:
  SegmentFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;
  std::string name_;
};

}  // namespace weft
