#include "transport/collectives/algorithm.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/job/control_format.hpp"
#include "transport/reduce/copy.hpp"

namespace weft {
namespace {

/// choose_algorithm() chooses `mailbox` only if all mailboxes of a group together have at most this
/// many bytes, because each chip loads all of them. To load more takes longer than the second sync
/// that the other algorithms need.
constexpr std::uint64_t kAllMailboxesBytes = 4096;
constexpr std::uint64_t kAllMailboxesBytesCrowded = 65536;
/// Between hosts, an all_reduce uses `slices` if all sources together have more bytes than this.
/// With fewer bytes, the second exchange of `slices` takes longer than to send and add more bytes.
constexpr std::uint64_t kUncutBytes = 65536;

std::size_t elements(const Shape& shape, int begin, int end) {
  std::size_t count = 1;
  for (int dim = begin; dim < end; ++dim) count *= static_cast<std::size_t>(shape[dim]);
  return count;
}

/// Makes the list of one chip's transfers.
class ChipTransfers {
 public:
  ChipTransfers(Algorithm algorithm, const CollectiveCall& call, int group_size, int index)
      : algorithm_(algorithm),
        call_(call),
        n_(static_cast<std::size_t>(group_size)),
        index_(static_cast<std::size_t>(index)),
        element_(static_cast<std::size_t>(byte_size(call.dtype))) {}

  Stage before_sync() {
    if (algorithm_ == Algorithm::share) push_part(0);
    if (algorithm_ == Algorithm::mailbox) fill_mailbox();
    return std::exchange(stage_, {});
  }

  Stage after_sync() {
    if (algorithm_ == Algorithm::slices) {
      reduce_slice();
    } else if (algorithm_ != Algorithm::signal && algorithm_ != Algorithm::share) {
      exchange();
    }
    return std::exchange(stage_, {});
  }

  Stage after_slices() {
    fetch_slices();
    return std::exchange(stage_, {});
  }

 private:
  bool pushes() const { return algorithm_ == Algorithm::push; }
  std::size_t row() const { return static_cast<std::size_t>(call_.count) * element_; }
  std::size_t outer() const { return static_cast<std::size_t>(call_.outer); }
  TransferEnd own(TransferEnd::Region region, std::size_t offset) const {
    return {region, static_cast<int>(index_), offset};
  }

  void add(const TransferEnd& from, const TransferEnd& to, std::int64_t count,
           const TransferLoop& outer = {}, const TransferLoop& inner = {}) {
    if (count > 0) stage_.push_back({from, to, count, outer, inner});
  }

  void fill_mailbox() {
    if (call_.kind == CollectiveKind::broadcast && call_.from[0] != static_cast<int>(index_)) {
      return;
    }
    const std::uint64_t bytes = bytes_of(call_, static_cast<int>(n_)).source;
    add(own(TransferEnd::Region::arena, call_.source), own(TransferEnd::Region::mailbox, 0),
        static_cast<std::int64_t>(bytes / element_));
  }

  void exchange() {
    switch (call_.kind) {
      case CollectiveKind::barrier: return;
      case CollectiveKind::all_reduce:
        return pushes() ? push_slice(kAllMembers) : fetch(kAllMembers, 0, 0, call_.count);
      case CollectiveKind::all_gather: return pushes() ? push_part(kAllMembers) : gather();
      case CollectiveKind::reduce_scatter:
        return fetch(kAllMembers, index_ * row(), 0, call_.count, {outer(), n_ * row(), row()});
      case CollectiveKind::all_to_all: return all_to_all();
      case CollectiveKind::permute: return fetch(call_.from[index_], 0, 0, call_.count);
      case CollectiveKind::broadcast:
        return pushes() ? push_slice(call_.from[0]) : fetch(call_.from[0], 0, 0, call_.count);
    }
    WEFT_CHECK(false, static_cast<int>(call_.kind));
  }

  /// Adds a read from member `from`. `source` is an offset in the member's source, `destination` an
  /// offset in the chip's own destination.
  void fetch(int from, std::size_t source, std::size_t destination, std::int64_t count,
             const TransferLoop& outer = {}, const TransferLoop& inner = {}) {
    TransferEnd place{TransferEnd::Region::mailbox, from, source};
    if (algorithm_ != Algorithm::mailbox) {
      place = {TransferEnd::Region::arena, from, call_.source + source};
    }
    add(place, own(TransferEnd::Region::arena, call_.destination + destination), count, outer,
        inner);
  }

  struct Slice {
    std::size_t offset;  ///< in bytes
    std::int64_t count;  ///< in elements
  };
  /// Returns a member's slice of a row. Slices begin on cache lines, so that no two chips write to
  /// the same line.
  Slice slice_of(std::size_t member) const {
    const auto n = static_cast<std::int64_t>(n_);
    const std::int64_t unit = 64 / byte_size(call_.dtype);
    const std::int64_t slice = ((call_.count + n - 1) / n + unit - 1) / unit * unit;
    const std::int64_t begin = std::min(call_.count, slice * static_cast<std::int64_t>(member));
    const std::int64_t end = std::min(call_.count, begin + slice);
    return {static_cast<std::size_t>(begin) * element_, end - begin};
  }

  /// Adds a write of the chip's slice to all destinations.
  void push_slice(int from) {
    const auto [offset, count] = slice_of(index_);
    add({TransferEnd::Region::arena, from, call_.source + offset},
        {TransferEnd::Region::arena, kAllMembers, call_.destination + offset}, count);
  }

  /// Adds a write to the chip's own destination: the sum of the chip's slice over all members.
  void reduce_slice() {
    const auto [offset, count] = slice_of(index_);
    fetch(kAllMembers, offset, offset, count);
  }

  /// Adds reads of the other slices of the sum, each from the destination of the chip that has
  /// added it.
  void fetch_slices() {
    each_member([this](std::size_t member) {
      const auto [offset, count] = slice_of(member);
      const std::size_t place = call_.destination + offset;
      if (member == index_) return;
      add({TransferEnd::Region::arena, static_cast<int>(member), place},
          own(TransferEnd::Region::arena, place), count);
    });
  }

  /// Adds a write of the chip's own part, still in its caches, to the destination of member `to`.
  void push_part(int to) {
    add(own(TransferEnd::Region::arena, call_.source),
        {TransferEnd::Region::arena, to, call_.destination + index_ * row()}, call_.count,
        {outer(), row(), n_ * row()});
  }

  /// Calls body(member) for all members. It begins with the chip's own part, which is still in its
  /// caches, and continues in cyclic order, so that no two chips read from the same chip at a time.
  template <typename Body>
  void each_member(const Body& body) const {
    for (std::size_t i = 0; i < n_; ++i) body((index_ + i) % n_);
  }

  void gather() {
    each_member([this](std::size_t member) {
      fetch(static_cast<int>(member), 0, member * row(), call_.count, {outer(), row(), n_ * row()});
    });
  }

  /// Chip r gets part r of every operand, and puts the part from chip q at place q along
  /// concat_dim. In both arrays, the dims before the smaller of the two cut dims form one loop, the
  /// dims between the two form another, and the dims after them are contiguous.
  void all_to_all() {
    const int split = call_.split_dim;
    const int concat = call_.concat_dim;
    const Shape& source = call_.shape;
    Shape part = source;
    part[split] /= static_cast<std::int64_t>(n_);
    Shape result = part;
    result[concat] *= static_cast<std::int64_t>(n_);
    const int low = std::min(split, concat);
    const int high = std::max(split, concat);
    const int rank = source.size();
    const auto stride = [&](const Shape& shape, int dim) {
      return elements(shape, dim, rank) * element_;
    };
    const TransferLoop outer{elements(part, 0, low), stride(source, low), stride(result, low)};
    const TransferLoop inner{elements(part, low, high), stride(source, high), stride(result, high)};
    const std::size_t source_step = elements(part, split, split + 1) * stride(source, split + 1);
    const std::size_t result_step = elements(part, concat, concat + 1) * stride(result, concat + 1);
    each_member([&](std::size_t member) {
      fetch(static_cast<int>(member), index_ * source_step, member * result_step,
            static_cast<std::int64_t>(elements(part, high, rank)), outer, inner);
    });
  }

  Algorithm algorithm_;
  const CollectiveCall& call_;
  std::size_t n_;
  std::size_t index_;
  std::size_t element_;
  Stage stage_;
};

/// Returns whether the result is too large to stay in the caches until it is read. (It isn't if it
/// is shared, because it is then read at once, or if it passes through mailboxes, because it is
/// then small.)
bool leaves_caches(Algorithm algorithm, const CollectiveCall& call, int group_size) {
  return has_exit_sync(algorithm) && call.kind != CollectiveKind::all_reduce &&
         bytes_of(call, group_size).destination >= kPastCachesBytes;
}

}  // namespace

std::string_view to_string(Algorithm algorithm) noexcept {
  switch (algorithm) {
    case Algorithm::signal: return "signal";
    case Algorithm::slots: return "slots";
    case Algorithm::mailbox: return "mailbox";
    case Algorithm::push: return "push";
    case Algorithm::pull: return "pull";
    case Algorithm::share: return "share";
    case Algorithm::slices: return "slices";
  }
  return "unknown";
}

bool is_in_slots(CollectiveKind kind, std::uint64_t bytes, int group_size) {
  return kind == CollectiveKind::broadcast && group_size > 1 && bytes > 0 &&
         bytes <= kLineMailboxBytes;
}

Algorithm choose_algorithm(const CollectiveCall& call, int group_size, bool crowded) {
  const std::uint64_t bytes = bytes_of(call, group_size).source;
  if (bytes == 0) return Algorithm::signal;
  if (call.shared) return call.source == call.destination ? Algorithm::signal : Algorithm::share;
  if (is_in_slots(call.kind, bytes, group_size)) return Algorithm::slots;
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

Algorithm choose_network_algorithm(const CollectiveCall& call, int group_size) {
  const std::uint64_t bytes = bytes_of(call, group_size).source;
  if (bytes == 0) return Algorithm::signal;
  if (call.kind == CollectiveKind::all_reduce && group_size > 1 &&
      bytes * static_cast<std::uint64_t>(group_size) > kUncutBytes) {
    return Algorithm::slices;
  }
  return Algorithm::pull;
}

TransferSchedule make_schedule(Algorithm algorithm, const CollectiveCall& call, int group_size,
                               int index) {
  ChipTransfers transfers(algorithm, call, group_size, index);
  TransferSchedule schedule{.stages = {transfers.before_sync(), transfers.after_sync()},
                            .reduce = call.reduce,
                            .dtype = call.dtype,
                            .past_caches = leaves_caches(algorithm, call, group_size)};
  if (algorithm == Algorithm::slices) schedule.stages.push_back(transfers.after_slices());
  if (has_exit_sync(algorithm)) schedule.stages.emplace_back();
  return schedule;
}

}  // namespace weft
