#include "spmd/mesh/shard_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft {
namespace {

/// Copies the elements of one dim, and recursively the elements of the following dims.
class BoxCopy {
 public:
  BoxCopy(const TensorType& type, const ShardBox& box) : type_(type), box_(box) {
    const int dims = type.shape.size();
    std::size_t from = static_cast<std::size_t>(byte_size(type.dtype));
    std::size_t to = from;
    for (int dim = dims; dim-- > 0;) {
      const auto d = static_cast<std::size_t>(dim);
      from_strides_[d] = from;
      to_strides_[d] = to;
      from *= static_cast<std::size_t>(type.shape[dim]);
      to *= static_cast<std::size_t>(box.sizes[d]);
      inside_[d] = static_cast<std::size_t>(
          std::clamp(type.shape[dim] - box.offsets[d], std::int64_t{0}, box.sizes[d]));
    }
    shard_bytes_ = to;
    // Dim run_dim_ can be copied as one run with the dims after it, because the box covers those
    // completely.
    run_dim_ = dims - 1;
    while (run_dim_ > 0 && from_strides_[index(run_dim_ - 1)] == to_strides_[index(run_dim_ - 1)] &&
           covers(run_dim_)) {
      --run_dim_;
    }
  }

  void run(const std::byte* global, std::byte* shard) const {
    if (shard_bytes_ == 0) return;  // then the pointers may be invalid
    bool padded = false;
    for (int dim = 0; dim < type_.shape.size(); ++dim) {
      padded = padded || inside_[index(dim)] != static_cast<std::size_t>(box_.sizes[index(dim)]);
    }
    if (padded) std::memset(shard, 0, shard_bytes_);
    if (run_dim_ < 0) {
      std::memcpy(shard, global, shard_bytes_);
    } else {
      copy(0, global, shard);
    }
  }

 private:
  static std::size_t index(int dim) { return static_cast<std::size_t>(dim); }

  bool covers(int dim) const {
    return inside_[index(dim)] == static_cast<std::size_t>(type_.shape[dim]);
  }

  void copy(int dim, const std::byte* global, std::byte* shard) const {
    const std::size_t d = index(dim);
    if (inside_[d] == 0) return;
    global += static_cast<std::size_t>(box_.offsets[d]) * from_strides_[d];
    if (dim == run_dim_) {
      std::memcpy(shard, global, inside_[d] * to_strides_[d]);
      return;
    }
    for (std::size_t i = 0; i < inside_[d]; ++i) {
      copy(dim + 1, global + i * from_strides_[d], shard + i * to_strides_[d]);
    }
  }

  const TensorType& type_;
  const ShardBox& box_;
  std::array<std::size_t, kDimCountMax> from_strides_{};  // strides in bytes
  std::array<std::size_t, kDimCountMax> to_strides_{};
  std::array<std::size_t, kDimCountMax> inside_{};  // size of the part of the box within the tensor
  std::size_t shard_bytes_ = 0;
  int run_dim_ = -1;
};

}  // namespace

void copy_shard(const TensorType& type, const std::byte* global, const ShardBox& box,
                std::byte* shard) {
  BoxCopy(type, box).run(global, shard);
}

}  // namespace weft
