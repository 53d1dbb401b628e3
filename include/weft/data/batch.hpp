#pragma once
/// Batch: the tensors of some items of a dataset. A DeviceLoader makes batches.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/tensor/tensor.hpp>

namespace weft {

/// The tensors of one global batch; each chip has some of its rows. Copies share the tensors.
class Batch {
 public:
  /// Returns the tensor [batch_size, ...] of a field, by name or by its number in the dataset.
  /// Throws invalid_argument if there is no such field.
  const Tensor& operator[](std::string_view field) const;
  const Tensor& operator[](std::size_t field) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// With pad_last, returns f32[batch_size]: 1 for a row of data, 0 for a row of padding. Otherwise
  /// returns an empty tensor. Losses take both as sample_weight.
  const Tensor& weight() const { return weight_; }
  /// Returns the number of rows of data in the global batch: batch_size, or fewer in a padded
  /// batch.
  std::int64_t num_items() const { return num_items_; }
  /// Returns the number of the batch in its epoch, from 0. Unlike a counter of your own, this
  /// number is also correct in a loop that continues an interrupted one.
  std::uint64_t index() const;

 private:
  friend class DeviceLoader;
  std::shared_ptr<const std::vector<Field>> fields_;
  std::vector<Tensor> tensors_;
  Tensor weight_;
  std::int64_t num_items_ = 0;
  std::uint64_t index_ = 0;
  std::shared_ptr<std::uint64_t> questions_;  // JobLoaders::questions(), for index()
};

}  // namespace weft
