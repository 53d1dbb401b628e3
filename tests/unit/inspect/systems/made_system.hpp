#pragma once
/// Makes a snapshot of an actor system that doesn't exist.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft::testing {

/// A system 100 s after the beginning of its clock. The program is slot 0, and process p has the
/// pid 4700 + p. Its actors are idle, each on a port of its own.
class MadeSystem {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;

  explicit MadeSystem(std::uint32_t processes) {
    snapshot.id = "0123456789abcdef0123456789abcdef";
    snapshot.name = "made";
    snapshot.at_ns = 100 * kSecond;
    snapshot.is_held = true;
    for (std::uint32_t slot = 0; slot < processes; ++slot) {
      const int pid = 4700 + static_cast<int>(slot);
      snapshot.processes.push_back(
          {.peer = {.slot = slot, .incarnation = 1},
           .state = PeerState::alive,
           .process = {.pid = pid, .state = 'S', .threads = {{.tid = pid, .state = 'S'}}}});
    }
  }

  /// Adds a mesh with one actor in each of the given processes. Returns the row of its first actor.
  std::uint32_t add(const std::string& name, const std::vector<std::string>& endpoints,
                    const std::vector<std::uint32_t>& slots) {
    const auto mesh = static_cast<std::uint32_t>(snapshot.meshes.size());
    const auto first = static_cast<std::uint32_t>(snapshot.actors.size());
    snapshot.meshes.push_back({.name = name,
                               .type = "test." + name,
                               .first_row = first,
                               .count = static_cast<std::uint32_t>(slots.size()),
                               .endpoints = endpoints,
                               .own_thread = true,
                               .restart = "actor"});
    for (std::uint32_t i = 0; i < slots.size(); ++i) {
      snapshot.actors.push_back({.mesh = mesh,
                                 .index = i,
                                 .position = {.phase = ActorPhase::alive,
                                              .port = first + i + 1,
                                              .incarnation = 1,
                                              .process = {.slot = slots[i], .incarnation = 1}}});
    }
    return first;
  }

  SystemActor& actor(std::uint32_t row) { return snapshot.actors[row]; }

  /// Makes the actor run an endpoint for a process that waits for the answer.
  void run(std::uint32_t row, std::uint32_t endpoint, std::uint32_t caller, double for_s) {
    SystemActor& it = actor(row);
    it.since_ns = snapshot.at_ns - static_cast<std::int64_t>(for_s * kSecond);
    it.function = {.kind = ActorFunctionKind::call, .caller = caller, .endpoint = endpoint};
    it.is_awaited = true;
  }
  /// Makes a running actor wait for another one, which has begun the call or has it in its lane.
  void wait_for(std::uint32_t row, std::uint32_t callee, std::uint32_t endpoint) {
    actor(row).awaits = AwaitedCall{.row = callee, .endpoint = endpoint};
    if (actor(callee).is_awaited && actor(callee).function.endpoint == endpoint) return;
    snapshot.open.push_back({.from = actor(row).position.process.slot,
                             .row = callee,
                             .endpoint = endpoint,
                             .count = 1,
                             .awaited = 1});
    ++actor(callee).unread;
  }

  /// Makes a running actor wait at a pipe whose other end `other` has.
  void wait_at_pipe(std::uint32_t row, bool writes, const PipeUser& other, double for_s) {
    actor(row).pipe =
        AwaitedPipe{.writes = writes,
                    .other = other,
                    .since_ns = snapshot.at_ns - static_cast<std::int64_t>(for_s * kSecond)};
  }

  /// Adds a job with which the mesh ends. Its only experience, "steps", has 117 of 512 rows, which
  /// the processes `writers` have sent. They hold version 203 of "policy"; the newest is 204.
  /// Returns the job's index.
  std::size_t add_job(std::uint32_t mesh, const std::vector<std::uint32_t>& writers) {
    snapshot.meshes[mesh].job = "abcdef0123456789abcdef0123456789";
    SystemJob job{.id = snapshot.meshes[mesh].job,
                  .name = "walk",
                  .state = "running",
                  .step = 204,
                  .trainer_pid = 4690};
    RowStream& rows = job.streams.rows.emplace_back();
    rows = {.name = "steps", .rows = 1117, .batch_rows = 512, .used = {1000}};
    for (const std::uint32_t slot : writers) {
      rows.writers.push_back({.pid = snapshot.pid(slot), .sent_ns = snapshot.at_ns - kSecond});
    }
    job.streams.versions = {{.name = "policy", .newest = 204}};
    for (const std::uint32_t slot : writers) {
      job.streams.versions[0].holders.push_back({.pid = snapshot.pid(slot), .version = 203});
    }
    snapshot.jobs.push_back(std::move(job));
    return snapshot.jobs.size() - 1;
  }
  /// Makes a job's loop wait for rows.
  void wait_for_rows(std::size_t job, double for_s) {
    SystemJob& its = snapshot.jobs[job];
    its.waits = {{.name = "steps", .rows = its.streams.rows[0].rows_text(0), .for_s = for_s}};
  }
  /// Makes a running actor wait for room for rows, or for a version.
  void wait_for_job(std::uint32_t row, std::size_t job, bool writes, double for_s) {
    actor(row).job_wait =
        SystemJobWait{.writes = writes,
                      .job = snapshot.jobs[job].id,
                      .name = writes ? "steps" : "policy",
                      .since_ns = snapshot.at_ns - static_cast<std::int64_t>(for_s * kSecond)};
  }

  SystemSnapshot snapshot;
};

}  // namespace weft::testing
