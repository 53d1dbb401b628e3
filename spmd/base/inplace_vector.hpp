#pragma once
/// InplaceVector: a vector of at most N elements, which are stored in the object itself (like
/// C++26's std::inplace_vector).

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>

#include <weft/tensor/error.hpp>

namespace weft {

/// The elements must be trivially copyable. Growing beyond N elements is an internal error.
template <typename T, std::size_t N>
class InplaceVector {
  static_assert(std::is_trivially_copyable_v<T> && N < 256);

 public:
  using value_type = T;

  InplaceVector() {}
  explicit InplaceVector(std::size_t size) : size_(static_cast<std::uint8_t>(size)) {
    WEFT_CHECK(size <= N, size, N);
    std::uninitialized_value_construct_n(elements_.data(), size);
  }

  InplaceVector(std::initializer_list<T> elements) { append_range(elements); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
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
    std::construct_at(elements_.data() + size_++, element);
  }
  template <typename Range>
  void append_range(const Range& range) {
    for (const T& element : range) push_back(element);
  }

 private:
  std::uint8_t size_ = 0;
  union {  // the union leaves elements from index size_ on uninitialized
    std::array<T, N> elements_;
  };
};

}  // namespace weft
