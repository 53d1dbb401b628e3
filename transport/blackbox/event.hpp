#pragma once
/// What the black box of a job keeps: one event of one thread, in the order in which they happened.

#include <cstdint>
#include <string_view>

namespace weft {

/// `number`, `value` and `peer` of an event are those said here; else they are 0 (`peer`: -1).
enum class EventKind : std::uint8_t {
  step = 1,          ///< a step begins; number: the step
  run = 2,           ///< a plan begins; number: the run. value: fingerprint of the program
  plan_step = 3,     ///< number: index in the plan. text: the op and its place
  enter = 4,         ///< a collective is announced; number: of the collective. value: bytes
  leave = 5,         ///< ... has ended; value: ns waited. peer: the chip that came last
  commit = 6,        ///< waits until the chips of the step before have committed. peer: waited for
  compile = 7,       ///< a plan is compiled; value: ns that it took, 0 at the beginning
  admission = 8,     ///< the trainer is asked to admit a program. value: its fingerprint
  lease = 9,         ///< waits for a lease. number: the step
  load = 10,         ///< waits for a batch; text: the loader. value: ns waited, 0 at the beginning
  checkpoint = 11,   ///< number: the step saved. value: bytes. text: what happens
  report = 12,       ///< number: of the report
  log = 13,          ///< text: the record, cut; value: level as spdlog numbers it
  message_out = 14,  ///< number: sequence among those to `peer`. text: the message
  message_in = 15,   ///< as message_out, when it is begun
  state = 16,        ///< value: ActorState
  error = 17,        ///< text
  generation = 18,   ///< number: of the generation
  clock_jump = 19,   ///< the host slept. value: ns
};

/// Of an event's flags: it is the end of what the last event of its kind in the ring began. run,
/// commit, compile, admission, lease, load and checkpoint have a beginning and an end.
inline constexpr std::uint8_t kEventEnds = 1;

/// "unknown" for a number that is no kind.
std::string_view to_string(EventKind kind) noexcept;

/// As a reader gives it.
struct Event {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  EventKind kind = EventKind::step;
  std::uint8_t flags = 0;
  int peer = -1;            ///< chip or worker; -1: none
  std::string_view text{};  ///< lives as long as what it was read from
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::uint16_t step = 0;  ///< low 16 bits of the step
};

}  // namespace weft
