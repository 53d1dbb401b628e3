#pragma once
/// The messages between the trainer and the agents. Each agent runs a job's part on another host.
/// Host 0 is the trainer's own host and has no agent.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "inspect/hosts/host_list.hpp"
#include "transport/storage/host_folders.hpp"

namespace weft {

/// The trainer and the agents take each other for lost if they are silent. But a program that
/// hasn't run for this time, for example because it was stopped, can't tell whether the others were
/// silent.
inline constexpr std::chrono::seconds kStandstill{2};

/// The first message of an agent. An agent that was cut off from the trainer sends this message
/// again.
struct HostJoin {
  std::string job_id{};  ///< the job in which the agent took part; "": none
  /// The last step that all chips of its host have committed. Set if job_id is set.
  std::uint64_t committed = 0;
  std::int32_t host = -1;
  std::int32_t num_hosts = 0;
  std::int32_t pid = 0;
  std::int32_t num_workers = 0;  ///< number of workers on all hosts together
  std::int32_t chips_per_worker = 0;
  /// The number of the fit() call of the agent's process, from 1; 0: the agent only asks which call
  /// host 0 has reached.
  std::int32_t fit_number = 0;
  LoopIdentity loop{};
  bool uses_ucx = false;
  std::string trainer{};  ///< the address, without the port, by which the agent reaches host 0
  HostWhere where{};      ///< the trainer recognizes an agent by the memory_id in it
};

/// The fit() calls that host 0's process has made.
struct FitCalls {
  std::string process{};    ///< names the process
  std::int32_t number = 1;  ///< number of the call that runs the trainer, from 1
  /// The outcomes of the calls before it, in order (note_result(), note_thrown()); "": unknown.
  std::vector<std::string> outcomes{};
};

/// The trainer's answer: what the agent needs for its part of the job.
struct HostWelcome {
  FitCalls calls{};      ///< an agent with another number hasn't joined
  std::string taken{};   ///< why another process still has this place; "": the agent is welcome
  bool is_over = false;  ///< the job has ended, so the agent waits for host 0's next call
  std::string job_id{};
  std::string token{};  ///< the agent's workers join with this token
  std::string fits{};  ///< for workers that run main() again (NamelessFit); "": the loop has a name
  Assignment assignment{};
  HostStorage storage = HostStorage::unknown;
  std::vector<OfferedCheckpoint> offered{};  ///< checkpoints to continue from, newest first
};

/// A worker's process, as an agent sees it.
struct HostProcess {
  std::int32_t worker = -1;
  std::uint64_t core_time = 0;  ///< CPU time on all cores, in ticks of the host's kernel
  std::string doing{};          ///< such as "sleeps in futex_wait"
};

/// The end of a worker's process, as its parent saw it.
struct ProcessEnded {
  std::int32_t worker = -1;
  std::int32_t pid = 0;
  std::int32_t signal = 0;
  std::int32_t exit_code = 0;
  bool out_of_memory = false;  ///< while it ran, the kernel killed a process for lack of memory
  bool status_taken = false;   ///< other code has reaped the process, so it isn't known how it
                               ///< ended
};

/// Sent each second, and before the end of a process is reported.
struct HostNews {
  std::int32_t host = -1;
  std::uint64_t generation = 0;  ///< the last generation for which the host was prepared
  std::uint64_t committed = 0;   ///< the last step that all chips of the host have committed
  std::int64_t now_ns = 0;       ///< CLOCK_BOOTTIME of the host, on which the times in `rows` are
                                 ///< based
  std::vector<std::int32_t> row_numbers{};
  std::vector<std::string> rows{};  ///< the contents of the board rows `row_numbers`
  std::vector<HostProcess> processes{};
};

/// The addresses at which other hosts reach chips in a generation (Wires::address()), by device id
/// from `first_chip` on. Each worker sends the addresses of its chips, and receives the addresses
/// of all chips.
struct WireAddresses {
  std::uint64_t generation = 0;
  std::int32_t first_chip = 0;
  std::vector<std::string> addresses{};
};

/// The end of a connection between chips of two hosts, as the worker of one chip has seen it.
struct WireLost {
  std::int32_t worker = -1;  ///< the worker that reports it
  std::uint64_t generation = 0;
  std::int32_t chip = -1;  ///< device id of the worker's chip
  std::int32_t peer = -1;  ///< device id of the other chip
  std::string why{};
};

}  // namespace weft
