#pragma once
/// LineCall: what a chip does with the mailboxes of the lines, chosen once for a call whose bytes
/// travel in the line that announces it. Between the arrival of the last chip and what this chip
/// announces next no schedule is read and no kernel is looked for.

#include <cstddef>
#include <span>

#include "transport/collectives/algorithm.hpp"
#include "transport/collectives/collective_call.hpp"
#include "transport/reduce/reduce_loops.hpp"

namespace weft {

/// Whether the source fits in a mailbox of the lines, or there is none.
bool is_in_lines(Algorithm algorithm, const CollectiveCall& call, int group_size);

/// Of one chip. It loads and stores what make_schedule() says before and after the sync.
class LineCall {
 public:
  /// `arena` of the chip.
  LineCall(Algorithm algorithm, const CollectiveCall& call, int group_size, std::byte* arena);

  bool has_mail() const { return mail_ != nullptr; }
  /// What the chip puts into its mailbox: the source, and zeros behind it.
  Bytes16 mail() const { return mail_(*this); }
  /// Makes the result of all members' mailboxes, in group order. False where there is no function
  /// for that, so that the schedule has to be carried out.
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
  std::size_t bytes_ = 0;  ///< of the source
};

}  // namespace weft
