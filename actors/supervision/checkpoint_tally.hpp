#pragma once
/// CheckpointTally: which checkpoint of a run every worker has a part in. Pure,
/// and of bounded size.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "actors/protocol/protocol.hpp"

namespace weft {

class CheckpointTally {
 public:
  explicit CheckpointTally(int num_workers) : num_workers_(static_cast<std::size_t>(num_workers)) {}

  struct Whole {
    std::uint64_t step = 0;
    std::string path{};
  };

  /// Of any worker, with or without a checkpoint.
  void reported(const Report& report);
  /// Loops begin at `step`: later checkpoints are made again.
  void begin_generation(std::uint64_t step);
  /// The latest that all workers have reported.
  const std::optional<Whole>& last() const { return last_; }
  /// "" for none.
  std::string last_path() const { return last_ ? last_->path : ""; }

 private:
  struct Part {
    std::uint64_t step = 0;
    std::set<int> workers{};
  };
  std::size_t num_workers_;
  std::map<std::string, Part> parts_;  ///< by path: reported by some, not before the last whole one
  std::optional<Whole> last_;
};

}  // namespace weft
