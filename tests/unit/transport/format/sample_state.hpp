#pragma once
/// Makes a small state table.

#include <vector>

#include "transport/format/state_table.hpp"

namespace weft {

inline Mesh sample_state_mesh() { return {{2, 2}, {"data", "model"}}; }

/// Returns a sharded parameter, its second moment, which isn't sharded, a scalar and an empty
/// tensor. The first tensor is at `offset`.
inline std::vector<StateEntry> sample_state(std::uint64_t offset = 4096) {
  Sharding by_model;
  by_model.dims[1] = AtomList{2};
  return {{"fc1.weight", {DType::bf16, {8, 64}}, by_model, offset},
          {"fc1.weight.v", {DType::f32, {8, 64}}, Sharding::closed(), offset + 512},
          {"t", {DType::i64, {}}, Sharding::closed(), offset + 2560},
          {"none", {DType::f32, {0}}, Sharding::open(1), offset + 2624}};
}

}  // namespace weft
