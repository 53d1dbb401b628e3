#pragma once
/// HangWatch: finds workers that are alive and don't move while others wait for them, and jobs in
/// which nobody moves. Pure: what the board shows and the time come from outside.
///
/// What counts as a move of a worker: its board rows change (a step, a collective, a chip that
/// begins to wait or comes, a state, a new process), or it compiles or saves and its process gets
/// time of a core. What counts as one of the job, too: a message to the trainer (a report, a
/// program, a lease, the end of a loop). What a loop does on the host between two of these isn't
/// seen.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/board/board.hpp"

namespace weft {

/// What a job shows at a moment.
struct HangView {
  std::span<const ActorRow> rows{};
  std::span<const int> awaited{};  ///< workers that the trainer waits for
  bool running = false;            ///< loops run, so that somebody has to move
  std::uint64_t messages = 0;      ///< that the trainer has got
  std::function<std::uint64_t(int pid)> core_time{};
};

/// Workers that hang; none where nothing does.
struct Hang {
  std::vector<int> workers{};
  bool all = false;  ///< nobody in the job moves, and it isn't known who waits for whom
};

class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// How often observe() is to be called.
  static constexpr std::chrono::milliseconds kPeriod{200};

  explicit HangWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// Workers that others wait for and that have not moved for the timeout; where there is no such
  /// wait, and no move in the whole job, all whose loops have not ended. Each hang is told once.
  Hang observe(const HangView& view, Time now);
  /// The workers begin anew.
  void forget();

 private:
  struct Seen {
    std::string rows;  ///< what they showed
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
