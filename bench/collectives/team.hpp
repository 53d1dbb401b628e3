#pragma once
/// Team: the rank processes of one implementation. They exist for the whole run, and sleep while
/// other teams are measured.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/collectives/process.hpp"
#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// Says how an implementation is started.
struct Launch {
  std::string name = {};     ///< such as "weft" or "ompi-tuned"
  std::string setting = {};  ///< set if a name has several settings, such as "memory, ring"
  std::vector<std::string> command = {};
  /// Words to put before the command of rank i, such as a command that enters a namespace; empty if
  /// none.
  std::vector<std::vector<std::string>> prefixes = {};
  Process::Environment environment = {};
  /// If true, the command starts one rank; if false, it starts all ranks.
  bool rank_each = true;
  /// The size of a rank's arena in a JobMemory, in bytes; 0 if the implementation needs none.
  std::size_t arena_capacity = 0;
  /// A command that must run beside the ranks; empty if none.
  std::vector<std::string> daemon = {};
  std::vector<Op> ops = {};
};

class Team {
 public:
  /// Starts the ranks, and returns when all of them have sent Hello. Throws unavailable, timeout,
  /// io, cancelled.
  Team(const Launch& launch, int ranks, Meeting& meeting);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const std::string& name() const { return name_; }
  const std::string& setting() const { return setting_; }
  /// Returns the name with the setting, such as "ompi-tuned (memory, ring)".
  std::string label() const;
  bool offers(Op op) const;

  /// Runs the request on all ranks. Returns the times of the slowest rank. `verified` is true if
  /// the result was correct on all ranks that have one. Throws unavailable with a rank's error; io
  /// or timeout if a rank didn't answer.
  Reply run(const Request& request);

 private:
  void launch_ranks(const Launch& launch, Meeting& meeting);
  Reply reply_of(std::size_t rank);
  Connection await_rank(Meeting& meeting, std::chrono::steady_clock::time_point deadline);
  void stop();

  std::string name_;
  std::string setting_;
  std::vector<Op> ops_;
  int num_ranks_;
  std::string job_;  ///< the id of the team's JobMemory; empty if the team has none
  std::optional<Process> daemon_;
  std::vector<Process> processes_;
  std::vector<std::optional<Connection>> ranks_;
};

}  // namespace weft::bench
