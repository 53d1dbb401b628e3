#pragma once
/// Makes the data that views show of an actor and of a job. The data are from the job's own records
/// and from the system's view of its processes.

#include <optional>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

struct ActorView {
  int node = 0;  ///< row in the board
  std::string name{};
  std::string kind{};
  int worker = -1;
  int chip = -1;
  int pid = 0;
  /// The board's state, or "stopped", "held", "gone". A loop whose chips all wait for other chips
  /// is "waiting", too.
  std::string state{};
  char letter = '?';  ///< the state's letter in a grid
  double for_s = -1;  ///< time since the actor's row changed; negative if unknown
  std::uint64_t step = 0;
  std::uint64_t mailbox = 0;
  std::string message{};
  std::string doing{};  ///< the collective, the call into the program's code, or the error
  std::optional<double> cores{};      ///< used by a chip's thread, or another actor's process
  std::optional<double> came_last{};  ///< share of collectives to which a chip came last
  std::optional<double> waited_s{};   ///< time that a chip has waited for others in collectives
};

/// Returns the views of all actors. `before` is an earlier snapshot, with which the use of cores is
/// computed; if it is null, the use is unknown.
std::vector<ActorView> view_actors(const Snapshot& snapshot, const Snapshot* before = nullptr);
/// The text that explains the letters in a grid of chips.
extern const char* const kStateLetters;

struct JobView {
  /// "running", "hung", "blocked" (in a callback), "stopped", "held", "dead" (without a result), or
  /// the status with which the job ended.
  std::string state{};
  double for_s = -1;  ///< time without movement; negative if the job moves or is over
  std::uint64_t step = 0;
  std::optional<double> steps_per_s{};  ///< 0 if nothing moves; absent if unknown or over
  std::optional<double> loss{};         ///< the last reported loss
};

JobView view_job(const Snapshot& snapshot);

/// Returns for example "41 s"; "" for negative numbers.
std::string for_text(double seconds);
/// These functions return texts such as "212 %" of a core, "18 %", "36.8 s", "348" and "0.1159"; ""
/// if the number is unknown.
std::string cpu_text(const ActorView& actor);
std::string came_last_text(const ActorView& actor);
std::string waits_text(const ActorView& actor);
std::string rate_text(const JobView& job);
std::string loss_text(const JobView& job);

}  // namespace weft
