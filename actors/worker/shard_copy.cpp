#include <weft/actors/worker/shard_copy.hpp>

#include <cstring>

namespace weft {

void copy_shard(const TensorType& type, const std::byte* global, const ShardBox& box,
                std::byte* shard) {
  const int dims = type.shape.size();
  // Trailing dims that the box covers wholly, and the one before them, are one run of bytes.
  std::int64_t run = byte_size(type.dtype);
  int outer = dims;
  while (outer > 0) {
    --outer;
    const auto d = static_cast<std::size_t>(outer);
    const bool whole = box.sizes[d] == type.shape[outer];
    run *= box.sizes[d];
    if (!whole) break;
  }
  if (run == 0) return;
  std::int64_t rows = 1;
  for (int d = 0; d < outer; ++d) rows *= box.sizes[static_cast<std::size_t>(d)];
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row;
    std::int64_t offset = 0;
    std::int64_t stride = byte_size(type.dtype);
    for (int d = dims - 1; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      std::int64_t coordinate = box.offsets[i];
      if (d < outer) {
        coordinate += rest % box.sizes[i];
        rest /= box.sizes[i];
      }
      offset += coordinate * stride;
      stride *= type.shape[d];
    }
    std::memcpy(shard + row * run, global + offset, static_cast<std::size_t>(run));
  }
}

}  // namespace weft
