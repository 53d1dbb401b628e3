#pragma once
/// LineCall: reads and writes the mailboxes in the chips' lines, for a call whose bytes travel in
/// the line that announces it. prepare() chooses the functions in advance. So between the arrival
/// of the last chip and this chip's next announcement, no schedule is read and no kernel is looked
/// up.

#include <cstddef>
#include <span>

#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {

/// Returns whether a call's source fits in the mailbox of a line, or is empty.
bool is_in_lines(Algorithm algorithm, const CollectiveCall& call, int group_size);

/// One chip's call whose bytes travel in lines. Before and after the sync it does the same loads
/// and stores as the schedule of make_schedule().
class LineCall {
 public:
  /// `arena` is the chip's own arena.
  LineCall(Algorithm algorithm, const CollectiveCall& call, int group_size, std::byte* arena);

  bool has_mail() const { return mail_ != nullptr; }
  /// Returns the content of the chip's mailbox: the source, followed by zeros.
  Bytes16 mail() const { return mail_(*this); }
  /// Computes the result from the mailboxes of all members, in group order. Returns false if there
  /// is no function for this call; the caller must then carry out the schedule.
  bool finish(std::span<const std::byte* const> mailboxes) const {
    if (finish_ != nullptr) finish_(*this, mailboxes);
    return finish_ != nullptr || mail_ == nullptr;
  }

 private:
  template <std::size_t bytes>
  struct Sized;
  template <std::size_t bytes>
  void choose(const CollectiveCall& call);

  Bytes16 (*mail_)(const LineCall& call) = nullptr;
  void (*finish_)(const LineCall& call, std::span<const std::byte* const> mailboxes) = nullptr;
  ReduceLoop16 reduce_ = nullptr;
  const std::byte* source_ = nullptr;
  std::byte* destination_ = nullptr;
  std::size_t bytes_ = 0;  ///< size of the source
};

}  // namespace weft
