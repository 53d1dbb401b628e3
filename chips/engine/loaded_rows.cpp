#include "chips/engine/loaded_rows.hpp"

#include <algorithm>
#include <vector>

#include "spmd/program/element.hpp"

namespace weft {

std::string faulty_item(std::span<const LoadedRows> loaded, const Mesh& mesh, int position,
                        Engine& engine, const RunBuffers& buffers, const IndexFault& fault) {
  const auto rows = std::ranges::find(loaded, fault.input(), &LoadedRows::input);
  if (rows == loaded.end()) return "";
  const auto& [dtype, shape] = rows->type;
  const auto sizes = rows->sharding.local_shape(mesh, shape);
  const auto offsets = rows->sharding.offsets(mesh, position, shape);
  std::int64_t row_elements = 1;
  for (int dim = 1; dim < shape.size(); ++dim) {
    row_elements *= sizes[static_cast<std::size_t>(dim)];
  }
  const std::int64_t num_rows = std::min(sizes[0], shape[0] - offsets[0]);
  std::vector<std::byte> part(static_cast<std::size_t>(std::max(num_rows, std::int64_t{0}) *
                                                       row_elements * byte_size(dtype)));
  engine.download(buffers.inputs.at(fault.input()), part);
  for (std::int64_t i = 0; i < num_rows * row_elements; ++i) {
    const double element = load_element(dtype, part.data() + i * byte_size(dtype));
    if (element != static_cast<double>(fault.index())) continue;
    return "; it is in " + rows->origin->describe(offsets[0] + i / row_elements);
  }
  return "";
}

}  // namespace weft
