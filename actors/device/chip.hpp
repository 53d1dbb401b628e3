#pragma once
/// Chip: what code sees that runs on one chip of the mesh, with that chip's collectives, for
/// computations that aren't traced (inside jax.shard_map: jax.lax.psum, all_gather, ppermute).

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>
#include <unordered_map>

#include <weft/actors/device/element_span.hpp>
#include <weft/transport/communicator.hpp>

namespace weft {

/// A collective is carried out by a *group*: the chips that differ only in their coordinates along
/// the named axes, in row-major order of these; no names: all chips of the mesh. Every chip of a
/// group calls the same collectives with the same sizes in the same order. Sums are taken in group
/// order: bitwise the same on every chip and in every run.
///
/// What lies in a ChipArray is worked on where it lies, if it begins a multiple of 64 bytes after
/// the array does; all other memory is copied through the chip's arena, piece by piece.
///
/// Collectives throw invalid_argument for types and sizes that don't fit together, not_found for an
/// axis that the mesh doesn't have, program_divergence where chips called different ones (both are
/// named, with file and line), timeout and peer_lost.
class Chip {
 public:
  using Axes = std::initializer_list<std::string_view>;
  using Location = std::source_location;

  /// For the Executor, whose plans use the communicator as well.
  Chip(JobMemory& memory, const Mesh& mesh, int position, Communicator& communicator);
  Chip(const Chip&) = delete;
  Chip& operator=(const Chip&) = delete;

  const Mesh& mesh() const { return mesh_; }
  int position() const { return position_; }        ///< in the mesh
  int local_index() const { return local_index_; }  ///< among the chips of its worker
  int group_size(Axes axes = {}) const;
  int group_index(Axes axes = {}) const;  ///< this chip's place in the group

  /// Returns when all chips of the group have called it.
  void barrier(Axes axes = {}, Location where = Location::current());
  /// values[i] becomes the sum (max, min) of the chips' values[i]. bool has no sum, its max is
  /// "any".
  void all_reduce(ElementSpan values, Axes axes = {}, ReduceKind reduce = ReduceKind::add,
                  Location where = Location::current());
  /// whole: the chips' parts, one after the other.
  void all_gather(ConstElementSpan part, ElementSpan whole, Axes axes = {},
                  Location where = Location::current());
  /// part[i]: the sum (max, min) of the chips' whole[group_index * part.size() + i].
  void reduce_scatter(ConstElementSpan whole, ElementSpan part, Axes axes = {},
                      ReduceKind reduce = ReduceKind::add, Location where = Location::current());
  /// Sends the i-th of group_size equal parts to the group's i-th chip; received: what the chips
  /// sent to this one, one after the other.
  void all_to_all(ConstElementSpan parts, ElementSpan received, Axes axes = {},
                  Location where = Location::current());
  /// values: those of the chip with group index `root`.
  void broadcast(ElementSpan values, int root = 0, Axes axes = {},
                 Location where = Location::current());
  /// received: the values of the chip with group index sources[group_index]. `sources` is the same
  /// on all chips.
  void permute(ConstElementSpan values, ElementSpan received, std::span<const int> sources,
               Axes axes = {}, Location where = Location::current());

  /// Of what is at this offset in the chip's arena.
  std::byte* address(std::uint64_t offset) const;

 private:
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

  friend class Executor;

  AtomList atoms_of(Axes axes) const;
  void carry_out(CollectiveCall call, ConstElementSpan source, ElementSpan destination,
                 const Location& where);
  void carry_out_staged(CollectiveCall& call, std::int64_t count, const std::byte* source,
                        std::byte* destination, const Location& where);
  void run(const CollectiveCall& call, const Location& where);
  std::optional<std::uint64_t> place_in_arena(const std::byte* data) const;

  JobMemory& memory_;
  const Mesh& mesh_;
  const int position_;
  const int arena_;  ///< the chip's number in the job's memory
  int local_index_ = 0;
  Communicator& communicator_;
  std::unordered_map<CallSite, PreparedCall, CallSiteHash> prepared_;
};

}  // namespace weft
