#pragma once
/// LoopWorkers: the worker processes of jobs. A system's actors can run in them, beside the loops.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "actors/keeper/own_ports.hpp"
#include "transport/lanes/lane_ids.hpp"

namespace weft {

/// Identifies a worker of a job, independent of its current process.
struct LoopWorker {
  std::uint64_t job = 0;  ///< job_key()
  int worker = 0;
  auto operator<=>(const LoopWorker&) const = default;
};

/// An actor beside a loop that hasn't ended in time, although its mesh has ended. It keeps its row
/// and its port until its process ends.
struct StuckActor {
  LoopWorker worker{};
  std::uint32_t mesh = 0;  ///< the row of the actor's mesh in the table of actors
  std::uint32_t port = 0;
  bool own_thread = false;
};

/// Knows the processes of workers that have joined, and the ports of each worker. Only the keeper's
/// thread uses it.
class LoopWorkers {
 public:
  explicit LoopWorkers(std::uint32_t shared_ports) : shared_ports_(shared_ports) {}

  void joined(LoopWorker worker, PeerId peer) { peers_[worker] = peer; }
  /// Called when a process has ended or left the system. Returns its worker.
  std::optional<LoopWorker> left(PeerId peer);
  /// Returns the worker's process; nothing if it has none now.
  std::optional<PeerId> peer(LoopWorker worker) const;
  /// Returns the worker's ports, which are the same for all its processes.
  OwnPorts& ports(LoopWorker worker) {
    return ports_.try_emplace(worker, shared_ports_).first->second;
  }

 private:
  std::uint32_t shared_ports_;
  std::map<LoopWorker, PeerId> peers_;
  std::map<LoopWorker, OwnPorts> ports_;
};

}  // namespace weft
