#pragma once
/// Chip: the interface of code that runs on one chip of the mesh, for computations that aren't
/// traced: the chip's position and its collectives (as inside jax.shard_map: jax.lax.psum,
/// all_gather, ppermute).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <utility>

#include <weft/element.hpp>
#include <weft/error.hpp>
#include <weft/mesh.hpp>
#include <weft/partition_spec.hpp>

namespace weft {

class ChipCollectives;
template <ChipElement T>
class ChipArray;

/// Valid in the on_each_chip() body that receives it, on that body's thread.
///
/// A collective is carried out by a *group*: the chips that differ only in their coordinates along
/// the named axes, in row-major order of these coordinates. Without names the group is all chips of
/// the mesh. Every chip of a group calls the same collectives with the same sizes in the same
/// order. Sums are taken in group order, so they are bitwise the same on every chip and in every
/// run.
///
/// Operand and result are not copied if both begin in a ChipArray, at a multiple of 64 bytes from
/// its beginning, and at the same place on all chips of the group. Other memory is copied through
/// the chip's arena, piece by piece. Operand and result must not overlap; all_reduce and broadcast
/// work in place on one span.
///
/// Collectives throw invalid_argument for types and sizes that don't fit together, not_found for an
/// axis that the mesh doesn't have, and no_space; the chip may go on after these. They throw
/// program_divergence if chips called different collectives (the message has both, with file and
/// line), timeout (BackendConfig::timeout_s) and peer_lost; the chip can't run further collectives
/// after these.
class Chip {
 public:
  using Location = std::source_location;

  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  const Mesh& mesh() const { return mesh_; }
  int position() const { return position_; }        ///< row-major index in the mesh
  int local_index() const { return local_index_; }  ///< index among its worker's chips
  int group_size(const Axes& axes = {}) const;
  int group_index(const Axes& axes = {}) const;  ///< this chip's index in the group

  /// A barrier: returns when all chips of the group have called it.
  void barrier(const Axes& axes = {}, Location where = Location::current());
  /// In place: values[i] becomes the sum (max, min) of values[i] over the group. bool has no sum;
  /// its max is a logical or.
  void all_reduce(ElementSpan values, const Axes& axes = {}, ReduceKind reduce = ReduceKind::add,
                  Location where = Location::current());
  /// `whole` receives the parts of all chips, concatenated in group order.
  void all_gather(ConstElementSpan part, ElementSpan whole, const Axes& axes = {},
                  Location where = Location::current());
  /// part[i] becomes the sum (max, min) over the group of whole[group_index * part.size() + i].
  void reduce_scatter(ConstElementSpan whole, ElementSpan part, const Axes& axes = {},
                      ReduceKind reduce = ReduceKind::add, Location where = Location::current());
  /// Sends the i-th of group_size equal parts to the group's i-th chip. `received` gets the parts
  /// sent to this chip, concatenated in group order.
  void all_to_all(ConstElementSpan parts, ElementSpan received, const Axes& axes = {},
                  Location where = Location::current());
  /// In place: all chips get the values of the chip with group index `root`.
  void broadcast(ElementSpan values, int root = 0, const Axes& axes = {},
                 Location where = Location::current());
  /// `received` gets the values of the chip with group index sources[group_index]. `sources` is the
  /// same on all chips and has one index per chip. (lax.ppermute takes pairs instead, and gives
  /// zeros to a chip without a source.)
  void permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
               const Axes& axes = {}, Location where = Location::current());

 private:
  friend class ChipCollectives;
  template <ChipElement T>
  friend class ChipArray;

  Chip(ChipCollectives& collectives, const Mesh& mesh, int position, int local_index)
      : collectives_(collectives), mesh_(mesh), position_(position), local_index_(local_index) {}

  AtomList atoms_of(const Axes& axes) const;
  std::byte* address(std::uint64_t offset) const;  ///< of a byte in the chip's arena

  ChipCollectives& collectives_;
  const Mesh& mesh_;
  const int position_;
  const int local_index_;
};

// ChipArray: memory in the arenas of a worker's chips, for code that runs on them.

/// A block in the arenas, at the same offset on every chip.
struct ArenaPlace {
  std::uint64_t offset = 0;
  std::shared_ptr<void> block;  ///< frees the block when destroyed
  std::weak_ptr<void> job;      ///< expires with the arenas
};

/// `size()` elements on every chip of the mesh, with different values on each chip (symmetric
/// memory of OpenSHMEM and torch.distributed). Made by TrainContext::allocate(), which states the
/// rules. Must be destroyed on the loop's thread.
template <ChipElement T>
class ChipArray {
 public:
  ChipArray(ArenaPlace place, std::int64_t size) : place_(std::move(place)), size_(size) {}
  ChipArray(ChipArray&&) noexcept = default;
  ChipArray& operator=(ChipArray&&) noexcept = default;

  std::int64_t size() const { return size_; }
  /// This chip's elements. Throws invalid_argument once the fit() that allocated them has ended.
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
