#pragma once
/// LineCall: handles the mailboxes of the lines, for a call whose bytes travel in the line that
/// announces it. The function is chosen once. Between the arrival of the last chip and this chip's
/// next announcement, no schedule is read and no kernel is looked up.

#include <cstddef>
#include <span>

#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {

/// Returns whether the source fits in a mailbox of the lines, or there is no source.
bool is_in_lines(Algorithm algorithm, const CollectiveCall& call, int group_size);

/// The call of one chip. It does the loads and stores that make_schedule() lists before and after
/// the sync.
class LineCall {
 public:
  /// `arena` is the chip's.
  LineCall(Algorithm algorithm, const CollectiveCall& call, int group_size, std::byte* arena);

  bool has_mail() const { return mail_ != nullptr; }
  /// Returns the content of the chip's mailbox: the source, followed by zeros.
  Bytes16 mail() const { return mail_(*this); }
  /// Makes the result from all members' mailboxes, in group order. Returns false if there is no
  /// function for it, so that the schedule must be carried out.
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
