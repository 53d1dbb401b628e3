#include <weft/inspect/debug.hpp>

#include <algorithm>
#include <array>

#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

/// Returns the two dims that are shown as rows and columns: sharded dims if there are any, else the
/// first dims; -1 stands for a dim that the tensor lacks.
std::array<int, 2> shown_dims(const Sharding& sharding, int num_dims) {
  std::array<int, 2> shown{-1, -1};
  std::size_t count = 0;
  for (const bool sharded : {true, false}) {
    for (int dim = 0; dim < num_dims && count < shown.size(); ++dim) {
      const bool is_sharded = !sharding.dims[static_cast<std::size_t>(dim)].empty();
      if (is_sharded == sharded) shown[count++] = dim;
    }
  }
  if (count == shown.size()) std::ranges::sort(shown);
  return shown;
}

}  // namespace

std::string visualize_tensor_sharding(const Tensor& tensor, std::source_location loc) {
  Call call("visualize_tensor_sharding", loc);
  const Mesh* mesh = call.trace().runtime().mesh();
  if (mesh == nullptr) {
    fail(Errc::unavailable, "visualize_tensor_sharding: the loop has no mesh (at {})",
         file_line(loc));
  }
  const NodePtr node = call.node(tensor);
  if (call.trace().is_pending(*node)) {
    call.refuse("{} isn't computed yet; call sync() first", node->label());
  }
  const Sharding sharding = node->input_sharding();
  const Shape& shape = node->type.shape;
  const auto [row_dim, column_dim] = shown_dims(sharding, shape.size());
  const auto local = sharding.local_shape(*mesh, shape);
  const auto size = [&](int dim) {
    return dim < 0 ? std::int64_t{1} : local[static_cast<std::size_t>(dim)];
  };
  const auto parts = [&](int dim) {
    return dim < 0 || size(dim) == 0 ? std::size_t{1}
                                     : static_cast<std::size_t>(mesh->count(
                                           sharding.dims[static_cast<std::size_t>(dim)]));
  };
  std::vector<std::vector<std::string>> cells(parts(row_dim),
                                              std::vector<std::string>(parts(column_dim)));
  std::size_t width = 0;
  for (int position = 0; position < mesh->size(); ++position) {
    const auto offsets = sharding.offsets(*mesh, position, shape);
    const auto part = [&](int dim) {
      return dim < 0 || size(dim) == 0
                 ? std::size_t{0}
                 : static_cast<std::size_t>(offsets[static_cast<std::size_t>(dim)] / size(dim));
    };
    std::string& cell = cells[part(row_dim)][part(column_dim)];
    cell += fmt::format("{}{}", cell.empty() ? "" : " ", mesh->device_at(position));
    width = std::max(width, cell.size());
  }
  std::string text = fmt::format("{} {}\n", node->label(), sharding.to_string(*mesh, shape.size()));
  if (row_dim >= 0) text += fmt::format("rows of dim {}: {}", row_dim, size(row_dim));
  if (column_dim >= 0) text += fmt::format(", columns of dim {}: {}", column_dim, size(column_dim));
  if (row_dim >= 0) text += '\n';
  for (const auto& row : cells) {
    text += '|';
    for (const std::string& cell : row) text += fmt::format(" {:{}} |", cell, width);
    text += '\n';
  }
  return text;
}

}  // namespace weft
