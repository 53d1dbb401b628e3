#pragma once
/// Teams of chips for tests. A chip is a thread on anonymous memory, a process on named memory, or
/// a thread that shares memory only with the chips of its host.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/preparing_communicator.hpp"
#include "tests/support/socket_tier.hpp"
#include "transport/board/board.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::testing {

/// A chip of a team as seen by the chip's body.
struct TeamChip {
  int id = 0;                           ///< the chip's id in the mesh
  JobMemory& memory;                    ///< the memory of the chip's host
  const Board& board;                   ///< the board of the job
  const SocketGrid* sockets = nullptr;  ///< the sockets between hosts; null if the job has one host
  std::function<void(std::string_view reason)> abort;  ///< ends the waits of the whole job

  PreparingCommunicator communicator(const Mesh& mesh, const WaitPolicy& policy) const {
    const int position = mesh.position_of(id);
    std::unique_ptr<CollectiveTier> network;
    if (sockets) {
      network = make_socket_tier(memory, mesh, position, *sockets, board.device(id), policy);
    }
    return {memory, mesh, position, board.device(id), policy, std::move(network)};
  }
  std::byte* arena() const { return memory.arena(id % memory.num_chips()); }
};

/// The work of one chip. If it throws, the chip has failed, and the waits of the other chips end.
using ChipBody = std::function<void(const TeamChip& chip)>;

inline void run_chip(const TeamChip& chip, const ChipBody& body) {
  try {
    chip.memory.reserve(chip.id % chip.memory.num_chips(), 0, chip.memory.arena_capacity());
    body(chip);
  } catch (const std::exception& error) {
    chip.abort(fmt::format("chip {} failed: {}", chip.id, error.what()));
    throw;
  }
}

/// Sets whether the job has more chips than cores. Must be called before any chip uses `memory`.
inline void set_crowded(JobMemory& memory, bool crowded) {
  auto* lines = reinterpret_cast<std::byte*>(&memory.group_line(0, 0));
  reinterpret_cast<ControlHeader*>(lines - sizeof(ControlHeader))->crowded = crowded ? 1 : 0;
}

/// Runs a thread for each chip; returns a failure per chip, which is empty where the chip
/// succeeded.
template <typename MakeChip>
std::vector<std::string> run_threads(int num_chips, const MakeChip& make_chip,
                                     const ChipBody& body) {
  std::vector<std::string> failures(static_cast<std::size_t>(num_chips));
  std::vector<std::thread> threads;
  for (int chip = 0; chip < num_chips; ++chip) {
    threads.emplace_back([&, chip] {
      try {
        run_chip(make_chip(chip), body);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(chip)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

/// A team whose chips are threads that share one memory. Every team has the same two functions:
/// mesh_of() returns the mesh with those axes between hosts that the team needs; run() returns a
/// failure per chip, "" if the chip succeeded. For the parameter `crowded` see set_crowded().
struct ThreadTeam {
  static Mesh mesh_of(const Mesh& mesh) { return mesh; }

  static std::vector<std::string> run(const Mesh& mesh, std::size_t arena_capacity,
                                      const ChipBody& body, std::optional<bool> crowded = {}) {
    const std::string job = unique_job();
    JobMemory memory = JobMemory::anonymous(
        {.job = job, .num_chips = mesh.size(), .arena_capacity = arena_capacity});
    if (crowded) set_crowded(memory, *crowded);
    const Board board = Board::anonymous({.job = job, .num_chips = mesh.size()});
    const auto abort = [&memory](std::string_view reason) { memory.abort(reason); };
    return run_threads(
        mesh.size(),
        [&](int id) {
          return TeamChip{.id = id, .memory = memory, .board = board, .abort = abort};
        },
        body);
  }
};

/// A team whose chips are threads. Only the chips of one host share memory, and sockets connect the
/// hosts; the mesh's first axis runs over the hosts.
struct HostTeam {
  static Mesh mesh_of(const Mesh& mesh) { return mesh.with_dcn_atoms(mesh.axis_atoms(0).mask()); }

  static std::vector<std::string> run(const Mesh& mesh, std::size_t arena_capacity,
                                      const ChipBody& body, std::optional<bool> crowded = {}) {
    const std::string job = unique_job();
    const int per_host = chips_per_host(mesh);
    std::vector<JobMemory> hosts;
    for (int host = 0; host < mesh.size() / per_host; ++host) {
      hosts.push_back(JobMemory::anonymous({.job = fmt::format("{}-{}", job, host),
                                            .num_chips = per_host,
                                            .arena_capacity = arena_capacity}));
      if (crowded) set_crowded(hosts.back(), *crowded);
    }
    const Board board = Board::anonymous({.job = job, .num_chips = mesh.size()});
    const SocketGrid sockets(mesh.size());
    const auto abort = [&hosts](std::string_view reason) {
      for (JobMemory& host : hosts) host.abort(reason);
    };
    return run_threads(
        mesh.size(),
        [&](int id) {
          return TeamChip{.id = id,
                          .memory = hosts[static_cast<std::size_t>(id / per_host)],
                          .board = board,
                          .sockets = &sockets,
                          .abort = abort};
        },
        body);
  }
};

/// A job whose chips are processes; the job's names are removed at the end.
class ProcessTeam {
 public:
  ProcessTeam(int num_chips, std::size_t arena_capacity, const ChipBody& body,
              std::optional<bool> crowded = {})
      : memory_(JobMemory::create(
            {.job = job_, .num_chips = num_chips, .arena_capacity = arena_capacity})),
        board_(Board::create({.job = job_, .num_chips = num_chips})) {
    if (crowded) set_crowded(memory_, *crowded);
    for (int chip = 0; chip < num_chips; ++chip) {
      chips_.emplace_back([this, chip, &body] {
        JobMemory memory = JobMemory::open(job_);
        const Board board = Board::open(job_, false);
        const auto abort = [&memory](std::string_view reason) { memory.abort(reason); };
        run_chip({.id = chip, .memory = memory, .board = board, .abort = abort}, body);
      });
    }
  }
  ~ProcessTeam() { JobMemory::remove(job_); }
  ProcessTeam(const ProcessTeam&) = delete;
  ProcessTeam& operator=(const ProcessTeam&) = delete;

  JobMemory& memory() { return memory_; }
  const Board& board() const { return board_; }
  ChildProcess& chip(int chip) { return chips_[static_cast<std::size_t>(chip)]; }

  static Mesh mesh_of(const Mesh& mesh) { return mesh; }
  static std::vector<std::string> run(const Mesh& mesh, std::size_t arena_capacity,
                                      const ChipBody& body, std::optional<bool> crowded = {}) {
    ProcessTeam team(mesh.size(), arena_capacity, body, crowded);
    std::vector<std::string> failures;
    for (ChildProcess& chip : team.chips_) failures.push_back(chip.join());
    return failures;
  }

 private:
  std::string job_ = unique_job();
  JobMemory memory_;
  Board board_;
  std::vector<ChildProcess> chips_;
};

/// ThreadSanitizer doesn't see races between processes.
#ifdef WEFT_THREAD_SANITIZER
using Teams = ::testing::Types<ThreadTeam, HostTeam>;
#else
using Teams = ::testing::Types<ThreadTeam, ProcessTeam, HostTeam>;
#endif

}  // namespace weft::testing
