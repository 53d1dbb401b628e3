#pragma once
/// What the views show of an actor and of a job: what they say of themselves, and what the system
/// says of their processes.

#include <optional>
#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

struct ActorView {
  int node = 0;  ///< row of the board
  std::string name{};
  std::string kind{};
  int worker = -1;
  int chip = -1;
  int pid = 0;
  /// As the board has it, or "stopped", "held", "gone"; a loop that waits for chips which wait for
  /// others is "waiting", too.
  std::string state{};
  char letter = '?';  ///< of the state, in a grid
  double for_s = -1;  ///< since its row changed; below 0: unknown
  std::uint64_t step = 0;
  std::uint64_t mailbox = 0;
  std::string message{};
  std::string doing{};  ///< the collective it is in, the call of the program's, or its error
  std::optional<double> cores{};      ///< that a chip's thread, or another's process, has had
  std::optional<double> came_last{};  ///< a chip's share of its collectives to which it came last
  std::optional<double> waited_s{};   ///< how long a chip has waited for others in collectives
};

/// `before`: an earlier snapshot, since which cores are counted; null: they aren't known.
std::vector<ActorView> view_actors(const Snapshot& snapshot, const Snapshot* before = nullptr);
/// What the letters of a grid mean.
extern const char* const kStateLetters;

struct JobView {
  /// "running", "hung", "blocked" in a callback, "stopped", "held", "dead", or how it has ended.
  std::string state{};
  double for_s = -1;  ///< how long nothing has moved; below 0: it moves, or is over
  std::uint64_t step = 0;
  std::optional<double> steps_per_s{};  ///< 0 where nothing moves; absent: unknown, or it is over
  std::optional<double> loss{};         ///< reported last
};

JobView view_job(const Snapshot& snapshot);

/// "41 s", or "" below 0.
std::string for_text(double seconds);
/// "212 %" of a core, "18 %", "36.8 s", "348", "0.1159"; "" where it isn't known.
std::string cpu_text(const ActorView& actor);
std::string came_last_text(const ActorView& actor);
std::string waits_text(const ActorView& actor);
std::string rate_text(const JobView& job);
std::string loss_text(const JobView& job);

}  // namespace weft
