#include "spmd/reference/shards.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <weft/tensor/error.hpp>

#include "spmd/ops/elements.hpp"

namespace weft {
namespace {

std::size_t to_index(std::int64_t i) { return static_cast<std::size_t>(i); }

void check_shard(const Mesh& mesh, const CutTensor& tensor) {
  const auto& [name, global, local, sharding] = tensor;
  bool fits = global.dtype == local.dtype && global.shape.size() == local.shape.size();
  if (fits) {
    const auto shard = sharding.local_shape(mesh, global.shape);
    fits = std::ranges::equal(local.shape, std::span(shard).first(to_index(local.shape.size())));
  }
  if (!fits) {
    fail(Errc::invalid_argument,
         "simulate: \"{}\" is {} on a chip, which isn't a shard of {} by {}", name,
         local.to_string(), global.to_string(), sharding.to_string(mesh, local.shape.size()));
  }
}

/// Returns the shape that all shards form together: the global shape plus any padding.
Shape stored_shape(const Mesh& mesh, const Shape& local, const Sharding& sharding) {
  Shape stored = local;
  for (int dim = 0; dim < local.size(); ++dim)
    stored[dim] *= mesh.count(sharding.dims[to_index(dim)]);
  return stored;
}

}  // namespace

ChipElements cut_shards(const Mesh& mesh, const Elements& whole, const CutTensor& tensor) {
  check_shard(mesh, tensor);
  const auto& [name, global, local_type, sharding] = tensor;
  if (static_cast<std::int64_t>(whole.size()) != global.num_elements()) {
    fail(Errc::invalid_argument, "simulate: \"{}\" is {} but {} elements are given", name,
         global.to_string(), whole.size());
  }
  const Shape& local = local_type.shape;
  const Shape stored = stored_shape(mesh, local, sharding);
  Elements padded(to_index(stored.num_elements()),
                  is_floating(global.dtype) ? std::numeric_limits<double>::quiet_NaN() : 1);
  const std::array<std::int64_t, kDimCountMax> origin{};
  put(padded, box(stored, global.shape, origin), whole);
  ChipElements shards;
  for (int position = 0; position < mesh.size(); ++position) {
    shards.push_back(
        take(padded, box(stored, local, sharding.offsets(mesh, position, global.shape))));
  }
  return shards;
}

Elements join_shards(const Mesh& mesh, const ChipElements& shards, const CutTensor& tensor) {
  check_shard(mesh, tensor);
  const auto& [name, global_type, local_type, sharding] = tensor;
  const Shape& global = global_type.shape;
  const Shape& local = local_type.shape;
  const Shape stored = stored_shape(mesh, local, sharding);
  Elements whole(to_index(stored.num_elements()));
  std::vector<bool> written(whole.size(), false);
  for (int position = 0; position < mesh.size(); ++position) {
    const Elements& shard = shards[to_index(position)];
    const auto where = box(stored, local, sharding.offsets(mesh, position, global));
    for (std::size_t i = 0; i < where.size(); ++i) {
      double& element = whole[to_index(where[i])];
      const bool agrees = element == shard[i] || (std::isnan(element) && std::isnan(shard[i]));
      WEFT_CHECK(!written[to_index(where[i])] || agrees, name, position, where[i], element,
                 shard[i]);
      element = shard[i];
      written[to_index(where[i])] = true;
    }
  }
  const std::array<std::int64_t, kDimCountMax> origin{};
  return take(whole, box(stored, global, origin));
}

}  // namespace weft
