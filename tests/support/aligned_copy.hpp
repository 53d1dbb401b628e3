#pragma once
/// Copies bytes to memory with the alignment that a reader of frames needs.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace weft::testing {

/// A copy whose address is a multiple of 64. It isn't a byte longer than the original, so that
/// AddressSanitizer detects a read past its end.
class AlignedCopy {
 public:
  explicit AlignedCopy(std::span<const std::byte> bytes)
      : size_(bytes.size()), data_(new (kAlignment) std::byte[bytes.size()]) {
    std::ranges::copy(bytes, data_.get());
  }
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(std::byte* data) const { ::operator delete[](data, kAlignment); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], Delete> data_;
};

}  // namespace weft::testing
