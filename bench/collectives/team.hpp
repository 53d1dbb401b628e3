#pragma once
/// Team: the rank processes of one implementation. They live for the whole run and sleep while
/// others are measured.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bench/collectives/process.hpp"
#include "bench/collectives/protocol.hpp"

namespace weft::bench {

/// How an implementation is started.
struct Launch {
  std::string name = {};     ///< "weft", "ompi-tuned"
  std::string setting = {};  ///< where a name has several: "memory, ring"
  std::vector<std::string> command = {};
  Process::Environment environment = {};
  /// The command is one rank; otherwise it starts all of them.
  bool rank_each = true;
  /// Bytes of a rank's arena in a JobMemory; 0: it has none.
  std::size_t arena_capacity = 0;
  /// Has to run beside the ranks; empty: none.
  std::vector<std::string> daemon = {};
  std::vector<Op> ops = {};
};

class Team {
 public:
  /// Returns when all ranks have said hello. Throws unavailable, timeout, io, cancelled.
  Team(const Launch& launch, int ranks, Meeting& meeting);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  const std::string& name() const { return name_; }
  const std::string& setting() const { return setting_; }
  /// "ompi-tuned (memory, ring)".
  std::string label() const;
  bool offers(Op op) const;

  /// The slowest rank's times; verified: by all that have a result. Throws unavailable with what a
  /// rank said, io or timeout where one didn't answer.
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
  std::string job_;  ///< of its JobMemory; empty: none
  std::optional<Process> daemon_;
  std::vector<Process> processes_;
  std::vector<std::optional<Connection>> ranks_;
};

}  // namespace weft::bench
