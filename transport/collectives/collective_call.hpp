#pragma once
/// CollectiveCall: one collective of a group of chips, in the form in which each chip passes it.

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
/// all of them. The order of the group's chips is index_in(., atoms). Offsets are bytes within the
/// arena and aligned. The ranges must not overlap; they may be equal for all_reduce, broadcast and
/// shared calls.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::barrier;
  AtomList atoms;                       ///< the group is the chips that differ only in these
  ReduceKind reduce = ReduceKind::add;  ///< pred has no `add`: `max` is "any", `min` is "all"
  DType dtype = DType::f32;
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
  /// The shapes. all_reduce, broadcast, permute: [count]. all_gather: source [outer][count],
  /// destination [outer][n][count]. reduce_scatter: source [outer][n][count], destination
  /// [outer][count].
  std::int64_t outer = 1;
  std::int64_t count = 0;
  /// all_to_all: the operand's shape. split_dim is cut in n parts, which are joined along
  /// concat_dim.
  Shape shape = {};
  int split_dim = 0;
  int concat_dim = 0;
  /// permute: for each group index, the group index from which its value comes. broadcast: [0] is
  /// the root.
  std::vector<int> from = {};
  /// all_gather: the result is stored once, in the arena of the group's first chip. The caller must
  /// ensure that the previous content has no reader any more when the first chip calls. If source
  /// and destination are equal, the caller has already stored the chip's part there, and the chips
  /// only meet. reduce_scatter, with source and destination equal: the chips only meet, and may
  /// read each other's sources afterwards. The caller must ensure that these stay unchanged.
  bool shared = false;
  /// A further value on which the chips must agree. It is compared, but not used. 0: none.
  std::uint64_t tag = 0;
  /// The name for errors and the board: "fc1.weight.grad". It must live until prepare() or start()
  /// returns.
  std::string_view name = {};
};

/// The bytes of the source range and the destination range of one chip, in a group of `group_size`.
struct CallBytes {
  std::uint64_t source = 0;
  std::uint64_t destination = 0;
};
CallBytes bytes_of(const CollectiveCall& call, int group_size);

/// Throws invalid_argument, naming the field, unless a group of this size can carry out the call in
/// arenas of this capacity.
void require_valid(const CollectiveCall& call, int group_size, std::size_t arena_capacity);

/// A call without its name, as words. Processes can compare the words and make text of them.
using CallWords = std::array<std::uint64_t, 7>;
CallWords encode(const CollectiveCall& call);
/// Equal words have equal digests. Different words have equal digests with a probability of 2^-64.
std::uint64_t digest_of(const CallWords& words) noexcept;
constexpr std::uint64_t mix_word(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9fb21c651e98df25;  // the factor is odd, and about half of its bits are
                                              // ones
  return hash ^ (hash >> 32);
}
/// Returns the signature of a call: its digest, as a chip's collective of this number.
constexpr std::uint64_t signature_of(std::uint64_t number, std::uint64_t digest) noexcept {
  return mix_word(digest, number);
}

/// The call as far as encode() kept it. `details` is a digest of shape, dims, `from` and `tag`; 0
/// if the call has none of them.
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
