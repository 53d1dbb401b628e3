#pragma once
/// The messages between the trainer and the agents, which run a job's part on the other hosts. Host
/// 0 is the trainer's own host and has no agent.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "actors/protocol/protocol.hpp"
#include "inspect/hosts/host_list.hpp"
#include "transport/storage/host_folders.hpp"

namespace weft {

/// Trainer and agents take each other for lost if they are silent. A program that hasn't run for so
/// long, for example because it was stopped, can't tell whether the others were silent meanwhile.
inline constexpr std::chrono::seconds kStandstill{2};

/// The first message of an agent. An agent that was cut off from the trainer sends it again.
struct HostJoin {
  std::string job_id{};  ///< the job in which it took part; "": none
  /// The last step that all chips of its host have committed. Set if job_id is.
  std::uint64_t committed = 0;
  std::int32_t host = -1;
  std::int32_t num_hosts = 0;
  std::int32_t pid = 0;
  std::int32_t num_workers = 0;  ///< of all hosts together
  std::int32_t chips_per_worker = 0;
  LoopIdentity loop{};
  bool uses_ucx = false;
  std::string trainer{};  ///< the address, without the port, by which the agent reaches host 0
  HostWhere where{};      ///< by its memory_id the trainer knows an agent again
};

/// The trainer's answer: what the agent needs for its part of the job.
struct HostWelcome {
  std::string taken{};  ///< why another process has the place for now; "": the agent is welcome
  std::string job_id{};
  std::string token{};  ///< the agent's workers join with it
  std::string fits{};  ///< for workers that run main() again (NamelessFit); "": the loop has a name
  Assignment assignment{};
  HostStorage storage = HostStorage::unknown;
  std::vector<OfferedCheckpoint> offered{};  ///< newest first; the job may continue from these
};

/// A worker's process, as its host sees it.
struct HostProcess {
  std::int32_t worker = -1;
  std::uint64_t core_time = 0;  ///< on all cores, in ticks of its kernel
  std::string doing{};          ///< "sleeps in futex_wait"
};

/// The end of a worker's process, as its parent saw it.
struct ProcessEnded {
  std::int32_t worker = -1;
  std::int32_t pid = 0;
  std::int32_t signal = 0;
  std::int32_t exit_code = 0;
  bool out_of_memory = false;  ///< the kernel killed a process meanwhile, for lack of memory
  bool status_taken = false;   ///< other code has reaped the process, so how it ended isn't known
};

/// Sent each second, and before the end of a process is reported.
struct HostNews {
  std::int32_t host = -1;
  std::uint64_t generation = 0;  ///< the last one for which the host was prepared
  std::uint64_t committed = 0;   ///< the last step that all chips of the host have committed
  std::int64_t now_ns = 0;       ///< CLOCK_BOOTTIME of the host, to which the times in `rows` refer
  std::vector<std::int32_t> row_numbers{};
  std::vector<std::string> rows{};  ///< the bytes of those rows of its board
  std::vector<HostProcess> processes{};
};

/// The addresses at which chips of other hosts reach some chips in a generation (Wires::address()),
/// by device id from `first_chip` on. Each worker tells those of its chips, and gets those of all.
struct WireAddresses {
  std::uint64_t generation = 0;
  std::int32_t first_chip = 0;
  std::vector<std::string> addresses{};
};

/// The end of a connection between chips of two hosts, as one of them has seen it.
struct WireLost {
  std::int32_t worker = -1;  ///< which tells of it
  std::uint64_t generation = 0;
  std::int32_t chip = -1;  ///< its device id
  std::int32_t peer = -1;  ///< device id of the other end
  std::string why{};
};

}  // namespace weft
