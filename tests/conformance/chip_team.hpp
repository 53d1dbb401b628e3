#pragma once
/// Teams of chips for tests. A chip is a thread on anonymous memory or a process on named memory.
/// In some teams, chips share memory only with the chips of their host.

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
#include "tests/support/wire_book.hpp"
#include "transport/board/board.hpp"
#include "transport/job/control_format.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/network/network_tier.hpp"

namespace weft::testing {

/// A chip of a team as seen by the chip's body.
struct TeamChip {
  int id = 0;              ///< the chip's id in the mesh
  JobMemory& memory;       ///< the memory of the chip's host
  const Board& board;      ///< the board of the job
  Wires* wires = nullptr;  ///< the wires to all other chips; null if the job has one host
  std::function<void(std::string_view reason)> abort;  ///< ends the waits of the whole job

  PreparingCommunicator communicator(const Mesh& mesh, const WaitPolicy& policy) const {
    const int position = mesh.position_of(id);
    std::unique_ptr<CollectiveTier> network;
    if (wires != nullptr) {
      network =
          std::make_unique<NetworkTier>(memory, mesh, position, *wires, board.device(id), policy);
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
  static constexpr bool kHasHosts = false;  ///< some chips share no memory
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

/// Makes the first axis of a mesh run over hosts.
inline Mesh with_hosts(const Mesh& mesh) { return mesh.with_dcn_atoms(mesh.axis_atoms(0).mask()); }

/// A team whose chips are threads. Only the chips of one host share memory, and wires connect the
/// hosts.
struct HostTeam {
  static constexpr bool kHasHosts = true;
  static Mesh mesh_of(const Mesh& mesh) { return with_hosts(mesh); }

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
    const WireGrid wires(mesh.size());
    const auto abort = [&hosts](std::string_view reason) {
      for (JobMemory& host : hosts) host.abort(reason);
    };
    return run_threads(
        mesh.size(),
        [&](int id) {
          return TeamChip{.id = id,
                          .memory = hosts[static_cast<std::size_t>(id / per_host)],
                          .board = board,
                          .wires = &wires.of(id),
                          .abort = abort};
        },
        body);
  }
};

/// A team whose chips are processes. Only the chips of one host share memory, and wires connect the
/// hosts.
template <WireKind kind>
struct WireTeam {
  static constexpr bool kHasHosts = true;
  static Mesh mesh_of(const Mesh& mesh) { return with_hosts(mesh); }

  static std::vector<std::string> run(const Mesh& mesh, std::size_t arena_capacity,
                                      const ChipBody& body, std::optional<bool> crowded = {}) {
    const int per_host = chips_per_host(mesh);
    const std::string board_job = unique_job();
    std::vector<std::string> jobs;
    std::vector<JobMemory> hosts;
    for (int host = 0; host < mesh.size() / per_host; ++host) {
      jobs.push_back(unique_job());
      hosts.push_back(JobMemory::create(
          {.job = jobs.back(), .num_chips = per_host, .arena_capacity = arena_capacity}));
      if (crowded) set_crowded(hosts.back(), *crowded);
    }
    const Board board = Board::create({.job = board_job, .num_chips = mesh.size()});
    WireBook book(mesh.size());
    const auto run_process = [&](int id) {
      if (kind == WireKind::ucx) set_ucx_variables();
      std::vector<JobMemory> opened;
      for (const std::string& job : jobs) opened.push_back(JobMemory::open(job));
      const Board opened_board = Board::open(board_job, false);
      const std::unique_ptr<Wires> wires = book.connect(kind, WireBook::config(id));
      await_wires(*wires, kWirePatience);
      run_chip({.id = id,
                .memory = opened[static_cast<std::size_t>(id / per_host)],
                .board = opened_board,
                .wires = wires.get(),
                .abort =
                    [&opened](std::string_view reason) {
                      for (JobMemory& host : opened) host.abort(reason);
                    }},
               body);
    };
    std::vector<ChildProcess> chips;
    for (int id = 0; id < mesh.size(); ++id) chips.emplace_back([&, id] { run_process(id); });
    std::vector<std::string> failures;
    for (ChildProcess& chip : chips) failures.push_back(chip.join());
    for (const std::string& job : jobs) JobMemory::remove(job);
    JobMemory::remove(board_job);
    return failures;
  }
};

/// A job whose chips are processes; the job's names are removed at the end.
class ProcessTeam {
 public:
  static constexpr bool kHasHosts = false;
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
using Teams =
    ::testing::Types<ThreadTeam, ProcessTeam, WireTeam<WireKind::tls>, WireTeam<WireKind::ucx>>;
#endif

/// A test of each team. It is skipped where the team's wires aren't available.
template <typename Team>
class TeamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::is_same_v<Team, WireTeam<WireKind::ucx>>) return;
    const std::string why = why_no_ucx();
    if (!why.empty()) GTEST_SKIP() << "wires over UCX aren't tested: " << why;
  }
};

}  // namespace weft::testing
