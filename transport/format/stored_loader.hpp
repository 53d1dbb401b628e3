#pragma once
/// StoredLoader: a DeviceLoader of a loop and its position, in the form that checkpoints and state
/// directories store (schema/loader.fbs).

#include <cstdint>
#include <string>

namespace weft {

/// The position of a loader. A pass is a `for` over the loader, which takes an epoch or a part of
/// it. The position is stored as a linear function of the step, so it must be written again only
/// when a pass begins or ends.
struct StoredLoader {
  std::string dataset{};
  std::int64_t num_items = 0;
  std::int64_t batch_size = 0;
  std::int64_t batches_per_step = 0;
  std::uint64_t seed = 0;
  /// The source line in which the loop made the loader: "train.cpp:41". In files of versions that
  /// didn't store positions this is "", and the position follows from the step.
  std::string site{};
  std::uint64_t origin = 0;      ///< the step in which the loader was made
  std::uint64_t order_xxh3 = 0;  ///< hash of the order of the items in the loader's first batch
  std::uint64_t passes = 0;      ///< number of passes that have begun
  std::uint64_t taken = 0;       ///< batches of the last pass that were taken up to `step`
  std::uint64_t step = 0;
  std::uint64_t per_step = 0;  ///< number of batches that each step after `step` takes
  bool is_over = true;  ///< whether the last pass had ended before the last of `step` steps began
  /// True if a pass of another loader was open during a step of the last pass.
  bool is_beside = false;

  /// Returns how many batches of the last pass had been taken when `at` steps had ended.
  std::uint64_t taken_at(std::uint64_t at) const {
    return at > step ? taken + per_step * (at - step) : taken;
  }

  friend bool operator==(const StoredLoader&, const StoredLoader&) = default;
};

}  // namespace weft
