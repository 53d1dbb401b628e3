#pragma once
/// Makes a snapshot of workers, their chips and processes of a job that doesn't exist.

#include <string>
#include <utility>
#include <vector>

#include "inspect/snapshot/snapshot.hpp"

namespace weft::testing {

/// A job on a mesh ("data", "model") of (workers, chips), 100 s after its host has booted. It is at
/// rest: every chip has been idle for 41 s, and every loop is in its own code. Worker w has the pid
/// 4711 + w.
class MadeJob {
 public:
  static constexpr std::int64_t kSecond = 1'000'000'000;

  MadeJob(int workers, int chips) : chips_(chips) {
    snapshot.job = "0123456789abcdef0123456789abcdef";
    snapshot.at_ns = 100 * kSecond;
    snapshot.status = JobStatus::running;
    snapshot.header = {.job = snapshot.job,
                       .name = "made",
                       .mesh_shape = {workers, chips},
                       .axis_names = {"data", "model"},
                       .num_workers = workers,
                       .num_chips = workers * chips,
                       .trainer_pid = 4700};
    add_row(ActorKind::trainer, -1, -1, 4700);
    for (int w = 0; w < workers; ++w) add_row(ActorKind::worker, w, -1, 4711 + w);
    for (int c = 0; c < workers * chips; ++c) {
      add_row(ActorKind::device, c / chips, c, 4711 + c / chips);
      chip(c).state = ActorState::idle;
    }
    ControlState& control = snapshot.control.emplace();
    control.chips.resize(static_cast<std::size_t>(workers * chips));
    for (ChipControl& chip : control.chips) {
      chip.announced.resize(256);
      chip.messages.resize(256);
      chip.call.emplace();
    }
    for (const ActorRow& row : snapshot.rows) {
      if (row.kind != ActorKind::device) add_process(row.pid);
    }
  }

  ActorRow& worker(int worker) { return snapshot.rows[static_cast<std::size_t>(1 + worker)]; }
  ActorRow& chip(int chip) {
    return snapshot.rows[static_cast<std::size_t>(1 + snapshot.header.num_workers + chip)];
  }
  ProcessState& process(int worker) {
    return snapshot.processes[static_cast<std::size_t>(1 + worker)];
  }
  Mesh mesh() const { return *snapshot.mesh(); }

  /// Makes a chip announce its next sync with the chips along the axes. The chip stays in this
  /// sync.
  void enter(int chip_number, const std::vector<std::string>& axes, const std::string& name) {
    const Mesh grid = mesh();
    CollectiveCall call{.kind = CollectiveKind::all_reduce, .atoms = {}, .count = 1};
    for (const std::string& axis : axes) call.atoms.append(grid.axis_atoms(grid.axis_index(axis)));
    ChipControl& control = snapshot.control->chips[static_cast<std::size_t>(chip_number)];
    control.announced[call.atoms.mask() >> 1U] += std::uint64_t{1} << 32;
    const std::uint64_t number = control.call->number + 1;
    control.call = RecordedCall{number, encode(call), name};
    ActorRow& row = chip(chip_number);
    row.state = ActorState::waiting;
    row.in_collective = true;
    row.collective = number;
    row.step = 5;
  }
  void leave(int chip_number) {
    ActorRow& row = chip(chip_number);
    row.state = ActorState::idle;
    row.in_collective = false;
    row.waiting_for = -1;
  }
  /// Makes all chips enter and leave a collective along "data".
  void pass(const std::string& name) {
    for (int c = 0; c < snapshot.header.num_chips; ++c) enter(c, {"data"}, name);
    for (int c = 0; c < snapshot.header.num_chips; ++c) leave(c);
  }
  /// Makes all chips except those of worker `missing` enter a collective along "data".
  void wait_for(int missing, const std::string& name) {
    for (int c = 0; c < snapshot.header.num_chips; ++c) {
      if (c / chips_ != missing) enter(c, {"data"}, name);
    }
  }
  /// Sets the stack and the futex of the first thread of a worker's process.
  void look_at(int worker, std::vector<StackFrame> frames, FutexWait futex = {}) {
    const int pid = 4711 + worker;
    ThreadSight thread{.stack = {.tid = pid, .frames = std::move(frames)}, .futex = futex};
    snapshot.sights.push_back({.pid = pid, .threads = {std::move(thread)}});
  }

  Snapshot snapshot;

 private:
  void add_row(ActorKind kind, int worker, int chip, int pid) {
    ActorRow row;
    row.index = static_cast<int>(snapshot.rows.size());
    row.kind = kind;
    row.state = ActorState::running;
    row.worker = worker;
    row.chip = chip;
    row.pid = pid;
    if (kind != ActorKind::device) row.tid = pid;
    row.step = 4;
    row.since_ns = row.updated_ns = 59 * kSecond;
    snapshot.rows.push_back(row);
  }
  void add_process(int pid) {
    ProcessState process{.pid = pid, .state = 'S'};
    process.threads.push_back({.tid = pid, .name = "made", .state = 'S'});
    snapshot.processes.push_back(std::move(process));
  }

  int chips_;
};

}  // namespace weft::testing
