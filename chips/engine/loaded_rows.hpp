#pragma once
/// The loaders' rows in a run's inputs, so that an error about an index can name its item.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "chips/engine/engine.hpp"
#include "spmd/program/index_check.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Immutable, for any thread.
class RowOrigin {
 public:
  virtual ~RowOrigin() = default;
  /// "field 'y' of item 17 of train.csv, which is row 3 of batch 5 of epoch 0".
  virtual std::string describe(std::int64_t row) const = 0;
};

/// An input of a run that a loader has read.
struct LoadedRows {
  std::uint32_t input = 0;  ///< its number
  TensorType type;
  Sharding sharding;
  std::shared_ptr<const RowOrigin> origin;
};

/// "; it is in field 'y' of item 17 ..": of the first row with the index in the chip's part of the
/// input. "" if the index was computed, or no loader has read the input.
std::string faulty_item(std::span<const LoadedRows> loaded, const Mesh& mesh, int position,
                        Engine& engine, const RunBuffers& buffers, const IndexFault& fault);

/// Says this of one of a run's chips. It is called on the device's thread.
using FaultyItem = std::function<std::string(Engine&, const RunBuffers&, const IndexFault&)>;

}  // namespace weft
