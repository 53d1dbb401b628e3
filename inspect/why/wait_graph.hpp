#pragma once
/// WaitGraph: the waits between a job's actors.
///
/// The waits of a chip are derived from the epochs that the chips of its group have announced. The
/// chip's row also says for which chip it waits, but the row of a stopped chip may be outdated: it
/// shows what the chip did when it stopped.

#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// A wait between two nodes. A node is an actor of the board, numbered by its row: 0 is the
/// trainer, then come the workers' loops, then the chips.
struct Wait {
  int from = 0;
  int to = 0;
  std::string on{};      ///< "all_reduce #4 'loss' over {data}", "its loop", "a lease"
  double since_s = 0;    ///< how long ago the waiting actor's row changed
  bool is_lock = false;  ///< whether the other actor holds a mutex, or the lock of a file
};

class WaitGraph {
 public:
  /// Makes the graph of a snapshot. A worker whose process is frozen waits for no actor in the
  /// graph, and stands for all its chips.
  static WaitGraph of(const Snapshot& snapshot);

  int num_nodes() const { return num_nodes_; }
  const std::vector<Wait>& waits() const { return waits_; }

  /// Returns the roots: the circles of waits, and the single nodes that are awaited but wait for no
  /// other node. Each root is sorted.
  std::vector<std::vector<int>> roots() const;
  /// Returns the nodes that wait for one of `nodes`, directly or not; sorted, without `nodes`.
  std::vector<int> waiters_of(const std::vector<int>& nodes) const;

  /// Makes a graph from given waits, for tests and for actor systems.
  WaitGraph(int num_nodes, std::vector<Wait> waits)
      : num_nodes_(num_nodes), waits_(std::move(waits)) {}

 private:
  int num_nodes_;
  std::vector<Wait> waits_;
};

/// These functions return the nodes of a worker and of a chip.
inline int node_of_worker(int worker) { return 1 + worker; }
inline int node_of_chip(const Snapshot& snapshot, int chip) {
  return 1 + snapshot.header.num_workers + chip;
}
/// Returns the worker of a node: the node is the worker, or one of its chips. Returns -1 for the
/// trainer, or if unknown.
int worker_of_node(const Snapshot& snapshot, int node);
/// Returns "trainer", "worker 2" or "chip 9".
std::string name_of_node(const Snapshot& snapshot, int node);

/// Returns whether the worker's process can't continue by itself, whatever others do.
bool is_frozen(const Snapshot& snapshot, int worker);

/// Returns the chip's last call, "all_reduce #812 'fc1.weight.grad' over {data}"; "" if there is
/// none or it is unknown. While a chip waits for a launch with others, that is the run's first
/// collective, "all_reduce 'fc1.weight.grad'", because plug-ins don't number collectives.
std::string last_call(const Snapshot& snapshot, int chip);

}  // namespace weft
