#pragma once
/// StateTable: the tensors that a job keeps from step to step, with their places in a worker's
/// arenas; the positions of the worker's loaders; and the commands that its loop has read.
///
///   state table = envelope(StateTable)           (schema/state.fbs)

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "data/files/envelope.hpp"
#include "spmd/program/program.hpp"
#include "transport/format/state_kind.hpp"
#include "transport/format/stored_command.hpp"
#include "transport/format/stored_loader.hpp"

namespace weft {

inline constexpr Format kStateTableFormat{"state table", "weftstat", 1};

struct StateEntry {
  std::string name{};
  TensorType type{};  ///< type of the global tensor
  Sharding sharding{};
  std::uint64_t offset = 0;  ///< where each chip of the worker has its shard in its arena
  StateKind kind = StateKind::param;

  bool operator==(const StateEntry&) const = default;
};

struct StateTable {
  std::vector<StateEntry> tensors{};
  std::vector<StoredLoader> loaders{};  ///< in the order in which the loop made the loaders
  std::vector<CommandMark> commands{};  ///< the last commands that the loop has read

  bool operator==(const StateTable&) const = default;
};

std::vector<std::byte> encode_state_table(std::span<const StateEntry> tensors,
                                          const std::vector<StoredLoader>& loaders = {},
                                          std::span<const CommandMark> commands = {});

/// Decodes the table at the beginning of `bytes`, which are 8-byte aligned. Throws corrupt or
/// version. Every type and sharding of the result is in range, but the caller must check that the
/// shards are within an arena.
StateTable decode_state_table(std::span<const std::byte> bytes, const Mesh& mesh);

}  // namespace weft
