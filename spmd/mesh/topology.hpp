#pragma once
/// Topology strings ("4x4") and the rule that makes a mesh from workers and chips.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/spmd/mesh/mesh.hpp>

namespace weft {

/// "16", "4x4", "2x2x4" -> sizes. Throws invalid_argument, quoting the text, for anything else.
std::vector<std::int64_t> parse_topology(std::string_view text);

/// ("data"), ("data","model"), ("data","fsdp","model"): the names an axis gets by default.
std::vector<std::string> default_axis_names(int num_axes);

/// What decides the shape of a job's mesh; empty or 0 means not given.
struct MeshRequest {
  std::vector<int> chips_per_worker{};  ///< one entry per worker, at least one
  std::vector<std::int64_t> topology{};
  std::vector<std::int64_t> mesh_shape{};
  std::vector<std::string> axis_names{};
  std::int64_t data_parallel_size = 0;
  std::int64_t model_parallel_size = 0;
};

/// The mesh of a job. In order: mesh_shape; data/model_parallel_size (a missing one follows from
/// the chip count); topology; else (workers, chips) named ("data","model"), or (chips,) named
/// ("data",) for one worker. Every size that is given must agree with the others and with the
/// number of chips: throws mesh_mismatch with both numbers (and the grid where there is one),
/// invalid_argument for names that don't fit. Workers with different chip counts need a mesh_shape.
Mesh make_mesh(const MeshRequest& request);

}  // namespace weft
