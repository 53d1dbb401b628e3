#pragma once
/// LoopWorkers: the worker processes of jobs, beside whose loops a system's actors run.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "actors/keeper/own_ports.hpp"
#include "transport/lanes/lane_ids.hpp"

namespace weft {

/// Identifies a worker of a job, whichever process it has.
struct LoopWorker {
  std::uint64_t job = 0;  ///< job_key()
  int worker = 0;
  auto operator<=>(const LoopWorker&) const = default;
};

/// An actor beside a loop that hasn't ended in time, although its mesh has. It needs its row and
/// its port until it ends with its process.
struct StuckActor {
  LoopWorker worker{};
  std::uint32_t mesh = 0;  ///< the row of its mesh in the table of actors
  std::uint32_t port = 0;
  bool own_thread = false;
};

/// The processes that have joined, and the ports of each. Only the keeper's thread uses it.
class LoopWorkers {
 public:
  explicit LoopWorkers(std::uint32_t shared_ports) : shared_ports_(shared_ports) {}

  void joined(LoopWorker worker, PeerId peer) { peers_[worker] = peer; }
  /// The process has ended, or has left the system. Returns whose process it was.
  std::optional<LoopWorker> left(PeerId peer);
  /// Returns nothing while the worker has no process.
  std::optional<PeerId> peer(LoopWorker worker) const;
  /// They are the same for all processes of the worker.
  OwnPorts& ports(LoopWorker worker) {
    return ports_.try_emplace(worker, shared_ports_).first->second;
  }

 private:
  std::uint32_t shared_ports_;
  std::map<LoopWorker, PeerId> peers_;
  std::map<LoopWorker, OwnPorts> ports_;
};

}  // namespace weft
