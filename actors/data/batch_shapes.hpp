#pragma once
/// BatchShapes: knows the shapes that a loader's batches can have, and chooses the shape of each
/// batch. Every shape needs its own compiled program, so there are few shapes: a single one, unless
/// the last batch of an epoch is smaller or sequences are cut to buckets.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include <weft/data/device_loader.hpp>
#include <weft/sharding/mesh.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// The type and sharding of a batch's fields. With pad_last, a weight follows the fields of the
/// dataset.
struct BatchLayout {
  std::vector<TensorType> types{};  ///< [rows, ...]
  std::vector<Sharding> shardings{};

  std::int64_t rows() const { return types.front().shape[0]; }
};

/// Only the loop's thread may use it.
class BatchShapes {
 public:
  /// `options.sampler` must be set. `last_rows` is the size of an epoch's last batch if it is
  /// smaller than the others, else 0. Throws invalid_argument for options that don't fit the
  /// dataset or the mesh.
  BatchShapes(const Dataset& dataset, const DeviceLoaderOptions& options, std::int64_t last_rows,
              const Mesh& mesh, const std::source_location& where);

  const std::vector<BatchLayout>& layouts() const { return layouts_; }
  struct Choice {
    std::size_t layout = 0;
    double padding = 0;  ///< the share of padding in the elements of bucketed fields
  };
  /// Returns the shape of a batch. Throws invalid_argument for an item that is longer than the last
  /// bucket.
  Choice choose(std::uint64_t batch);
  bool has_buckets() const { return !buckets_.empty(); }

 private:
  SamplerPtr sampler_;
  std::vector<std::int64_t> buckets_;
  bool has_small_last_;
  std::string dataset_;
  std::vector<BatchLayout> layouts_;  // by bucket; the layouts of last batches follow
  SampleOrderPtr order_;              // the order that was used last
};

}  // namespace weft
