#pragma once
/// ValidationConfig: evaluations that run beside training.

#include <cstdint>
#include <functional>

#include <nlohmann/json.hpp>

#include <weft/checkpoint_config.hpp>

namespace weft {

/// Looks at checkpoints beside the training that makes them (Ray Train's validation): on a thread
/// of the program that called fit(), while the loops go on.
struct ValidationConfig {
  /// Gets a checkpoint that all workers have saved or reported, and its step; returns metrics, a
  /// JSON object. May run a job of a named loop, with run.resume = checkpoint.path. The checkpoint
  /// stays until the call returns. One call runs at a time; then the newest checkpoint is next, and
  /// older ones are skipped. fit() waits for the last one, unless the job fails or is told to end.
  /// An exception of the call is logged and kept, and ends nothing.
  std::function<nlohmann::json(const Checkpoint&, std::uint64_t)> function{};
};

}  // namespace weft
