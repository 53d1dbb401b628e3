#pragma once
/// CollectiveCall: what the chips of a group do together, as each of them says it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <weft/atom.hpp>
#include <weft/type.hpp>

#include "spmd/mesh/sharding.hpp"

namespace weft {

enum class CollectiveKind : std::uint8_t {
  barrier,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  permute,
  broadcast
};
std::string_view to_string(CollectiveKind kind) noexcept;

/// Of operands and results within an arena.
inline constexpr std::uint64_t kOffsetAlignment = 64;

/// One collective as every chip of the group calls it (all but `name` must be equal on all of them;
/// the order of the group's chips is index_in(., atoms)). Offsets are bytes within the arena,
/// aligned, and the ranges must not overlap unless equal (all_reduce, broadcast, shared only).
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  AtomList atoms;                       ///< the group: chips that differ only in these
  ReduceKind reduce = ReduceKind::add;  ///< pred has no `add`: `max` is "any", `min` is "all"
  DType dtype = DType::f32;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  /// all_reduce, broadcast, permute: [count]. all_gather: source [outer][count], destination
  /// [outer][n][count]. reduce_scatter: source [outer][n][count], destination [outer][count].
  std::int64_t outer = 1;
  std::int64_t count = 0;
  /// all_to_all: the operand's shape; split_dim is cut in n, the parts are joined along concat_dim.
  Shape shape = {};
  int split_dim = 0;
  int concat_dim = 0;
  /// permute: group index that each chip's value comes from, by group index. broadcast: [0] is the
  /// root.
  std::vector<int> from = {};
  /// all_gather: the result is stored once, in the arena of the group's first chip. The caller sees
  /// to it that nobody reads what was there before when the first chip calls. Where source and
  /// destination are equal, the caller has stored the chip's part there, and the chips only meet.
  /// reduce_scatter, with source and destination equal: the chips only meet, and may read each
  /// other's sources from then on; the caller sees to it that these stay.
  bool shared = false;
  /// What else the chips must agree on: compared, but not used. 0: nothing.
  std::uint64_t tag = 0;
  /// For errors and the board: "fc1.weight.grad". Must stay until prepare() or start() returns.
  std::string_view name = {};
};

/// Bytes that one chip of a group of `group_size` has in its source and in its destination range.
struct CallBytes {
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
};
CallBytes bytes_of(const CollectiveCall& call, int group_size);

/// Throws invalid_argument, naming the field, unless a group of this size can carry the call out in
/// arenas of this capacity.
void require_valid(const CollectiveCall& call, int group_size, std::size_t arena_capacity);

/// A call without its name in words that processes can compare, and text can be made of.
using CallWords = std::array<std::uint64_t, 7>;
CallWords encode(const CollectiveCall& call);
/// Equal for equal words; for others with a chance of 2^-64.
std::uint64_t digest_of(const CallWords& words) noexcept;
constexpr std::uint64_t mix_word(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9fb21c651e98df25;  // odd, its bits about half ones
  return hash ^ (hash >> 32);
}
/// Of the call with this digest as a chip's collective of this number.
constexpr std::uint64_t signature_of(std::uint64_t number, std::uint64_t digest) noexcept {
  return mix_word(digest, number);
}

/// What encode() kept. `details` is a digest of shape, dims, `from` and `tag`, 0 where there
/// is none of them.
struct DecodedCall {
  CollectiveKind kind;
  ReduceKind reduce;
  DType dtype;
  bool shared;
  AtomList atoms;
  std::int64_t outer;
  std::int64_t count;
  std::uint64_t source;
  std::uint64_t destination;
  std::uint64_t details;
};
DecodedCall decode(const CallWords& words);

}  // namespace weft
