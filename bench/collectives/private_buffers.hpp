#pragma once
/// Allocates tensors in the process's own memory, for implementations that have no better memory.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "bench/collectives/rank.hpp"

namespace weft::bench {

/// Buffers for all ops. A larger op lets them grow; then all of their memory is used once.
class PrivateBuffers {
 public:
  Buffers of(Op op, std::size_t bytes, int ranks) {
    const Counts counts = counts_of(op, bytes / sizeof(float), ranks);
    const bool in_place = op == Op::all_reduce || op == Op::broadcast;
    const std::span<float> source = source_.get(counts.source);
    return {source, in_place ? source : destination_.get(counts.destination)};
  }

 private:
  /// A tensor that can grow, and whose memory is aligned to cache lines.
  class Tensor {
   public:
    std::span<float> get(std::size_t count) {
      if (count > count_) {
        const std::size_t bytes = (count * sizeof(float) + 63) / 64 * 64;
        data_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
        if (data_ == nullptr) throw std::bad_alloc();
        std::memset(data_.get(), 0, bytes);
        count_ = count;
      }
      return {data_.get(), count};
    }

   private:
    std::unique_ptr<float, decltype(&std::free)> data_{nullptr, &std::free};
    std::size_t count_ = 0;
  };

  Tensor source_;
  Tensor destination_;
};

}  // namespace weft::bench
