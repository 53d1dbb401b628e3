#pragma once
/// TransferSchedule: one chip's work in a collective, as a list of stages. A stage is a list of
/// transfers. After each stage except the last, the chips of the group sync.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transport/collectives/collective_call.hpp"

namespace weft {

/// Stands for all members of the group, in group order, in place of a member's index.
inline constexpr int kAllMembers = -1;

/// One end of a transfer: where it reads or writes.
struct TransferEnd {
  enum class Region : std::uint8_t { arena, mailbox };
  Region region = Region::arena;
  int member = 0;          ///< the member's index in the group, or kAllMembers
  std::size_t offset = 0;  ///< in bytes
};

/// Repeats a transfer `count` times. After each time, the ends move by `from_step` and `to_step`
/// bytes.
struct TransferLoop {
  std::size_t count = 1;
  std::size_t from_step = 0;
  std::size_t to_step = 0;
};

/// Copies `count` contiguous elements in each iteration of two nested loops. If `from` is all
/// members, stores the reduction of their elements instead. Copies nothing to a destination that is
/// the source itself.
struct Transfer {
  TransferEnd from;
  TransferEnd to;
  std::int64_t count = 0;
  TransferLoop outer;
  TransferLoop inner;
};

/// Calls body(from_offset, to_offset) for each iteration of both loops. The arguments are added to
/// the offsets of `from` and `to`.
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

struct TransferSchedule {
  std::vector<Stage> stages;
  ReduceKind reduce = ReduceKind::add;
  DType dtype = DType::f32;
  bool past_caches = false;  ///< true if copies bypass the caches

  std::size_t sync_count() const { return stages.size() - 1; }
};

/// The memory of all chips of a group, in group order, as one of the chips has mapped it.
struct GroupMemory {
  std::span<std::byte* const> arenas;
  std::span<std::byte* const> mailboxes;  ///< each chip's mailbox for the first sync
  int index = 0;                          ///< index of the chip itself
};

/// Carries out the transfers of one stage.
void perform(const TransferSchedule& schedule, std::size_t stage, const GroupMemory& group);

/// Returns a text with one line per transfer and per sync. It gives members by their index in the
/// group, and offsets in bytes:
///
///     sync
///     reduce arena 0+1 @ 64 to arena 0+1 @ 64: 4 elements
///     sync
///
/// A loop comes after the elements: "5 elements, 3 times (20 bytes on, 40 bytes on)".
std::string to_string(const TransferSchedule& schedule, int group_size);

}  // namespace weft
