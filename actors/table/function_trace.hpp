#pragma once
/// FunctionTrace: records the functions that a thread of actors runs.

#include <cstdint>

#include "transport/actors/call_ring.hpp"

namespace weft {

/// Only one thread may use it.
class FunctionTrace {
 public:
  FunctionTrace() = default;  ///< records nothing
  explicit FunctionTrace(const CallRingWriter& writer) : writer_(writer) {}

  /// Returns the tick at which the next function begins. If the thread hasn't waited since the last
  /// function, this is that function's end, so the clock isn't read.
  std::uint64_t begin() const {
    if (!writer_.is_on()) return 0;
    return ended_ != 0 ? ended_ : writer_.now();
  }
  /// Records a function that ends now. `event` needs no kind and no value.
  void end(std::uint64_t begin, CallEvent event) {
    if (!writer_.is_on()) return;
    event.kind = CallEventKind::ran;
    event.value = begin;
    ended_ = writer_.now();
    number_ = writer_.put(ended_, event);
    work_.number = 0;  // the next work() begins a new event
  }
  /// Records that work() of an actor ends now. Consecutive short calls are one event, so that an
  /// actor that only checks whether there is something to do doesn't overwrite all other events.
  void end_work(std::uint64_t begin, std::uint32_t row) {
    if (!writer_.is_on()) return;
    const std::uint64_t now = writer_.now();
    const bool is_short = now - begin < kShortTicks;
    if (is_short && work_.row == row && work_.number != 0) {
      ++work_.number;
      ended_ = now;
      if (writer_.replace(number_, now, work_)) return;
    }
    const CallEvent work{.kind = CallEventKind::ran,
                         .function = ActorFunctionKind::work,
                         .row = row,
                         .number = 1,
                         .value = begin};
    end(begin, work);
    if (is_short) work_ = work;
  }
  /// Must be called before the thread waits, or does anything else than run a function.
  void pause() { ended_ = 0; }

 private:
  /// Calls of work() that take fewer ticks count as short: 16 us at 1 GHz, 5 us at 3 GHz.
  static constexpr std::uint64_t kShortTicks = 1U << 14U;

  CallRingWriter writer_;
  std::uint64_t ended_ = 0;   ///< when the last function ended; 0: the thread has paused since
  std::uint64_t number_ = 0;  ///< the number of the last event
  CallEvent work_{};          ///< the event to which short calls of work() are added; number 0:
                              ///< none
};

}  // namespace weft
