#pragma once
/// RunSum: combines the elements of contiguous runs of memory with a function such as a sum. The
/// order depends only on the sizes of the runs.

#include <cstdint>

#include "chips/cpu/loops/element.hpp"

namespace weft::kernels {

/// RunSum for integers and pred, for which any order gives the same result.
template <typename T, typename F>
class RunSum {
 public:
  using C = Compute<T>;
  RunSum(C identity, F f) : f_(f), sum_(identity) {}

  void add(const T* x, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) sum_ = f_(sum_, load(x[i]));
  }
  C value() const { return sum_; }

 private:
  F f_;
  C sum_;
};

/// RunSum for floating dtypes. Four vectors of sums are computed at the same time and combined at
/// the end, because with a single sum every addition would wait for the previous addition. The
/// vector size is the same on every processor, because it determines the order of summation.
template <typename T, typename F>
requires kIsFloating<T>
class RunSum<T, F> {
 public:
  using C = Compute<T>;
  RunSum(C identity, F f) : f_(f), rest_(identity) {
    for (Vector& sum : sums_) {
      for (int j = 0; j < kWidth; ++j) sum[j] = identity;
    }
  }

  void add(const T* x, std::int64_t size) {
    std::int64_t i = 0;
    for (; i + 4 * kWidth <= size; i += 4 * kWidth) {
      for (std::size_t v = 0; v < 4; ++v)
        add_vector(v, x + i + static_cast<std::int64_t>(v) * kWidth);
    }
    for (std::size_t v = 0; i + kWidth <= size; i += kWidth, ++v) add_vector(v, x + i);
    for (; i < size; ++i) rest_ = f_(rest_, load(x[i]));
  }

  C value() const {
    const Vector vector = f_(f_(sums_[0], sums_[1]), f_(sums_[2], sums_[3]));
    C sum = rest_;
    for (int j = 0; j < kWidth; ++j) sum = f_(sum, vector[j]);
    return sum;
  }

 private:
  typedef C Vector __attribute__((vector_size(16)));
  static constexpr int kWidth = 16 / sizeof(C);

  void add_vector(std::size_t v, const T* x) {
    Vector elements{};
    for (int j = 0; j < kWidth; ++j) elements[j] = load(x[j]);
    sums_[v] = f_(sums_[v], elements);
  }

  F f_;
  Vector sums_[4];  // not std::array, which drops the vector attribute
  C rest_;
};

/// Combines the elements of one run.
template <typename T, typename F>
Compute<T> combine_run(const T* x, std::int64_t size, Compute<T> identity, F f) {
  RunSum<T, F> sum(identity, f);
  sum.add(x, size);
  return sum.value();
}

}  // namespace weft::kernels
