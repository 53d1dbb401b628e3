#include "inspect/why/wait_graph.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/algorithm.hpp"

namespace weft {
namespace {

/// Returns whether `atoms` isn't empty and has distinct atoms of the mesh. They are checked because
/// another process has written them.
bool are_atoms(AtomList atoms, const Mesh& mesh) {
  AtomMask seen = 0;
  for (int i = 0; i < atoms.size(); ++i) {
    const auto bit = static_cast<AtomMask>(1U << atoms[i]);
    if (atoms[i] == 0 || atoms[i] > mesh.num_atoms() || (seen & bit) != 0) return false;
    seen = static_cast<AtomMask>(seen | bit);
  }
  return !atoms.empty();
}

/// Returns whether the collective is sent as a message. The call is checked because another process
/// has written it: it may have an invalid dtype or a negative size.
bool is_message(const DecodedCall& call, int group_size) {
  if (call.count < 1 || call.count > 16 || call.dtype > DType::u8) return false;
  return is_in_slots(call.kind, static_cast<std::uint64_t>(call.count * byte_size(call.dtype)),
                     group_size);
}

/// Makes the waits of a graph from one snapshot.
class Maker {
 public:
  explicit Maker(const Snapshot& snapshot) : snapshot_(snapshot), mesh_(snapshot.mesh()) {
    const bool fits = mesh_ && snapshot.control &&
                      mesh_->size() == static_cast<int>(snapshot.control->chips.size()) &&
                      mesh_->size() == snapshot.header.num_chips;
    if (!fits) mesh_.reset();
  }

  std::vector<Wait> make() {
    for (const ActorRow& row : snapshot_.rows) {
      if (row.kind == ActorKind::trainer) add_trainer(row);
      if (row.worker < 0 || is_frozen(snapshot_, row.worker)) continue;
      if (row.kind == ActorKind::worker) add_loop(row);
      if (row.kind == ActorKind::device) add_chip(row);
      add_locks(row);
    }
    return std::move(waits_);
  }

 private:
  /// Returns the chip's node, or its worker's node if the worker is frozen.
  int node_to(int chip) const {
    const ActorRow* row = snapshot_.chip(chip);
    if (row != nullptr && row->worker >= 0 && is_frozen(snapshot_, row->worker)) {
      return node_of_worker(row->worker);
    }
    return node_of_chip(snapshot_, chip);
  }

  void add(const ActorRow& from, int to, std::string on) {
    if (from.index == to || !known_.insert({from.index, to}).second) return;
    const double since = std::max(0.0, snapshot_.seconds_since(from.since_ns));
    waits_.push_back({.from = from.index, .to = to, .on = std::move(on), .since_s = since});
  }

  void add_chip(const ActorRow& row) {
    if (row.in_collective) return add_collective(row);
    if (row.waiting_for >= 0) return add_commits(row);
    const bool waits_for_loop = row.state == ActorState::idle || row.state == ActorState::absent ||
                                row.state == ActorState::starting;
    if (waits_for_loop) add(row, node_of_worker(row.worker), "its loop");
  }

  void add_collective(const ActorRow& row) {
    // A run that a plug-in launches for all chips has no number among collectives.
    if (row.collective == 0 || !mesh_ || !snapshot_.control->knows(row.chip)) {
      if (row.waiting_for >= 0) add(row, node_to(row.waiting_for), row.collective_name);
      return;
    }
    const std::optional<RecordedCall>& call =
        snapshot_.control->chips[static_cast<std::size_t>(row.chip)].call;
    if (!call || call->number == 0) return;
    // The chip waits for a collective that it began before its last call.
    if (row.collective < call->number && row.waiting_for >= 0) {
      return add(row, node_to(row.waiting_for), row.collective_name);
    }
    const DecodedCall decoded = decode(call->words);
    const AtomList atoms = decoded.atoms;
    if (!are_atoms(atoms, *mesh_)) return;
    const bool crosses = tier_of(atoms.mask(), *mesh_) == Tier::dcn;
    const bool in_slots = !crosses && is_message(decoded, static_cast<int>(mesh_->count(atoms)));
    const AtomMask mask = mask_on_host(*mesh_, atoms.mask());
    const ControlState& control = *snapshot_.control;
    bool is_known = false;
    for (const int position : mesh_->group(mesh_->position_of(row.chip), atoms)) {
      const int peer = mesh_->device_at(position);
      if (!control.knows(peer)) continue;
      if (crosses    ? has_fewer_calls(peer, call->number)
          : in_slots ? control.awaits_message(row.chip, peer, mask)
                     : control.is_behind(peer, row.chip, mask)) {
        add(row, node_to(peer), last_call(snapshot_, row.chip));
        is_known = true;
      }
    }
    // The loop above misses two waits, in which the chip's row names the awaited chip: a root waits
    // for room to post a message, and its line may not yet say that it is the root; or a chip waits
    // for bytes of another host.
    if ((in_slots || crosses) && !is_known && row.waiting_for >= 0) {
      add(row, node_to(row.waiting_for), last_call(snapshot_, row.chip));
    }
  }

  /// Returns whether a chip has made fewer calls. For chips of several hosts, whose calls have no
  /// epochs. In a generation all chips make the same calls in the same order.
  bool has_fewer_calls(int chip, std::uint64_t number) const {
    const auto& call = snapshot_.control->chips[static_cast<std::size_t>(chip)].call;
    return call && call->number < number;
  }

  void add_commits(const ActorRow& row) {
    if (!mesh_) return add(row, node_to(row.waiting_for), "its commit");
    const auto& chips = snapshot_.control->chips;
    const std::uint64_t own = chips[static_cast<std::size_t>(row.chip)].committed;
    for (int peer = 0; peer < static_cast<int>(chips.size()); ++peer) {
      if (!snapshot_.control->knows(peer)) continue;
      if (chips[static_cast<std::size_t>(peer)].committed < own) {
        add(row, node_to(peer), fmt::format("the commit of step {}", own));
      }
    }
  }

  /// Adds the waits of a loop. The loop may wait for work that its chips have begun, but not while
  /// all of its chips are idle.
  void add_loop(const ActorRow& row) {
    if (row.state == ActorState::idle || row.state == ActorState::joining) {
      return add(row, 0, "the trainer");
    }
    if (const char* what = asks_trainer(row)) return add(row, 0, what);
    if (row.state == ActorState::ended || row.state == ActorState::failed) return;
    for (const ActorRow& chip : snapshot_.rows) {
      const bool busy = chip.state == ActorState::running || chip.state == ActorState::waiting ||
                        chip.state == ActorState::compiling;
      if (chip.kind == ActorKind::device && chip.worker == row.worker && busy) {
        add(row, node_of_chip(snapshot_, chip.chip), "its chip");
      }
    }
  }

  /// Adds waits for the processes that hold the locks for which the actor's thread waits. Needs a
  /// sight of the thread in the snapshot.
  void add_locks(const ActorRow& row) {
    const ProcessSight* sight = snapshot_.sight(snapshot_.id_of(row));
    if (sight == nullptr) return;
    for (const ThreadSight& thread : sight->threads) {
      if (thread.stack.tid != row.tid) continue;
      const FileLockWait& lock = thread.file_lock;
      if (lock.holder > 0) add_lock(row, lock.holder, fmt::format("the lock of {}", lock.file));
      const int owner = thread.futex.mutex_owner;
      if (owner != 0) add_lock(row, owner, "a mutex");
    }
  }

  void add_lock(const ActorRow& row, int tid, const std::string& what) {
    const std::optional<int> owner = snapshot_.owner_of_thread(snapshot_.id_of(row).host, tid);
    if (!owner || *owner == row.worker) return;
    const std::size_t before = waits_.size();
    add(row, 1 + *owner, what);
    if (waits_.size() > before) waits_.back().is_lock = true;
  }

  /// Returns what the loop requests of the trainer; null if it requests nothing.
  static const char* asks_trainer(const ActorRow& loop) {
    switch (loop.state) {
      case ActorState::admission: return "the admission of its program";
      case ActorState::lease: return "a lease";
      case ActorState::commands: return "a command";
      default: return nullptr;
    }
  }

  /// Adds the waits of the trainer. It waits for workers that haven't joined. If some workers have
  /// requested something or have ended, it waits for the workers that haven't got so far.
  void add_trainer(const ActorRow& row) {
    const ProcessState* process = snapshot_.process(row);
    if (process != nullptr && process->frozen()) return;
    const bool calls_back = row.inside_since_ns != 0;
    if (calls_back && snapshot_.status == JobStatus::starting) {
      for (const ActorRow& worker : snapshot_.rows) {
        if (worker.kind == ActorKind::worker) add(worker, 0, "its start");
      }
      return;
    }
    bool some_are_there = false;
    std::vector<int> others;
    for (const ActorRow& worker : snapshot_.rows) {
      if (worker.kind != ActorKind::worker) continue;
      const bool there = worker.state == ActorState::idle || worker.state == ActorState::ended ||
                         worker.state == ActorState::failed || asks_trainer(worker) != nullptr;
      some_are_there = some_are_there || there;
      if (!there) others.push_back(worker.index);
    }
    const bool joining = snapshot_.status == JobStatus::starting;
    if (!joining && !some_are_there) return;
    for (const int other : others) add(row, other, joining ? "its join" : "its loop");
  }

  const Snapshot& snapshot_;
  std::optional<Mesh> mesh_;  ///< without a mesh, epochs can't be compared
  std::vector<Wait> waits_;
  std::set<std::pair<int, int>> known_;
};

/// Finds the strongly connected components of a graph by Tarjan's algorithm.
class Components {
 public:
  Components(int num_nodes, const std::vector<Wait>& waits)
      : next_(static_cast<std::size_t>(num_nodes)), seen_(next_.size()) {
    for (const Wait& wait : waits) at(next_, wait.from).push_back(wait.to);
  }

  std::vector<std::vector<int>> find() {
    for (int node = 0; node < static_cast<int>(next_.size()); ++node) {
      if (at(seen_, node).order == 0) visit(node);
    }
    return std::move(found_);
  }

 private:
  struct Seen {
    int order = 0;  ///< from 1; 0: node not visited
    int lowest = 0;
    bool open = false;
  };

  template <typename T>
  static T& at(std::vector<T>& values, int node) {
    return values[static_cast<std::size_t>(node)];
  }

  void visit(int node) {
    Seen& seen = at(seen_, node);
    seen = {.order = ++count_, .lowest = count_, .open = true};
    open_.push_back(node);
    for (const int next : at(next_, node)) {
      if (at(seen_, next).order == 0) visit(next);
      if (at(seen_, next).open) seen.lowest = std::min(seen.lowest, at(seen_, next).lowest);
    }
    if (seen.lowest != seen.order) return;
    std::vector<int>& component = found_.emplace_back();
    for (int last = -1; last != node;) {
      last = open_.back();
      open_.pop_back();
      at(seen_, last).open = false;
      component.push_back(last);
    }
    std::ranges::sort(component);
  }

  std::vector<std::vector<int>> next_;
  std::vector<Seen> seen_;
  std::vector<int> open_;
  std::vector<std::vector<int>> found_;
  int count_ = 0;
};

}  // namespace

WaitGraph WaitGraph::of(const Snapshot& snapshot) {
  const int num_nodes = 1 + snapshot.header.num_workers + snapshot.header.num_chips;
  return {num_nodes, Maker(snapshot).make()};
}

std::vector<std::vector<int>> WaitGraph::roots() const {
  std::vector<std::vector<int>> components = Components(num_nodes_, waits_).find();
  std::vector<std::size_t> component_of(static_cast<std::size_t>(num_nodes_));
  for (std::size_t i = 0; i < components.size(); ++i) {
    for (const int node : components[i]) component_of[static_cast<std::size_t>(node)] = i;
  }
  std::vector<bool> goes_on(components.size());
  std::vector<bool> awaited(components.size());
  for (const Wait& wait : waits_) {
    const std::size_t from = component_of[static_cast<std::size_t>(wait.from)];
    const std::size_t to = component_of[static_cast<std::size_t>(wait.to)];
    if (from != to) goes_on[from] = true;
    awaited[to] = true;
  }
  std::vector<std::vector<int>> roots;
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (awaited[i] && !goes_on[i]) roots.push_back(std::move(components[i]));
  }
  std::ranges::sort(roots);
  return roots;
}

std::vector<int> WaitGraph::waiters_of(const std::vector<int>& nodes) const {
  std::vector<bool> reached(static_cast<std::size_t>(num_nodes_));
  for (const int node : nodes) reached[static_cast<std::size_t>(node)] = true;
  for (bool more = true; more;) {
    more = false;
    for (const Wait& wait : waits_) {
      if (!reached[static_cast<std::size_t>(wait.to)] ||
          reached[static_cast<std::size_t>(wait.from)]) {
        continue;
      }
      more = reached[static_cast<std::size_t>(wait.from)] = true;
    }
  }
  std::vector<int> waiters;
  for (int node = 0; node < num_nodes_; ++node) {
    if (reached[static_cast<std::size_t>(node)] && !std::ranges::count(nodes, node)) {
      waiters.push_back(node);
    }
  }
  return waiters;
}

int worker_of_node(const Snapshot& snapshot, int node) {
  if (node == 0) return -1;
  if (node <= snapshot.header.num_workers) return node - 1;
  const ActorRow* row = snapshot.chip(node - 1 - snapshot.header.num_workers);
  return row != nullptr ? row->worker : -1;
}

std::string name_of_node(const Snapshot& snapshot, int node) {
  if (node == 0) return "trainer";
  if (node <= snapshot.header.num_workers) return fmt::format("worker {}", node - 1);
  return fmt::format("chip {}", node - 1 - snapshot.header.num_workers);
}

bool is_frozen(const Snapshot& snapshot, int worker) {
  const ActorRow* row = snapshot.worker(worker);
  if (row == nullptr) return false;
  if (is_lost(row->state)) return true;
  if (row->state == ActorState::absent) return false;  // then the worker's process isn't known
  const ProcessState* process = snapshot.process(*row);
  return process != nullptr && process->frozen();
}

std::string last_call(const Snapshot& snapshot, int chip) {
  const ActorRow* row = snapshot.chip(chip);
  if (row != nullptr && row->in_collective && row->collective == 0) return row->collective_name;
  const auto index = static_cast<std::size_t>(chip);
  if (!snapshot.control || index >= snapshot.control->chips.size()) return {};
  const std::optional<RecordedCall>& call = snapshot.control->chips[index].call;
  const std::optional<Mesh> mesh = snapshot.mesh();
  return call && call->number != 0 && mesh ? name_of(*call, *mesh) : std::string();
}

}  // namespace weft
