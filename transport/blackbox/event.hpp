#pragma once
/// Event: something that a thread did, as the job's black box records it.

#include <cstdint>
#include <string_view>

namespace weft {

/// The kinds of events. Each comment says what the fields `number`, `value`, `peer` and `text` of
/// an event mean. A field without a meaning is 0, or -1 for `peer`.
enum class EventKind : std::uint8_t {
  step = 1,       ///< a step begins; number: the step
  run = 2,        ///< a plan begins; number: the run. value: fingerprint of the program
  plan_step = 3,  ///< a step of a plan begins; number: its index. text: the op and its place
  enter = 4,      ///< a collective is announced; number: the number of the collective. value: bytes
  leave = 5,      ///< a collective has ended; value: ns waited. peer: the chip that came last
  /// Waits until the chips of the previous step have committed. peer: the chip waited for.
  commit = 6,
  compile = 7,       ///< a plan is compiled; value: ns that it took, 0 at the beginning
  admission = 8,     ///< the trainer is asked to admit a program. value: its fingerprint
  lease = 9,         ///< waits for a lease. number: the step
  load = 10,         ///< waits for a batch; text: the loader. value: ns waited, 0 at the beginning
  checkpoint = 11,   ///< number: the step that is saved. value: bytes. text: the phase of the save
  report = 12,       ///< a report; number: the number of the report
  log = 13,          ///< text: the record, shortened; value: level in spdlog's numbering
  message_out = 14,  ///< number: counts the messages to `peer`. text: the message
  message_in = 15,   ///< a message is begun; fields as for message_out
  state = 16,        ///< the actor's state changes; value: ActorState
  error = 17,        ///< an error; text: its message
  generation = 18,   ///< number: the generation
  clock_jump = 19,   ///< the host has slept; value: for how many ns
};

/// A flag of an event: the event ends what the previous event of the same kind in the ring began.
/// The events of run, commit, compile, admission, lease, load and checkpoint come in such pairs.
inline constexpr std::uint8_t kEventEnds = 1;

/// Returns the name of the kind, or "unknown" for a number that isn't a kind.
std::string_view to_string(EventKind kind) noexcept;

/// An event, as a reader returns it.
struct Event {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  EventKind kind = EventKind::step;
  std::uint8_t flags = 0;
  int peer = -1;            ///< number of a chip or worker; -1: none
  std::string_view text{};  ///< lives as long as the box from which it was read
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::uint16_t step = 0;  ///< low 16 bits of the step
};

}  // namespace weft
