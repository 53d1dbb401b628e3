#pragma once
/// HostWires: the connections of a worker's chips to the chips of other hosts, for one generation.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/protocol/host_place.hpp"
#include "actors/protocol/protocol.hpp"
#include "actors/runtime/worker_link.hpp"
#include "transport/blackbox/recorder.hpp"
#include "transport/collectives/tier.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"
#include "transport/wires/wires.hpp"

namespace weft {

struct HostWiresOptions {
  std::string job_id;
  int worker = -1;
  std::uint64_t generation = 1;
  const HostPlace& place;
};

/// Only the loop's thread may use it. But each tier is used by its chip's thread and by a thread of
/// its own.
class HostWires {
 public:
  /// Connects each of the worker's chips at `positions` to its twins on the other hosts, and waits
  /// until all are connected. Other wires connect when a collective first needs them, also to chips
  /// of the same host, since a permute over an axis that crosses hosts has several chips of a host.
  /// Makes no wires if the chips of the mesh are on one host. Throws the errors of Permits' waits,
  /// timeout, naming the chips that are missing, and peer_lost if the job is aborted meanwhile.
  HostWires(const HostWiresOptions& options, const Mesh& mesh, const std::vector<int>& positions,
            const Assignment& assignment, JobMemory& memory, WorkerLink& link);

  ~HostWires();
  HostWires(const HostWires&) = delete;
  HostWires& operator=(const HostWires&) = delete;

  /// Returns the wires of the chip at positions[local_index].
  Wires& of(std::size_t local_index) const { return *wires_[local_index]; }
  /// Tells the trainer that wire number `wire` of the chip at positions[local_index] has broken.
  void tell_lost(std::size_t local_index, int wire) const;
  /// Returns the tier of the chip at positions[local_index]; null if there are no wires.
  std::unique_ptr<CollectiveTier> tier(int local_index, const Recorder& recorder,
                                       WaitPolicy policy) const;

 private:
  bool tell_first_lost() const;

  const HostWiresOptions options_;
  const Mesh& mesh_;
  const std::vector<int> positions_;
  JobMemory& memory_;
  WorkerLink& link_;
  std::vector<std::unique_ptr<Wires>> wires_;  ///< by local index
};

}  // namespace weft
