#pragma once
/// StateHash: hashes of the state on a worker's chips at one step, to compare replicas.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>
#include <weft/tensor/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

/// A tensor of the state, and the offsets of its shards on the worker's chips.
struct HashedTensor {
  std::string name;
  TensorType type;  ///< type of the global tensor
  Sharding sharding;
  std::vector<std::uint64_t> offsets;  ///< offsets in the arena, by chip
};

/// Collects the hashes of one version of the state. Each chip adds its hashes on its own thread,
/// before the run that computes the next version, because that run may overwrite the hashed
/// version.
class StateHash {
 public:
  /// `positions` are the positions of the worker's chips in the mesh. The last chip that adds its
  /// hashes calls `on_complete`.
  StateHash(std::uint64_t step, std::vector<HashedTensor> tensors, const Mesh& mesh,
            std::vector<int> positions, std::function<void(const StateHash&)> on_complete);

  /// Returns the bytes of the shard at `offset`. They stay valid until the next call.
  using ReadShard = std::function<const std::byte*(std::uint64_t offset, std::size_t bytes)>;
  void add(int local_index, const ReadShard& read);
  void add(int local_index, const std::byte* arena) {
    add(local_index, [arena](std::uint64_t offset, std::size_t) { return arena + offset; });
  }

  std::uint64_t step() const { return step_; }
  const std::vector<HashedTensor>& tensors() const { return tensors_; }
  int num_chips() const { return static_cast<int>(positions_.size()); }
  /// Valid when all chips have called add(). piece() identifies the piece of the tensor that the
  /// chip has, and hash() is the hash of its bits. Chips with equal piece() should have equal
  /// hash().
  std::uint64_t piece(std::size_t tensor, int chip) const { return pieces_[at(tensor, chip)]; }
  std::uint64_t hash(std::size_t tensor, int chip) const { return hashes_[at(tensor, chip)]; }

 private:
  std::size_t at(std::size_t tensor, int chip) const {
    return tensor * positions_.size() + static_cast<std::size_t>(chip);
  }

  const std::uint64_t step_;
  const std::vector<HashedTensor> tensors_;
  const Mesh mesh_;
  const std::vector<int> positions_;
  const std::function<void(const StateHash&)> on_complete_;
  std::vector<std::uint64_t> pieces_;
  std::vector<std::uint64_t> hashes_;
  std::atomic<int> missing_;  ///< number of chips that haven't called add() yet
};

}  // namespace weft
