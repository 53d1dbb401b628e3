#pragma once
/// Finds the dataset item from which a loader read a faulty index, for error messages.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "chips/engine/engine.hpp"
#include "spmd/program/index_check.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {

/// Describes where the rows of a loaded batch come from. It is immutable, so any thread may use it.
class RowOrigin {
 public:
  virtual ~RowOrigin() = default;
  /// Returns text such as "field 'y' of item 17 of train.csv, which is row 3 of batch 5 of epoch
  /// 0".
  virtual std::string describe(std::int64_t row) const = 0;
};

/// The rows of a run's input that a loader has read.
struct LoadedRows {
  std::uint32_t input = 0;  ///< the number of the input in the program
  TensorType type;
  Sharding sharding;
  std::shared_ptr<const RowOrigin> origin;
};

/// Returns text such as "; it is in field 'y' of item 17 ..", which describes the first row with
/// the faulty index in the chip's part of the input. Returns "" if an op computed the index, or if
/// no loader has read the input.
std::string faulty_item(std::span<const LoadedRows> loaded, const Mesh& mesh, int position,
                        Engine& engine, const RunBuffers& buffers, const IndexFault& fault);

/// A function that calls faulty_item() for one chip of a run. The chip's thread calls it.
using FaultyItem = std::function<std::string(Engine&, const RunBuffers&, const IndexFault&)>;

}  // namespace weft
