#pragma once
/// Transfer: one read of a collective, with what is done to it and where it goes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/collectives/collective_call.hpp"

namespace weft {

/// In place of a member's index: all of the group, in its order.
inline constexpr int kAllMembers = -1;

/// Where a transfer reads or writes.
struct TransferEnd {
  enum class Region : std::uint8_t { arena, mailbox };
  Region region = Region::arena;
  int member = 0;  ///< or kAllMembers
  std::size_t offset = 0;
};

/// From all members: a reduction. Where a destination is the source, nothing is to be done.
struct Transfer {
  TransferEnd from;
  TransferEnd to;
  std::int64_t count = 0;  ///< of elements
};

/// What one chip gets from another in an all_to_all: a block within two larger row-major arrays.
/// Strides and steps are bytes.
struct AllToAllParts {
  std::array<std::size_t, kDimCountMax> shape{};
  std::array<std::size_t, kDimCountMax> source_stride{};
  std::array<std::size_t, kDimCountMax> destination_stride{};
  std::size_t contiguous_from = 0;   ///< dims from here on are contiguous in both arrays
  std::size_t source_step = 0;       ///< from the part for one chip to that for the next
  std::size_t destination_step = 0;  ///< from the part of one chip to that of the next
};
AllToAllParts all_to_all_parts(const CollectiveCall& call, std::size_t group_size);

}  // namespace weft
