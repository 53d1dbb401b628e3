#pragma once
/// Chip: what code sees that runs on one chip of the mesh, with that chip's collectives, for
/// computations that aren't traced (inside jax.shard_map: jax.lax.psum, all_gather, ppermute).

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

/// Valid in the body that on_each_chip() gave it to, on that thread.
///
/// A collective is carried out by a *group*: the chips that differ only in their coordinates along
/// the named axes, in row-major order of these; no names: all chips of the mesh. Every chip of a
/// group calls the same collectives with the same sizes in the same order. Sums are taken in group
/// order: bitwise the same on every chip and in every run.
///
/// Where operand and result both begin in a ChipArray, each a multiple of 64 bytes after its array,
/// they are worked on where they lie, which must then be the same place on all chips of the group.
/// All other memory is copied through the chip's arena, piece by piece. Operand and result are
/// apart, but for all_reduce and broadcast, which have one span for both.
///
/// Collectives throw invalid_argument for types and sizes that don't fit together, not_found for an
/// axis that the mesh doesn't have, no_space; after these the chip may go on. And they throw
/// program_divergence where chips called different ones (both are named, with file and line),
/// timeout (BackendConfig::timeout_s) and peer_lost: after these it can't carry out any more.
class Chip {
 public:
  using Location = std::source_location;

  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  const Mesh& mesh() const { return mesh_; }
  int position() const { return position_; }        ///< in the mesh
  int local_index() const { return local_index_; }  ///< among the chips of its worker
  int group_size(const Axes& axes = {}) const;
  int group_index(const Axes& axes = {}) const;  ///< this chip's place in the group

  /// Returns when all chips of the group have called it.
  void barrier(const Axes& axes = {}, Location where = Location::current());
  /// values[i] becomes the sum (max, min) of the chips' values[i]. bool has no sum, its max is
  /// "any".
  void all_reduce(ElementSpan values, const Axes& axes = {}, ReduceKind reduce = ReduceKind::add,
                  Location where = Location::current());
  /// whole: the chips' parts, one after the other.
  void all_gather(ConstElementSpan part, ElementSpan whole, const Axes& axes = {},
                  Location where = Location::current());
  /// part[i]: the sum (max, min) of the chips' whole[group_index * part.size() + i].
  void reduce_scatter(ConstElementSpan whole, ElementSpan part, const Axes& axes = {},
                      ReduceKind reduce = ReduceKind::add, Location where = Location::current());
  /// Sends the i-th of group_size equal parts to the group's i-th chip; received: what the chips
  /// sent to this one, one after the other.
  void all_to_all(ConstElementSpan parts, ElementSpan received, const Axes& axes = {},
                  Location where = Location::current());
  /// values: those of the chip with group index `root`.
  void broadcast(ElementSpan values, int root = 0, const Axes& axes = {},
                 Location where = Location::current());
  /// received: the values of the chip with group index sources[group_index]. `sources` is the same
  /// on all chips, with an index for each (lax.ppermute has pairs, and zeros where there is none).
  void permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
               const Axes& axes = {}, Location where = Location::current());

 private:
  friend class ChipCollectives;
  template <ChipElement T>
  friend class ChipArray;

  Chip(ChipCollectives& collectives, const Mesh& mesh, int position, int local_index)
      : collectives_(collectives), mesh_(mesh), position_(position), local_index_(local_index) {}

  AtomList atoms_of(const Axes& axes) const;
  std::byte* address(std::uint64_t offset) const;  ///< in the chip's arena

  ChipCollectives& collectives_;
  const Mesh& mesh_;
  const int position_;
  const int local_index_;
};

// ChipArray: memory in the arenas of a worker's chips, for code that runs on them.

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
