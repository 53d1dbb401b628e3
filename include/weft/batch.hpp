#pragma once
/// Batch: the tensors of some items of a dataset, which a DeviceLoader gives.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/tensor.hpp>

namespace weft {

/// A global batch; each chip has its rows. Copies share the tensors.
class Batch {
 public:
  /// The tensor [batch_size, ...] of a field, in the dataset's order too. Throws invalid_argument.
  const Tensor& operator[](std::string_view field) const;
  const Tensor& operator[](std::size_t field) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// With pad_last, f32[batch_size]: 1 for a row of data, 0 for one that fills up. Else undefined.
  /// Losses take either as sample_weight.
  const Tensor& weight() const { return weight_; }
  /// Rows of data in the global batch: batch_size, or fewer in a batch that is filled up.
  std::int64_t num_items() const { return num_items_; }
  /// Its number in the epoch, from 0. Unlike a counter of the loop's own, it is right in a loop
  /// that continues an interrupted one.
  std::uint64_t index() const;

 private:
  friend class DeviceLoader;
  std::shared_ptr<const std::vector<Field>> fields_;
  std::vector<Tensor> tensors_;
  Tensor weight_;
  std::int64_t num_items_ = 0;
  std::uint64_t index_ = 0;
  std::shared_ptr<std::uint64_t> questions_;  // the loop's, of where it is
};

}  // namespace weft
