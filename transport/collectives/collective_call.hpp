#pragma once
/// CollectiveCall: the arguments with which a chip of a group calls a collective.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <weft/sharding/atom.hpp>
#include <weft/tensor/type.hpp>

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

/// The alignment of operands and results within an arena.
inline constexpr std::uint64_t kOffsetAlignment = 64;

/// One collective, as every chip of the group calls it. All fields except `name` must be equal on
/// all chips. A chip's index in the group is index_in(position, atoms). Offsets are in bytes from
/// the beginning of the arena, and aligned. Source and destination must not overlap, but may be
/// equal for all_reduce, broadcast and shared calls.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  AtomList atoms;                       ///< chips that differ only in these atoms form the group
  ReduceKind reduce = ReduceKind::add;  ///< pred has no `add`: `max` is "any", `min` is "all"
  DType dtype = DType::f32;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  /// The dims of source and destination in a group of n chips. all_reduce, broadcast, permute:
  /// [count]. all_gather: source [outer][count], destination [outer][n][count]. reduce_scatter:
  /// source [outer][n][count], destination [outer][count].
  std::int64_t outer = 1;
  std::int64_t count = 0;
  /// For all_to_all: the operand's shape. split_dim is cut into n parts, and the parts from all
  /// chips are joined along concat_dim.
  Shape shape = {};
  int split_dim = 0;
  int concat_dim = 0;
  /// For permute: from[i] is the group index of the chip whose value chip i gets. For broadcast:
  /// only the root's group index.
  std::vector<int> from = {};
  /// For all_gather: whether the result is stored only once, in the arena of the group's first
  /// chip. When that chip calls, nothing may read this memory any more. If source and destination
  /// are equal, each chip has already stored its part there, and the chips only meet. For
  /// reduce_scatter, whose source and destination must then be equal: the chips only meet, and may
  /// read each other's sources afterwards. The caller must ensure that these stay unchanged.
  bool shared = false;
  /// A further value on which the chips must agree. It is only compared. 0: no value.
  std::uint64_t tag = 0;
  /// The name for errors and the board, such as "fc1.weight.grad". The text must live until
  /// prepare() or start() returns.
  std::string_view name = {};
};

/// The sizes of a chip's source and destination in bytes.
struct CallBytes {
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
};
CallBytes bytes_of(const CollectiveCall& call, int group_size);

/// Throws invalid_argument, naming the field, if a group of this size can't carry out the call in
/// arenas of this capacity.
void require_valid(const CollectiveCall& call, int group_size, std::size_t arena_capacity);

/// A call without its name, encoded in words that processes can compare and convert to text.
using CallWords = std::array<std::uint64_t, 7>;
CallWords encode(const CollectiveCall& call);
/// Returns a hash of the words. Different words have equal hashes with a probability of 2^-64.
std::uint64_t digest_of(const CallWords& words) noexcept;
constexpr std::uint64_t mix_word(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9fb21c651e98df25;  // the factor is odd, and about half of its bits are
                                              // ones
  return hash ^ (hash >> 32);
}
/// Returns the signature of a call: a hash of its digest and of its number among the chip's calls.
constexpr std::uint64_t signature_of(std::uint64_t number, std::uint64_t digest) noexcept {
  return mix_word(digest, number);
}

/// A call, as far as encode() stores it. `details` is a digest of shape, dims, `from` and `tag`; 0
/// if the call has none of these.
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
