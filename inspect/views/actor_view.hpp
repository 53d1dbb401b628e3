#pragma once
/// The data that views show of an actor and of a job, from their own records and from the system's
/// view of their processes.

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
  double for_s = -1;  ///< time since its row changed; negative if unknown
  std::uint64_t step = 0;
  std::uint64_t mailbox = 0;
  std::string message{};
  std::string doing{};  ///< its collective, its present call of the program's code, or its error
  std::optional<double> cores{};      ///< cores used by a chip's thread, or another's process
  std::optional<double> came_last{};  ///< share of a chip's collectives to which it came last
  std::optional<double> waited_s{};   ///< time that a chip has waited for others in collectives
};

/// `before` is an earlier snapshot, from which use of cores is measured; if null, it is unknown.
std::vector<ActorView> view_actors(const Snapshot& snapshot, const Snapshot* before = nullptr);
/// Explains the letters of a grid.
extern const char* const kStateLetters;

struct JobView {
  /// "running", "hung", "blocked" (in a callback), "stopped", "held", "dead", or the kind of its
  /// end.
  std::string state{};
  double for_s = -1;  ///< time without movement; negative if it moves or is over
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
