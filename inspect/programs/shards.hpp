#pragma once
/// Shards: makes the data of `weft inspect shards`: the tensors that a job keeps on its chips from
/// step to step.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/format/state_table.hpp"

namespace weft {

/// Statistics of the elements of one shard. NaNs don't count in min and max.
struct ShardValues {
  double min = 0;
  double max = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  std::uint64_t digest = 0;  ///< XXH3 of the shard's bytes, including padding
};

/// One shard, and all chips that hold it.
struct TensorShard {
  std::vector<int> chips{};
  std::int64_t bytes = 0;
  ShardValues values{};
};

struct TensorShards {
  std::string name{};
  StateKind kind = StateKind::param;
  TensorType type{};       ///< type of the global tensor
  std::string sharding{};  ///< the result of Sharding::to_string()
  std::vector<TensorShard> shards{};
};

struct JobShards {
  std::uint64_t step = 0;  ///< the version that was read
  bool whole = true;  ///< false: the job continued meanwhile, so some values may be of later steps
  std::vector<TensorShards> tensors{};
};

/// Reads the state of a job, alive or dead, whose memory still exists. Selects the tensors whose
/// names contain the text `names`. Throws not_found if the job keeps no state (the message names
/// the setting for that) or if its memory is gone; version or corrupt.
JobShards read_shards(const Snapshot& job, const std::string& names);

std::string shards_text(const Snapshot& job, const JobShards& shards);
std::string shards_json(const Snapshot& job, const JobShards& shards);

}  // namespace weft
