#pragma once
/// StoredLoader: a DeviceLoader of a loop and its position, in the form that checkpoints and state
/// directories store (schema/loader.fbs).

#include <cstdint>
#include <string>

namespace weft {

/// A pass is a `for` over the loader: an epoch, or the part of it that the loop takes. The position
/// is stored as a linear function of the step, so it is written again only when a pass begins or
/// ends.
struct StoredLoader {
  std::string dataset{};
  std::int64_t num_items = 0;
  std::int64_t batch_size = 0;
  std::int64_t batches_per_step = 0;
  std::uint64_t seed = 0;
  /// The source line in which the loop made the loader: "train.cpp:41". It is "" in files of
  /// versions that didn't store positions; the position then follows from the step.
  std::string site{};
  std::uint64_t origin = 0;      ///< the step in which the loader was made
  std::uint64_t order_xxh3 = 0;  ///< hash of the order of the items in its first batch
  std::uint64_t passes = 0;      ///< number of passes that have begun
  std::uint64_t taken = 0;       ///< number of batches taken from the last pass, after `step` steps
  std::uint64_t step = 0;
  std::uint64_t per_step = 0;  ///< number of batches that each further step takes
  bool is_over = true;         ///< the last pass had ended before the last of `step` steps began
  /// True if a pass of another loader was open during a step of the last pass.
  bool is_beside = false;

  /// Returns how many batches of the last pass had been taken when `at` steps had ended.
  std::uint64_t taken_at(std::uint64_t at) const {
    return at > step ? taken + per_step * (at - step) : taken;
  }

  friend bool operator==(const StoredLoader&, const StoredLoader&) = default;
};

}  // namespace weft
