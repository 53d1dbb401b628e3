#pragma once
/// Who waits for whom in a job.
///
/// A chip's waits come from the epochs that the chips of its group have announced, not from the
/// chip that its row names: the row of a chip that is stopped shows what was true when it stopped.

#include <string>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft {

/// A node is an actor of the board, by its row: 0 the trainer, then the workers' loops, then chips.
struct Wait {
  int from = 0;
  int to = 0;
  std::string on{};      ///< "all_reduce #4 'loss' over {data}", "its loop", "a lease"
  double since_s = 0;    ///< how long the waiting actor has shown what it shows
  bool is_lock = false;  ///< the other one holds a mutex, or the lock of a file
};

class WaitGraph {
 public:
  /// A worker whose process is frozen waits for nobody, and stands for all its chips.
  static WaitGraph of(const Snapshot& snapshot);

  int num_nodes() const { return num_nodes_; }
  const std::vector<Wait>& waits() const { return waits_; }

  /// The circles of waits, and the nodes that wait for nobody, for which others wait; each sorted.
  std::vector<std::vector<int>> roots() const;
  /// The nodes that wait for one of these, directly or not; sorted, without these.
  std::vector<int> waiters_of(const std::vector<int>& nodes) const;

  /// For tests and for other makers of graphs.
  WaitGraph(int num_nodes, std::vector<Wait> waits)
      : num_nodes_(num_nodes), waits_(std::move(waits)) {}

 private:
  int num_nodes_;
  std::vector<Wait> waits_;
};

/// Nodes of the board's rows.
inline int node_of_worker(int worker) { return 1 + worker; }
inline int node_of_chip(const Snapshot& snapshot, int chip) {
  return 1 + snapshot.header.num_workers + chip;
}
/// The worker that a node is, or that drives the chip that it is; -1: the trainer, or unknown.
int worker_of_node(const Snapshot& snapshot, int node);
/// "trainer", "worker 2", "chip 9".
std::string name_of_node(const Snapshot& snapshot, int node);

/// The process of a worker doesn't go on, whatever others do.
bool is_frozen(const Snapshot& snapshot, int worker);

/// "all_reduce #812 'fc1.weight.grad' over {data}"; the chip's last call; empty: none, or unknown.
std::string last_call(const Snapshot& snapshot, int chip);

}  // namespace weft
