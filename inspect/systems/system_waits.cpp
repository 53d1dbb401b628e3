#include "inspect/systems/system_waits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weft {
namespace {

/// A thread that runs actors: the slot of its process, and its port.
using ActorThread = std::pair<std::uint32_t, std::uint32_t>;

class SystemWaitsMaker {
 public:
  explicit SystemWaitsMaker(const SystemSnapshot& system) : system_(system) {
    for (const SystemProcess& process : system.processes) {
      if (is_frozen(system, process)) frozen_.insert(process.peer.slot);
    }
  }

  std::vector<Wait> make() {
    add_actors();
    add_callers();
    add_pipes();
    add_jobs();
    add_places();
    return std::move(waits_);
  }

 private:
  static ActorThread thread_of(const SystemActor& actor) {
    return {actor.position.process.slot, actor.position.port};
  }

  void add(int from, std::uint32_t row, std::uint32_t endpoint, double since_s) {
    waits_.push_back(
        {.from = from,
         .to = static_cast<int>(row),
         .on = fmt::format("{}.{}", system_.actor_name(row), system_.endpoint_name(row, endpoint)),
         .since_s = since_s});
    awaited_.insert(row);
  }

  /// Adds the calls for which actors wait. A thread runs one actor at a time. If the rows show two,
  /// they were read at different moments, and only the first one counts.
  void add_actors() {
    for (std::size_t row = 0; row < system_.actors.size(); ++row) {
      const SystemActor& actor = system_.actors[row];
      if (!actor.runs() || !running_.try_emplace(thread_of(actor), row).second) continue;
      const std::uint32_t slot = actor.position.process.slot;
      if (!actor.awaits || frozen_.contains(slot)) continue;
      const AwaitedCall& awaits = *actor.awaits;
      ++by_actors_[{slot, awaits.row, awaits.endpoint}];
      add(static_cast<int>(row), awaits.row, awaits.endpoint, system_.for_s(actor));
    }
  }

  /// Adds the calls for which other threads of the processes wait.
  void add_callers() {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> calls;
    for (std::size_t row = 0; row < system_.actors.size(); ++row) {
      const SystemActor& actor = system_.actors[row];
      if (!actor.is_awaited) continue;
      ++calls[{actor.function.caller, static_cast<std::uint32_t>(row), actor.function.endpoint}];
    }
    for (const OpenMessages& open : system_.open) {
      if (open.awaited > 0) calls[{open.from, open.row, open.endpoint}] += open.awaited;
    }
    for (const auto& [call, count] : calls) {
      const auto [slot, row, endpoint] = call;
      const auto known = by_actors_.find(call);
      if (known != by_actors_.end() && known->second >= count) continue;
      const SystemActor& callee = system_.actors[row];
      add(node_of_process(system_, slot), row, endpoint, callee.runs() ? system_.for_s(callee) : 0);
    }
  }

  void add_pipes() {
    for (std::size_t row = 0; row < system_.actors.size(); ++row) {
      const SystemActor& actor = system_.actors[row];
      const auto running = running_.find(thread_of(actor));
      const bool runs = running != running_.end() && running->second == row;
      if (actor.pipe && runs)
        add_pipe(static_cast<int>(row), *actor.pipe, actor.position.process.slot);
    }
    for (const SystemProcess& process : system_.processes) {
      const int node = node_of_process(system_, process.peer.slot);
      if (process.pipe) add_pipe(node, *process.pipe, process.peer.slot);
    }
  }

  void add_pipe(int from, const AwaitedPipe& pipe, std::uint32_t slot) {
    if (frozen_.contains(slot) || !pipe.other.is_known) return;
    const bool is_actor = pipe.other.row != PipeUser::kNoActor;
    const int to =
        is_actor ? static_cast<int>(pipe.other.row) : node_of_process(system_, pipe.other.slot);
    if (to == from) return;
    waits_.push_back({.from = from,
                      .to = to,
                      .on = std::string(pipe.writes ? kPipeRoom : kPipeValue),
                      .since_s = system_.wait_s(pipe)});
    if (is_actor) awaited_.insert(pipe.other.row);
  }

  /// Adds the waits of actors for jobs, and of jobs for rows.
  void add_jobs() {
    for (std::size_t i = 0; i < system_.jobs.size(); ++i) {
      const SystemJob& job = system_.jobs[i];
      const int node = node_of_job(system_, i);
      for (std::size_t row = 0; row < system_.actors.size(); ++row) {
        const SystemActor& actor = system_.actors[row];
        if (!actor.job_wait || actor.job_wait->job != job.id) continue;
        if (frozen_.contains(actor.position.process.slot)) continue;
        waits_.push_back({.from = static_cast<int>(row),
                          .to = node,
                          .on = SystemSnapshot::job_wait_text(*actor.job_wait),
                          .since_s = system_.wait_s(*actor.job_wait)});
      }
      for (const LoopRowWait& wait : job.waits) add_row_wait(node, job, wait);
    }
  }

  void add_row_wait(int from, const SystemJob& job, const LoopRowWait& wait) {
    const std::string on =
        fmt::format("{}\"{}\" ({} of step {})", kRows, wait.name, wait.rows, job.step);
    for (const SystemProcess& process : system_.processes) {
      if (!writes_rows(job, wait.name, process.process.pid)) continue;
      const int node = node_of_process(system_, process.peer.slot);
      bool has_writer = false;
      for (std::size_t row = 0; row < system_.actors.size(); ++row) {
        const SystemActor& actor = system_.actors[row];
        if (actor.position.process != process.peer || system_.meshes[actor.mesh].job != job.id ||
            actor.position.phase == ActorPhase::ended) {
          continue;
        }
        has_writer = true;
        waits_.push_back(
            {.from = from, .to = static_cast<int>(row), .on = on, .since_s = wait.for_s});
        awaited_.insert(static_cast<std::uint32_t>(row));
      }
      if (has_writer) continue;
      waits_.push_back({.from = from, .to = node, .on = on, .since_s = wait.for_s});
    }
  }

  static bool writes_rows(const SystemJob& job, const std::string& name, int pid) {
    const auto is_writer = [&](const RowWriter& writer) { return writer.pid == pid; };
    return std::ranges::any_of(job.streams.rows, [&](const RowStream& stream) {
      return stream.name == name && std::ranges::any_of(stream.writers, is_writer);
    });
  }

  /// Adds the reasons why awaited actors can't run.
  void add_places() {
    for (const std::uint32_t row : awaited_) {
      const SystemActor& actor = system_.actors[row];
      const std::uint32_t slot = actor.position.process.slot;
      if (frozen_.contains(slot)) {
        waits_.push_back({.from = static_cast<int>(row),
                          .to = node_of_process(system_, slot),
                          .on = "its process"});
        continue;
      }
      const auto running = running_.find(thread_of(actor));
      if (actor.runs() || running == running_.end() || running->second == row) continue;
      waits_.push_back({.from = static_cast<int>(row),
                        .to = static_cast<int>(running->second),
                        .on = "its thread"});
    }
  }

  const SystemSnapshot& system_;
  std::set<std::uint32_t> frozen_;              ///< slots of frozen processes
  std::map<ActorThread, std::size_t> running_;  ///< row of the actor that a thread runs
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t>
      by_actors_;                    ///< how many actors wait, by caller's slot, row and endpoint
  std::set<std::uint32_t> awaited_;  ///< rows of awaited actors
  std::vector<Wait> waits_;
};

}  // namespace

WaitGraph waits_of(const SystemSnapshot& system) {
  return {node_of_job(system, system.jobs.size()), SystemWaitsMaker(system).make()};
}

std::string name_of_node(const SystemSnapshot& system, int node) {
  const auto index = static_cast<std::size_t>(node);
  if (index < system.actors.size()) {
    return system.actor_name(static_cast<std::uint32_t>(index));
  }
  const int first_job = node_of_job(system, 0);
  if (node >= first_job) {
    return "job " + system.jobs[static_cast<std::size_t>(node - first_job)].label();
  }
  return SystemSnapshot::process_name(static_cast<std::uint32_t>(index - system.actors.size()));
}

bool is_stream(const SystemSnapshot& system, const Wait& wait) {
  return is_at_pipe(wait) || std::max(wait.from, wait.to) >= node_of_job(system, 0);
}

bool is_frozen(const SystemSnapshot& system, const SystemProcess& process) {
  if (process.state == PeerState::dead) return true;
  return system.sees_processes && process.process.pid != 0 && process.process.frozen();
}

}  // namespace weft
