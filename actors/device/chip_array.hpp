#pragma once
/// ChipArray: memory in the arenas of a worker's chips, for code that runs on them.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <weft/actors/device/chip.hpp>
#include <weft/spmd/error.hpp>

namespace weft {

/// A place in the arenas: at the same offset on every chip.
struct ArenaPlace {
  std::uint64_t offset = 0;
  std::shared_ptr<void> block;  ///< frees the place
  std::weak_ptr<void> job;      ///< ends with the arenas
};

/// `size()` elements on every chip of the mesh, each chip with values of its own (symmetric memory
/// of OpenSHMEM and torch.distributed). Made by TrainContext::allocate(), which has the rules; must
/// end on the loop's thread.
template <ChipElement T>
class ChipArray {
 public:
  ChipArray(ArenaPlace place, std::int64_t size) : place_(std::move(place)), size_(size) {}
  ChipArray(ChipArray&&) noexcept = default;
  ChipArray& operator=(ChipArray&&) noexcept = default;

  std::int64_t size() const { return size_; }
  /// The chip's elements. Throws invalid_argument once the fit() in which they were allocated has
  /// ended.
  std::span<T> on(const Chip& chip) const {
    if (place_.job.expired()) {
      fail(Errc::invalid_argument,
           "a ChipArray of {} elements was allocated in a fit() that has ended: allocate it in the "
           "loop that uses it",
           size_);
    }
    return {reinterpret_cast<T*>(chip.address(place_.offset)), static_cast<std::size_t>(size_)};
  }

 private:
  ArenaPlace place_;
  std::int64_t size_;
};

}  // namespace weft
