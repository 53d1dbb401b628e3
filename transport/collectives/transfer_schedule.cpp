#include "transport/collectives/transfer_schedule.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "transport/reduce/copy.hpp"
#include "transport/reduce/reduce.hpp"

namespace weft {
namespace {

/// The size in bytes of the blocks in which data for several destinations is copied. Each block is
/// read from memory once, and then from the first-level cache.
constexpr std::size_t kBlockBytes = 16384;

std::span<std::byte* const> bases(const TransferEnd& end, const GroupMemory& group) {
  const auto all = end.region == TransferEnd::Region::arena ? group.arenas : group.mailboxes;
  return end.member == kAllMembers ? all : all.subspan(static_cast<std::size_t>(end.member), 1);
}

void copy(bool past_caches, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to == from) return;
  if (past_caches) return copy_past_caches(to, from, bytes);
  std::memcpy(to, from, bytes);
}

void perform(const Transfer& transfer, const TransferSchedule& schedule, const GroupMemory& group) {
  const auto from = bases(transfer.from, group);
  const auto to = bases(transfer.to, group);
  if (transfer.from.member == kAllMembers) {
    return for_each_part(transfer, [&](std::size_t from_offset, std::size_t to_offset) {
      reduce(schedule.reduce, schedule.dtype, {from, transfer.from.offset + from_offset},
             {to, transfer.to.offset + to_offset}, transfer.count);
    });
  }
  const auto bytes = static_cast<std::size_t>(transfer.count * byte_size(schedule.dtype));
  const std::size_t block = to.size() == 1 ? bytes : kBlockBytes;
  for_each_part(transfer, [&](std::size_t from_offset, std::size_t to_offset) {
    for (std::size_t at = 0; at < bytes; at += block) {
      const std::byte* source = from[0] + transfer.from.offset + from_offset + at;
      for (std::size_t i = 0; i < to.size(); ++i) {
        // Each chip begins with a different destination, so that the chips don't all write to the
        // same one.
        std::byte* base = to[(static_cast<std::size_t>(group.index) + i) % to.size()];
        copy(schedule.past_caches, base + transfer.to.offset + to_offset + at, source,
             std::min(block, bytes - at));
      }
    }
  });
}

std::string to_string(const TransferEnd& end, int group_size) {
  std::string members = std::to_string(std::max(end.member, 0));
  if (end.member == kAllMembers) {
    for (int member = 1; member < group_size; ++member) members += fmt::format("+{}", member);
  }
  return fmt::format("{} {} @ {}", end.region == TransferEnd::Region::arena ? "arena" : "mailbox",
                     members, end.offset);
}

std::string to_string(const TransferLoop& loop) {
  if (loop.count == 1) return {};
  return fmt::format(", {} times ({} bytes on, {} bytes on)", loop.count, loop.from_step,
                     loop.to_step);
}

}  // namespace

void perform(const TransferSchedule& schedule, std::size_t stage, const GroupMemory& group) {
  for (const Transfer& transfer : schedule.stages[stage]) perform(transfer, schedule, group);
}

std::string to_string(const TransferSchedule& schedule, int group_size) {
  std::string text;
  for (std::size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    if (stage > 0) text += "  sync\n";
    for (const Transfer& transfer : schedule.stages[stage]) {
      text += fmt::format("  {} {} to {}: {} elements{}{}\n",
                          transfer.from.member == kAllMembers ? "reduce" : "copy",
                          to_string(transfer.from, group_size), to_string(transfer.to, group_size),
                          transfer.count, to_string(transfer.inner), to_string(transfer.outer));
    }
  }
  return text;
}

}  // namespace weft
