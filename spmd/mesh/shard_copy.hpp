#pragma once
/// Copies shards out of a global tensor in host memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/tensor/type.hpp>

namespace weft {

/// A box of a global tensor: for each dim, its offset and size in elements.
struct ShardBox {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> sizes;
};

/// Copies the box from row-major `global`, which has this type, to contiguous row-major `shard`.
/// Elements of the box beyond the type's shape become zeros.
void copy_shard(const TensorType& type, const std::byte* global, const ShardBox& box,
                std::byte* shard);

}  // namespace weft
