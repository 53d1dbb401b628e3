#pragma once
/// Cutting shards out of a global tensor in host memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include <weft/type.hpp>

namespace weft {

/// A box of a global tensor: where it begins and how large it is, in elements per dim.
struct ShardBox {
  std::span<const std::int64_t> offsets;
  std::span<const std::int64_t> sizes;
};

/// Copies the box out of row-major `global` to contiguous row-major `shard`. Both have the type's
/// element size. What of the box lies behind the type's shape is zeros.
void copy_shard(const TensorType& type, const std::byte* global, const ShardBox& box,
                std::byte* shard);

}  // namespace weft
