#pragma once
/// StoredLoader: a DeviceLoader of a loop and its position, as checkpoints and state directories
/// have it (schema/loader.fbs).

#include <cstdint>
#include <string>

namespace weft {

/// A pass is a `for` over the loader: an epoch, or as much of it as the loop takes. The position
/// is a line over steps, so that it is written again only where a pass begins or ends.
struct StoredLoader {
  std::string dataset{};
  std::int64_t num_items = 0;
  std::int64_t batch_size = 0;
  std::int64_t batches_per_step = 0;
  std::uint64_t seed = 0;
  /// "train.cpp:41", where the loop made it. "": stored by a version without positions, for which
  /// the position followed from the step.
  std::string site{};
  std::uint64_t origin = 0;      ///< the step in which it was made
  std::uint64_t order_xxh3 = 0;  ///< of the items of its first batch
  std::uint64_t passes = 0;      ///< that have begun
  std::uint64_t taken = 0;       ///< batches of the last pass, after `step` steps
  std::uint64_t step = 0;
  std::uint64_t per_step = 0;  ///< batches that each further step takes
  bool is_over = true;         ///< the last pass had ended before the last of these steps began
  /// In a step of the last pass, a pass of another loader was open too.
  bool is_beside = false;

  /// The batches of the last pass that `at` steps have taken.
  std::uint64_t taken_at(std::uint64_t at) const {
    return at > step ? taken + per_step * (at - step) : taken;
  }

  friend bool operator==(const StoredLoader&, const StoredLoader&) = default;
};

}  // namespace weft
