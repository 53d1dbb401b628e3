#pragma once
/// ActorView: makes the data that views show of an actor and of a job, from the job's own records
/// and from the system's view of its processes.

#include <optional>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

struct ActorView {
  int node = 0;  ///< the actor's row in the board
  std::string name{};
  std::string kind{};
  int worker = -1;
  int chip = -1;
  int pid = 0;
  /// The board's state, or "stopped", "held", "gone". A loop whose chips all wait for other chips
  /// is also "waiting".
  std::string state{};
  char letter = '?';  ///< the letter that stands for the state in a grid
  double for_s = -1;  ///< time since the actor's row changed; negative if unknown
  std::uint64_t step = 0;
  std::uint64_t mailbox = 0;
  std::string message{};
  std::string doing{};                ///< the collective, the foreign call, or the error
  std::optional<double> cores{};      ///< cores that a chip's thread or an actor's process uses
  std::optional<double> came_last{};  ///< share of its collectives to which a chip came last
  std::optional<double> waited_s{};   ///< time that a chip has waited for others in collectives
};

/// Returns the views of all actors. `before` is an earlier snapshot, from which the use of cores is
/// computed; if it is null, the use is unknown.
std::vector<ActorView> view_actors(const Snapshot& snapshot, const Snapshot* before = nullptr);
/// The text that explains the letters in a grid of chips.
extern const char* const kStateLetters;

struct JobView {
  /// "running", "hung", "blocked" (in a callback), "stopped", "held", "dead" (without a result), or
  /// the status with which the job ended.
  std::string state{};
  double for_s = -1;  ///< how long nothing has moved; negative if the job moves or is over
  std::uint64_t step = 0;
  /// 0 if nothing moves; absent if unknown or the job is over.
  std::optional<double> steps_per_s{};
  std::optional<double> loss{};  ///< the last reported loss
};

JobView view_job(const Snapshot& snapshot);

/// Returns a text such as "41 s"; "" for negative numbers.
std::string for_text(double seconds);
/// Return, in order, texts such as "212 %" of a core, "18 %", "36.8 s", "348" and "0.1159"; "" if
/// the number is unknown.
std::string cpu_text(const ActorView& actor);
std::string came_last_text(const ActorView& actor);
std::string waits_text(const ActorView& actor);
std::string rate_text(const JobView& job);
std::string loss_text(const JobView& job);

}  // namespace weft
