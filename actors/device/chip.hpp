#pragma once
/// Chip: what code sees that runs on one chip of the mesh, with that chip's collectives, for
/// computations that aren't traced (inside jax.shard_map: jax.lax.psum, all_gather, ppermute).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <unordered_map>

#include <weft/actors/device/axes.hpp>
#include <weft/actors/device/element_span.hpp>
#include <weft/transport/communicator.hpp>

namespace weft {

template <ChipElement T>
class ChipArray;

/// Of the arena, for operands and results from elsewhere. More is copied in pieces: larger ones
/// would leave the caches before they are read again.
inline constexpr std::size_t kStagingBytes = std::size_t{512} << 10;

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
  friend class Executor;
  template <ChipElement T>
  friend class ChipArray;

  /// A collective as a line of the program calls it.
  struct CallSite {
    CallWords words;
    const char* file;
    std::uint32_t line;
    bool operator==(const CallSite&) const = default;
  };
  struct CallSiteHash {
    std::size_t operator()(const CallSite& site) const noexcept {
      return digest_of(site.words) ^ site.line;
    }
  };
  struct Parts;

  /// The communicator is that of the executor's plans, too.
  Chip(JobMemory& memory, const Mesh& mesh, int position, int local_index,
       Communicator& communicator);

  AtomList atoms_of(const Axes& axes) const;
  void carry_out(CollectiveCall call, ConstElementSpan source, ElementSpan destination,
                 const Location& where);
  void carry_out_staged(CollectiveCall& call, const Parts& parts, const std::byte* source,
                        std::byte* destination, const Location& where);
  /// `whole`: elements of which these are a piece; 0: they are all.
  void call(CollectiveCall& call, const Location& where, std::int64_t whole = 0);
  std::byte* address(std::uint64_t offset) const { return memory_.arena(arena_) + offset; }
  std::optional<std::uint64_t> place_in_arena(const std::byte* data) const;

  JobMemory& memory_;
  const Mesh& mesh_;
  const int position_;
  const int local_index_;
  const int arena_;  ///< the chip's number in the job's memory
  Communicator& communicator_;
  std::uint32_t body_ = 0;  ///< which of the loop's: its number among the programs
  std::unordered_map<CallSite, PreparedCall, CallSiteHash> prepared_;
};

}  // namespace weft
