#include "chips/engine/state_hash.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "data/files/envelope.hpp"

namespace weft {
namespace {

using Dims = std::array<std::int64_t, kDimCountMax>;

/// Hashes the elements of a shard that belong to the tensor, without the padding at the ends of
/// dims.
class Elements {
 public:
  Elements(const TensorType& type, const Dims& sizes, const Dims& offsets)
      : dims_(type.shape.size()), sizes_(sizes) {
    bytes_ = byte_size(type.dtype);
    for (int dim = dims_; dim-- > 0;) {
      const auto d = static_cast<std::size_t>(dim);
      strides_[d] = static_cast<std::size_t>(bytes_);
      bytes_ *= sizes[d];
      inside_[d] = std::clamp(type.shape[dim] - offsets[d], std::int64_t{0}, sizes[d]);
    }
  }

  std::size_t bytes() const { return static_cast<std::size_t>(bytes_); }
  std::uint64_t hash(const std::byte* shard) const {
    const auto dims = static_cast<std::size_t>(dims_);
    if (std::equal(sizes_.begin(), sizes_.begin() + dims_, inside_.begin())) {
      return xxh3({shard, static_cast<std::size_t>(bytes_)});
    }
    std::vector<std::byte> inside;
    if (std::find(inside_.begin(), inside_.begin() + dims_, 0) == inside_.begin() + dims_) {
      gather(0, dims, shard, inside);
    }
    return xxh3(inside);
  }

 private:
  void gather(std::size_t dim, std::size_t dims, const std::byte* from,
              std::vector<std::byte>& to) const {
    const auto count = static_cast<std::size_t>(inside_[dim]);
    if (dim + 1 == dims) {
      to.insert(to.end(), from, from + count * strides_[dim]);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) gather(dim + 1, dims, from + i * strides_[dim], to);
  }

  const int dims_;
  const Dims sizes_;
  Dims inside_{};
  std::array<std::size_t, kDimCountMax> strides_{};  // strides in bytes
  std::int64_t bytes_ = 0;
};

}  // namespace

StateHash::StateHash(std::uint64_t step, std::vector<HashedTensor> tensors, const Mesh& mesh,
                     std::vector<int> positions, std::function<void(const StateHash&)> on_complete)
    : step_(step),
      tensors_(std::move(tensors)),
      mesh_(mesh),
      positions_(std::move(positions)),
      on_complete_(std::move(on_complete)),
      pieces_(tensors_.size() * positions_.size()),
      hashes_(pieces_.size()),
      missing_(num_chips()) {}

void StateHash::add(int local_index, const ReadShard& read) {
  const int position = positions_[static_cast<std::size_t>(local_index)];
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const HashedTensor& tensor = tensors_[t];
    const auto sizes = tensor.sharding.local_shape(mesh_, tensor.type.shape);
    const auto offsets = tensor.sharding.offsets(mesh_, position, tensor.type.shape);
    pieces_[at(t, local_index)] = xxh3(std::as_bytes(std::span(offsets)));
    const Elements elements(tensor.type, sizes, offsets);
    const std::byte* shard =
        read(tensor.offsets[static_cast<std::size_t>(local_index)], elements.bytes());
    hashes_[at(t, local_index)] = elements.hash(shard);
  }
  if (missing_.fetch_sub(1, std::memory_order_acq_rel) == 1) on_complete_(*this);
}

}  // namespace weft
