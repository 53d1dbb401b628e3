#pragma once
/// What a row of the board says of an actor.

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
  running = 5,  ///< a chip: runs a program. A loop: waits for its chips
  waiting = 6,  ///< in a collective, for another chip
  ended = 7,
  failed = 8,
  lost = 9,      ///< its process is gone; written by the trainer
  saving = 10,   ///< its loop waits for a checkpoint to be written
  loading = 11,  ///< its loop waits for a batch of a DeviceLoader
  // Of a loop.
  user_code = 12,  ///< in code that isn't weft's
  admission = 13,  ///< waits until every worker has shown the same program
  lease = 14,      ///< waits for the trainer's grant of a step
  reporting = 15,
};
inline constexpr ActorState kActorStateMax = ActorState::reporting;
enum class JobStatus : std::uint8_t {
  starting = 0,
  running = 1,
  succeeded = 2,
  failed = 3,
  cancelled = 4,  ///< it was told to end before its loops were done
};

std::string_view to_string(ActorKind kind) noexcept;
std::string_view to_string(ActorState state) noexcept;
std::string_view to_string(JobStatus status) noexcept;

/// A copy of one actor's row.
struct ActorRow {
  int index = 0;  ///< row: 0 the trainer, then the workers, then the devices
  ActorKind kind = ActorKind::trainer;
  ActorState state = ActorState::absent;
  int worker = -1;
  int chip = -1;
  int pid = 0;
  int tid = 0;  ///< of the thread that drives it; 0: not known
  std::uint64_t step = 0;
  std::uint64_t messages_came = 0;
  std::uint64_t messages_begun = 0;
  std::uint64_t messages_done = 0;
  std::uint64_t mailbox = 0;  ///< messages that came and weren't begun
  std::string last_message;   ///< begun
  std::string last_error;
  std::uint64_t collective = 0;  ///< number of the last collective entered, 0: none
  std::string collective_name;   ///< "all_reduce 'fc1.weight.grad'"
  bool in_collective = false;
  int waiting_for = -1;         ///< a chip that hadn't arrived
  std::string source;           ///< where the program last called weft: "digits.cpp:84"
  std::int64_t since_ns = 0;    ///< CLOCK_BOOTTIME: when the state was entered
  std::int64_t updated_ns = 0;  ///< CLOCK_BOOTTIME
  /// CLOCK_BOOTTIME: when it last did what is neither the program's own code nor a report; 0: not
  /// known.
  std::int64_t moved_ns = 0;
  std::uint64_t pid_namespace = 0;  ///< in which `pid` counts; 0: not known
  /// The call that the trainer or a loop waits for: "Plotter::on_report", or a dataset's name.
  std::string inside{};
  std::int64_t inside_number = -1;   ///< of the item that is read; -1: none
  int inside_tid = 0;                ///< the thread that is inside
  std::int64_t inside_since_ns = 0;  ///< CLOCK_BOOTTIME; 0: it is inside of nothing
  bool torn = false;
};

}  // namespace weft
