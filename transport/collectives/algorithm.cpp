#include "transport/collectives/algorithm.hpp"

#include <algorithm>
#include <cstring>

#include "transport/collectives/transfers.hpp"
#include "transport/job/control_format.hpp"
#include "transport/reduce/copy.hpp"
#include "transport/reduce/reduce.hpp"

namespace weft {
namespace {

/// Above this all mailboxes together, which each chip loads, cost more than a second sync.
constexpr std::uint64_t kAllMailboxesBytes = 4096;
constexpr std::uint64_t kAllMailboxesBytesCrowded = 65536;

/// What goes to several destinations is read from memory once, then from the first cache.
constexpr std::size_t kBlockBytes = 16384;

class Performer {
 public:
  Performer(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group)
      : call_(call),
        group_(group),
        past_caches_(has_exit_sync(algorithm) && leaves_caches(call, group)) {}

  void operator()(const Transfer& transfer) const {
    const auto from = bases(transfer.from);
    const auto to = bases(transfer.to);
    if (transfer.from.member == kAllMembers) {
      return reduce(call_.reduce, call_.dtype, {from, transfer.from.offset},
                    {to, transfer.to.offset}, transfer.count);
    }
    const auto bytes = static_cast<std::size_t>(transfer.count * byte_size(call_.dtype));
    const std::size_t block = to.size() == 1 ? bytes : kBlockBytes;
    for (std::size_t at = 0; at < bytes; at += block) {
      const std::byte* source = from[0] + transfer.from.offset + at;
      for (std::size_t i = 0; i < to.size(); ++i) {
        // Not all begin with the same one.
        std::byte* base = to[(static_cast<std::size_t>(group_.index) + i) % to.size()];
        copy(base + transfer.to.offset + at, source, std::min(block, bytes - at));
      }
    }
  }

 private:
  /// What is shared is read at once, and what goes through a mailbox is small.
  static bool leaves_caches(const CollectiveCall& call, const GroupMemory& group) {
    return call.kind != CollectiveKind::all_reduce &&
           bytes_of(call, static_cast<int>(group.arenas.size())).destination >= kPastCachesBytes;
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) const {
    if (to == from) return;
    if (past_caches_) return copy_past_caches(to, from, bytes);
    std::memcpy(to, from, bytes);
  }

  std::span<std::byte* const> bases(const TransferEnd& place) const {
    const auto all = place.region == TransferEnd::Region::arena ? group_.arenas : group_.mailboxes;
    return place.member == kAllMembers ? all
                                       : all.subspan(static_cast<std::size_t>(place.member), 1);
  }

  const CollectiveCall& call_;
  const GroupMemory& group_;
  bool past_caches_;
};

class Writer {
 public:
  Writer(int group_size, std::string& text) : group_size_(group_size), text_(text) {}

  void operator()(const Transfer& transfer) const {
    text_ += fmt::format("  {} {} to {}: {} elements\n",
                         transfer.from.member == kAllMembers ? "reduce" : "copy",
                         name(transfer.from), name(transfer.to), transfer.count);
  }

 private:
  std::string name(const TransferEnd& place) const {
    std::string members = std::to_string(std::max(place.member, 0));
    if (place.member == kAllMembers) {
      for (int member = 1; member < group_size_; ++member) members += fmt::format("+{}", member);
    }
    const bool arena = place.region == TransferEnd::Region::arena;
    return fmt::format("{} {} @ {}", arena ? "arena" : "mailbox", members, place.offset);
  }

  int group_size_;
  std::string& text_;
};

}  // namespace

std::string_view to_string(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::signal: return "signal";
    case Algorithm::mailbox: return "mailbox";
    case Algorithm::push: return "push";
    case Algorithm::pull: return "pull";
    case Algorithm::share: return "share";
  }
  return "unknown";
}

Algorithm choose_algorithm(const CollectiveCall& call, int group_size, bool crowded) {
  const std::uint64_t bytes = bytes_of(call, group_size).source;
  if (bytes == 0) return Algorithm::signal;
  if (call.shared) return Algorithm::share;
  const std::uint64_t bytes_max = crowded ? kAllMailboxesBytesCrowded : kAllMailboxesBytes;
  if (group_size > 1 && bytes <= kMailboxBytes &&
      bytes * static_cast<std::uint64_t>(group_size) <= bytes_max) {
    return Algorithm::mailbox;
  }
  switch (call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast: return Algorithm::push;
    default: return Algorithm::pull;
  }
}

void prepare(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group) {
  const Performer perform(algorithm, call, group);
  Transfers(algorithm, call, static_cast<int>(group.arenas.size()), group.index, perform).before();
}

void perform(Algorithm algorithm, const CollectiveCall& call, const GroupMemory& group) {
  const Performer perform(algorithm, call, group);
  Transfers(algorithm, call, static_cast<int>(group.arenas.size()), group.index, perform).after();
}

std::string schedule(Algorithm algorithm, const CollectiveCall& call, int group_size, int index) {
  std::string text = fmt::format("{}, {}, chip {} of {}:\n", to_string(call.kind),
                                 to_string(algorithm), index, group_size);
  const Writer write(group_size, text);
  const Transfers transfers(algorithm, call, group_size, index, write);
  transfers.before();
  text += "  sync\n";
  transfers.after();
  if (has_exit_sync(algorithm)) text += "  sync\n";
  return text;
}

}  // namespace weft
