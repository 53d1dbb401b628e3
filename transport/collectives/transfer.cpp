#include "transport/collectives/transfer.hpp"

#include <algorithm>

namespace weft {

/// Chip r gets part r of every operand; the part of chip q lies at place q along concat_dim.
AllToAllParts all_to_all_parts(const CollectiveCall& call, std::size_t group_size) {
  const auto split = static_cast<std::size_t>(call.split_dim);
  const auto concat = static_cast<std::size_t>(call.concat_dim);
  AllToAllParts parts;
  parts.contiguous_from = std::max(split, concat);
  auto source_stride = static_cast<std::size_t>(byte_size(call.dtype));
  std::size_t destination_stride = source_stride;
  for (int dim = call.shape.size() - 1; dim >= 0; --dim) {
    const auto d = static_cast<std::size_t>(dim);
    const auto size = static_cast<std::size_t>(call.shape[dim]);
    parts.shape[d] = d == split ? size / group_size : size;
    parts.source_stride[d] = source_stride;
    parts.destination_stride[d] = destination_stride;
    source_stride *= size;
    destination_stride *= d == concat ? parts.shape[d] * group_size : parts.shape[d];
  }
  parts.source_step = parts.shape[split] * parts.source_stride[split];
  parts.destination_step = parts.shape[concat] * parts.destination_stride[concat];
  return parts;
}

}  // namespace weft
