#pragma once
/// ActorRow: what an actor's row of the board says.

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class ActorKind : std::uint8_t { trainer = 0, worker = 1, device = 2 };
enum class ActorState : std::uint8_t {
  absent = 0,
  starting = 1,
  joining = 2,
  idle = 3,
  compiling = 4,
  running = 5,  ///< a chip runs a program, or a loop waits for its chips
  waiting = 6,  ///< a chip waits in a collective for another chip
  ended = 7,
  failed = 8,
  lost = 9,     ///< the actor's process is gone; written by the trainer
  saving = 10,  ///< the actor's loop waits for a checkpoint to be written
  /// The actor's loop waits for a batch of a DeviceLoader, or its worker passes state to or from
  /// another host.
  loading = 11,
  // States of a loop:
  user_code = 12,  ///< the loop is in code that isn't part of weft
  admission = 13,  ///< the loop waits until every worker has shown the same program
  lease = 14,      ///< the loop waits for the trainer's grant of a step
  reporting = 15,
  commands = 16,  ///< the loop waits for a command (TrainContext::wait_commands())
  // Again a state of any actor:
  host_lost = 17,  ///< the actor's host is lost, as `last_error` says; written by the trainer
};
inline constexpr ActorState kActorStateMax = ActorState::host_lost;
/// Returns whether the actor's process is gone.
constexpr bool is_lost(ActorState state) {
  return state == ActorState::lost || state == ActorState::host_lost;
}
enum class JobStatus : std::uint8_t {
  starting = 0,
  running = 1,
  succeeded = 2,
  failed = 3,
  cancelled = 4,  ///< the job was told to end before its loops were done
};

std::string_view to_string(ActorKind kind) noexcept;
std::string_view to_string(ActorState state) noexcept;
std::string_view to_string(JobStatus status) noexcept;

/// A copy of one actor's row.
struct ActorRow {
  int index = 0;  ///< row number: 0 the trainer, then the workers, then the devices
  ActorKind kind = ActorKind::trainer;
  ActorState state = ActorState::absent;
  int worker = -1;
  int chip = -1;
  int pid = 0;
  int tid = 0;  ///< the thread that drives the actor; 0: unknown
  std::uint64_t step = 0;
  std::uint64_t messages_came = 0;
  std::uint64_t messages_begun = 0;
  std::uint64_t messages_done = 0;
  std::uint64_t mailbox = 0;  ///< number of messages that arrived but weren't begun
  std::string last_message;   ///< the message that was begun last
  std::string last_error;
  std::uint64_t collective = 0;  ///< number of the last collective entered; 0: none
  std::string collective_name;   ///< "all_reduce 'fc1.weight.grad'"
  bool in_collective = false;
  int waiting_for = -1;         ///< number of a chip that hasn't arrived in the collective
  std::string source;           ///< where the program last called weft: "digits.cpp:84"
  std::int64_t since_ns = 0;    ///< CLOCK_BOOTTIME when the state was entered
  std::int64_t updated_ns = 0;  ///< CLOCK_BOOTTIME of the row's last change
  /// CLOCK_BOOTTIME when the actor last did something else than run the program's own code or
  /// report; 0: unknown.
  std::int64_t moved_ns = 0;
  std::uint64_t pid_namespace = 0;  ///< the namespace in which `pid` is valid; 0: unknown
  /// The foreign call that the trainer or a loop is in, such as "Plotter::on_report" or the name of
  /// a dataset.
  std::string inside{};
  std::int64_t inside_number = -1;   ///< number of the item that the call reads; -1: none
  int inside_tid = 0;                ///< the thread in the foreign call
  std::int64_t inside_since_ns = 0;  ///< CLOCK_BOOTTIME when the call began; 0: no such call
  bool torn = false;
};

}  // namespace weft
