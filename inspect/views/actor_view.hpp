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
  std::string state{};  ///< as the board has it, or "stopped", "held", "gone"
  char letter = '?';    ///< of the state, in a grid
  double for_s = -1;    ///< since its row changed; below 0: unknown
  std::uint64_t step = 0;
  std::uint64_t mailbox = 0;
  std::string message{};
  std::string doing{};  ///< the collective it is in, or its error
};

std::vector<ActorView> view_actors(const Snapshot& snapshot);
/// What the letters of a grid mean.
extern const char* const kStateLetters;

struct JobView {
  std::string state{};  ///< "running", "hung", "stopped", "held", "dead", or how it has ended
  double for_s = -1;    ///< how long nothing has moved; below 0: it moves, or is over
  std::uint64_t step = 0;
};

JobView view_job(const Snapshot& snapshot);

/// "41 s", or "" below 0.
std::string for_text(double seconds);

}  // namespace weft
