#pragma once
/// InplaceVector: a vector of at most N elements that lie in it (C++26's std::inplace_vector).

#include <array>
#include <cstddef>

#include <weft/spmd/error.hpp>

namespace weft {

/// For plain values. Growing beyond N is an internal error.
template <typename T, std::size_t N>
class InplaceVector {
 public:
  using value_type = T;

  InplaceVector() = default;
  explicit InplaceVector(std::size_t size) : size_(size) { WEFT_CHECK(size <= N, size, N); }

  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return elements_[i]; }
  const T& operator[](std::size_t i) const { return elements_[i]; }
  T* data() { return elements_.data(); }
  const T* data() const { return elements_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

  void push_back(const T& element) {
    WEFT_CHECK(size_ < N, size_, N);
    elements_[size_++] = element;
  }

 private:
  std::size_t size_ = 0;
  std::array<T, N> elements_{};  // those from size_ on have never been set
};

}  // namespace weft
