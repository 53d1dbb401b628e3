#pragma once
/// Schedule: a collective as one chip carries it out, a list of stages of any length. A stage is a
/// list of transfers; after each stage but the last, the chips of the group sync.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/collectives/collective_call.hpp"

namespace weft {

/// In place of a member's index: all members of the group, in group order.
inline constexpr int kAllMembers = -1;

/// Where a transfer reads or writes.
struct TransferEnd {
  enum class Region : std::uint8_t { arena, mailbox };
  Region region = Region::arena;
  int member = 0;          ///< index in the group, or kAllMembers
  std::size_t offset = 0;  ///< bytes
};

/// Repeats a transfer `count` times, its ends so many bytes further each time.
struct TransferLoop {
  std::size_t count = 1;
  std::size_t from_step = 0;
  std::size_t to_step = 0;
};

/// Copies `count` contiguous elements, or reduces them where `from` is all members, for each
/// iteration of two nested loops. Where a destination is the source, there is nothing to do.
struct Transfer {
  TransferEnd from;
  TransferEnd to;
  std::int64_t count = 0;
  TransferLoop outer;
  TransferLoop inner;
};

/// Calls body(bytes to add to the offset of `from`, bytes to add to that of `to`) per iteration.
template <typename Body>
void for_each_part(const Transfer& transfer, const Body& body) {
  const TransferLoop& outer = transfer.outer;
  const TransferLoop& inner = transfer.inner;
  for (std::size_t o = 0; o < outer.count; ++o) {
    for (std::size_t i = 0; i < inner.count; ++i) {
      body(o * outer.from_step + i * inner.from_step, o * outer.to_step + i * inner.to_step);
    }
  }
}

using Stage = std::vector<Transfer>;

struct Schedule {
  std::vector<Stage> stages;
  ReduceKind reduce = ReduceKind::add;
  DType dtype = DType::f32;
  bool past_caches = false;  ///< whether copies bypass the caches

  std::size_t sync_count() const { return stages.size() - 1; }
};

/// The memory of a group as one of its chips sees it, in group order.
struct GroupMemory {
  std::span<std::byte* const> arenas;
  std::span<std::byte* const> mailboxes;  ///< the one of each chip that the first sync uses
  int index = 0;                          ///< of the chip itself
};

/// Carries out the transfers of one stage.
void perform(const Schedule& schedule, std::size_t stage, const GroupMemory& group);

/// A line per transfer and per sync, with members by their index in the group, offsets in bytes:
///
///     sync
///     reduce arena 0+1 @ 64 to arena 0+1 @ 64: 4 elements
///     sync
///
/// A loop is written behind the elements: "5 elements, 3 times (20 bytes on, 40 bytes on)".
std::string to_string(const Schedule& schedule, int group_size);

}  // namespace weft
