#pragma once
/// HangWatch: finds workers that are alive but make no progress while others wait for them, and
/// jobs in which no worker makes progress. It does no I/O: the caller passes the time and the
/// contents of the board.
///
/// A worker moves if its board rows change (a step, a collective, a chip that begins or ends a
/// wait, a state, a new process). A worker that compiles, saves or loads also moves while its
/// process uses CPU time. The job moves if a worker moves or if the trainer receives a message (a
/// report, a program, a lease, the end of a loop). What a loop does on the host between two of
/// these events isn't seen.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/protocol/sighting.hpp"
#include "transport/board/board.hpp"

namespace weft {

/// The state of a job at one time.
struct HangView {
  std::span<const ActorRow> rows{};
  std::span<const int> awaited{};  ///< workers that the trainer waits for
  bool running = false;            ///< loops run, so at least one worker must move
  std::uint64_t messages = 0;      ///< the number of messages that the trainer has received
  /// Returns the CPU time of a process on all cores. May be empty: then CPU time isn't watched.
  std::function<std::uint64_t(const ProcessId&)> core_time{};
};

/// The workers that hang, if any.
struct Hang {
  std::vector<int> workers{};
  bool all = false;  ///< nothing in the job moves, and no worker is known for which the others wait
};

class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The interval at which observe() must be called.
  static constexpr std::chrono::milliseconds kPeriod{200};

  explicit HangWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// Returns workers that have not moved for the timeout while others wait for them. If no worker
  /// is waited for and nothing in the job has moved, returns all workers whose loops have not
  /// ended. Each hang is reported once.
  Hang observe(const HangView& view, Time now);
  /// Forgets all observations, because the workers begin again.
  void forget();

 private:
  struct Seen {
    std::string rows;  ///< the contents of the rows
    Time since{};
    bool ended = false;
    bool told = false;
  };
  void look(const HangView& view, Time now);

  std::chrono::milliseconds timeout_;
  std::map<int, Seen> seen_;  // by worker
  std::uint64_t messages_ = 0;
  std::optional<Time> last_move_;
};

}  // namespace weft
