#pragma once
/// ValidationConfig: evaluations that run beside training.

#include <cstdint>
#include <functional>

#include <nlohmann/json.hpp>

#include <weft/job/checkpoint_config.hpp>

namespace weft {

/// Evaluates checkpoints while the training that makes them continues (Ray Train's validation). The
/// evaluation runs on a thread of the program that called fit().
struct ValidationConfig {
  /// Gets a checkpoint that all workers have saved or reported, and its step; returns metrics, a
  /// JSON object. The function may run a job of a named loop, with run.resume = checkpoint.path.
  /// The checkpoint is kept until the call returns. One call runs at a time. The next call gets the
  /// newest checkpoint, and older ones are skipped. fit() waits for the last call, unless the job
  /// fails or is told to end. An exception of the call is logged and stored, and doesn't end the
  /// job.
  std::function<nlohmann::json(const Checkpoint&, std::uint64_t)> function{};
};

}  // namespace weft
