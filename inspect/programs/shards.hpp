#pragma once
/// `weft inspect shards`: the tensors that a job keeps from step to step, on its chips.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"
#include "transport/format/state_table.hpp"

namespace weft {

/// What the elements of one shard come to. NaNs take no part in min and max.
struct ShardValues {
  double min = 0;
  double max = 0;
  std::uint64_t nans = 0;
  std::uint64_t infinities = 0;
  std::uint64_t digest = 0;  ///< XXH3 of the shard's bytes, with its padding
};

/// One shard, which all these chips hold.
struct TensorShard {
  std::vector<int> chips{};
  std::int64_t bytes = 0;
  ShardValues values{};
};

struct TensorShards {
  std::string name{};
  StateKind kind = StateKind::param;
  TensorType type{};       ///< global
  std::string sharding{};  ///< as Sharding::to_string() has it
  std::vector<TensorShard> shards{};
};

struct JobShards {
  std::uint64_t step = 0;  ///< the version that was read
  bool whole = true;       ///< false: the job went on meanwhile, and values may be of later steps
  std::vector<TensorShards> tensors{};
};

/// Reads the state of a job, alive or dead, whose memory is still there. `names`: only tensors in
/// whose name this is. Throws not_found, with the setting that keeps it, where the job keeps no
/// state or its memory is gone; version or corrupt.
JobShards read_shards(const Snapshot& job, const std::string& names);

std::string shards_text(const Snapshot& job, const JobShards& shards);
std::string shards_json(const Snapshot& job, const JobShards& shards);

}  // namespace weft
