#pragma once
/// The transfers that a chip makes in a collective. Performing them and writing them down are two
/// visits to the same list, so a schedule says what happens.

#include <algorithm>

#include <weft/error.hpp>

#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/transfer.hpp"

namespace weft {

/// A chip's transfers, before its entry sync and after it, given one by one to `visit`.
template <typename Visit>
class Transfers {
 public:
  Transfers(Algorithm algorithm, const CollectiveCall& call, int group_size, int index,
            const Visit& visit)
      : algorithm_(algorithm),
        call_(call),
        n_(static_cast<std::size_t>(group_size)),
        index_(index),
        element_(static_cast<std::size_t>(byte_size(call.dtype))),
        visit_(visit) {}

  void before() const {
    if (algorithm_ == Algorithm::share) return push_part(0);
    if (algorithm_ != Algorithm::mailbox) return;
    if (call_.kind == CollectiveKind::broadcast && call_.from[0] != index_) return;
    const std::uint64_t bytes = bytes_of(call_, static_cast<int>(n_)).source;
    visit_(Transfer{{TransferEnd::Region::arena, index_, call_.source},
                    {TransferEnd::Region::mailbox, index_, 0},
                    static_cast<std::int64_t>(bytes / element_)});
  }

  void after() const {
    if (algorithm_ == Algorithm::signal || algorithm_ == Algorithm::share) return;
    switch (call_.kind) {
      case CollectiveKind::barrier: return;
      case CollectiveKind::all_reduce:
        return pushes() ? push_slice(kAllMembers) : move(kAllMembers, 0, 0, call_.count);
      case CollectiveKind::all_gather: return pushes() ? push_part(kAllMembers) : gather();
      case CollectiveKind::reduce_scatter: return reduce_scatter();
      case CollectiveKind::all_to_all: return all_to_all();
      case CollectiveKind::permute:
        return move(call_.from[static_cast<std::size_t>(index_)], 0, 0, call_.count);
      case CollectiveKind::broadcast:
        return pushes() ? push_slice(call_.from[0]) : move(call_.from[0], 0, 0, call_.count);
    }
    WEFT_CHECK(false, static_cast<int>(call_.kind));
  }

 private:
  bool pushes() const { return algorithm_ == Algorithm::push; }

  /// Into the chip's own destination; offsets within source and destination.
  void move(int from, std::size_t source, std::size_t destination, std::int64_t count) const {
    TransferEnd place{TransferEnd::Region::mailbox, from, source};
    if (algorithm_ != Algorithm::mailbox) {
      place = {TransferEnd::Region::arena, from, call_.source + source};
    }
    visit_(Transfer{
        place, {TransferEnd::Region::arena, index_, call_.destination + destination}, count});
  }

  /// Slices begin on cache lines, so that no two chips write to one.
  void push_slice(int from) const {
    const auto n = static_cast<std::int64_t>(n_);
    const std::int64_t unit = 64 / byte_size(call_.dtype);
    const std::int64_t slice = ((call_.count + n - 1) / n + unit - 1) / unit * unit;
    const std::int64_t begin = std::min(call_.count, slice * index_);
    const std::int64_t end = std::min(call_.count, begin + slice);
    if (begin == end) return;
    const auto offset = static_cast<std::size_t>(begin) * element_;
    visit_(Transfer{{TransferEnd::Region::arena, from, call_.source + offset},
                    {TransferEnd::Region::arena, kAllMembers, call_.destination + offset},
                    end - begin});
  }

  /// The chip's own part, which its caches still hold, into the destination of `to`.
  void push_part(int to) const {
    const auto index = static_cast<std::size_t>(index_);
    for (std::size_t o = 0; o < outer(); ++o) {
      visit_(
          Transfer{{TransferEnd::Region::arena, index_, call_.source + o * row()},
                   {TransferEnd::Region::arena, to, call_.destination + (o * n_ + index) * row()},
                   call_.count});
    }
  }

  std::size_t row() const { return static_cast<std::size_t>(call_.count) * element_; }
  std::size_t outer() const { return static_cast<std::size_t>(call_.outer); }

  /// Begins with the chip's own part, which its caches still hold, and goes round from there, so
  /// that no two chips read from the same one at a time.
  template <typename Body>
  void each_member(const Body& body) const {
    for (std::size_t i = 0; i < n_; ++i) body((static_cast<std::size_t>(index_) + i) % n_);
  }

  void gather() const {
    each_member([this](std::size_t q) {
      for (std::size_t o = 0; o < outer(); ++o) {
        move(static_cast<int>(q), o * row(), (o * n_ + q) * row(), call_.count);
      }
    });
  }

  void reduce_scatter() const {
    for (std::size_t o = 0; o < outer(); ++o) {
      move(kAllMembers, (o * n_ + static_cast<std::size_t>(index_)) * row(), o * row(),
           call_.count);
    }
  }

  void move_block(const AllToAllParts& block, std::size_t dim, std::size_t q, std::size_t source,
                  std::size_t destination) const {
    if (dim == block.contiguous_from) {
      const std::size_t bytes = block.shape[dim] * block.source_stride[dim];
      return move(static_cast<int>(q), source, destination,
                  static_cast<std::int64_t>(bytes / element_));
    }
    for (std::size_t i = 0; i < block.shape[dim]; ++i) {
      move_block(block, dim + 1, q, source + i * block.source_stride[dim],
                 destination + i * block.destination_stride[dim]);
    }
  }

  void all_to_all() const {
    const AllToAllParts parts = all_to_all_parts(call_, n_);
    each_member([&](std::size_t q) {
      move_block(parts, 0, q, static_cast<std::size_t>(index_) * parts.source_step,
                 q * parts.destination_step);
    });
  }

  Algorithm algorithm_;
  const CollectiveCall& call_;
  std::size_t n_;
  int index_;
  std::size_t element_;
  const Visit& visit_;
};

}  // namespace weft
