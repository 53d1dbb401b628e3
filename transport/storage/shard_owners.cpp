#include "transport/storage/shard_owners.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// A shard and the chips that hold it.
struct Replicated {
  std::size_t tensor = 0;
  Box box{};
  std::int64_t bytes = 0;
  std::vector<int> positions{};
};

std::vector<Replicated> shards_of(std::span<const ShardedTensor> tensors, const Mesh& mesh,
                                  std::span<const int> positions) {
  std::vector<Replicated> shards;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    std::map<std::vector<std::int64_t>, std::size_t> by_offsets;  // indices in `shards`
    for (const int position : positions) {
      const Box box = shard_box(tensors[t].type.shape, tensors[t].sharding, mesh, position).box;
      if (box.dims.num_elements() == 0) continue;
      const auto [known, is_new] =
          by_offsets.try_emplace({box.offsets.begin(), box.offsets.end()}, shards.size());
      if (is_new) {
        shards.push_back({t, box, TensorType{tensors[t].type.dtype, box.dims}.bytes(), {}});
      }
      shards[known->second].positions.push_back(position);
    }
  }
  return shards;
}

/// Returns into how many pieces a shard is cut so that each piece has at most about `share` bytes.
/// Each piece goes to a different chip.
std::int64_t pieces_of(const Replicated& shard, std::int64_t share) {
  if (shard.bytes <= share || shard.box.dims.size() == 0) return 1;
  const std::int64_t wanted = (shard.bytes + share - 1) / share;
  return std::min({wanted, static_cast<std::int64_t>(shard.positions.size()), shard.box.dims[0]});
}

}  // namespace

std::vector<int> all_positions(const Mesh& mesh) {
  std::vector<int> positions(static_cast<std::size_t>(mesh.size()));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

std::vector<OwnedBox> assign_owners(std::span<const ShardedTensor> tensors, const Mesh& mesh,
                                    std::span<const int> positions) {
  if (positions.empty()) fail(Errc::corrupt, "no chip is to own the shards");
  std::vector<Replicated> shards = shards_of(tensors, mesh, positions);
  std::int64_t total = 0;
  for (const Replicated& shard : shards) total += shard.bytes;
  const std::int64_t share = std::max<std::int64_t>(total / std::ssize(positions), 1);
  std::ranges::stable_sort(shards, std::ranges::greater(), &Replicated::bytes);

  std::vector<std::int64_t> bytes(static_cast<std::size_t>(mesh.size()));
  const auto less_loaded = [&](int a, int b) {
    return bytes[static_cast<std::size_t>(a)] < bytes[static_cast<std::size_t>(b)];
  };
  std::vector<OwnedBox> owned;
  for (Replicated& shard : shards) {
    const std::int64_t pieces = pieces_of(shard, share);
    std::ranges::stable_sort(shard.positions, less_loaded);
    for (std::int64_t i = 0; i < pieces; ++i) {
      Box box = shard.box;
      if (pieces > 1) {
        const std::int64_t rows = shard.box.dims[0];
        box.offsets[0] += rows * i / pieces;
        box.dims[0] = rows * (i + 1) / pieces - rows * i / pieces;
      }
      const int position = shard.positions[static_cast<std::size_t>(i)];
      bytes[static_cast<std::size_t>(position)] += shard.bytes / pieces;
      owned.push_back({shard.tensor, position, box});
    }
  }
  std::ranges::sort(owned, {}, [](const OwnedBox& box) {
    return std::tuple(box.position, box.tensor,
                      box.box.offsets.size() > 0 ? box.box.offsets[0] : 0);
  });
  return owned;
}

}  // namespace weft
