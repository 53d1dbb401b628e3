// Simulates the processes of a job, their links, and the faults that happen to them.

#include <algorithm>
#include <csignal>
#include <utility>

#include "tests/support/recovery_world.hpp"

namespace weft::testing {

void SimJob::start_process(int index) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  if (worker.alive) violated("a process is started beside the one before");
  SimWorker fresh;
  fresh.life = worker.life + 1;
  fresh.alive = fresh.linked = true;
  fresh.cut = std::move(worker.cut);
  fresh.cut.resize(static_cast<std::size_t>(fresh.life) + 1, kSimNever);
  fresh.pace = random_.one_in(8) ? 20 : 1;
  fresh.state = WorkerState(index, lease_steps_ / 2);
  fresh.at = SimWorker::At::boot;
  worker = std::move(fresh);
  for (int c = index * chips_each_; c < (index + 1) * chips_each_; ++c) {
    chips_[static_cast<std::size_t>(c)].queue.clear();
  }
  process_lane_ = std::max(process_lane_, now_ + some(5));
  const int pid = sim_pid(index, worker.life);
  post(process_lane_ - now_,
       {.what = What::process_started, .worker = index, .a = static_cast<std::uint64_t>(pid)});
  worker.parked = false;
  post(some(30), {.what = What::loop, .worker = index, .life = worker.life});
}

/// Ends a process. `signal` is 0 if it ends by itself, after it has sent all its messages.
void SimJob::end_process(int index, int signal) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  if (!worker.alive) return;
  if (worker.linked) break_link(index, signal != 0 && random_.one_in(2));
  worker.alive = false;
  worker.at = SimWorker::At::gone;
  process_lane_ = std::max(process_lane_, now_ + some(30));
  post(process_lane_ - now_,
       {.what = What::process_ended, .worker = index, .a = static_cast<std::uint64_t>(signal)});
}

/// Breaks the link of a worker. With `at_once`, messages that haven't arrived yet may be lost.
void SimJob::break_link(int index, bool at_once) {
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  worker.linked = false;
  const std::uint64_t last =
      at_once ? now_ + random_.below(40) : std::max(worker.sent, now_) + some(20);
  worker.cut[static_cast<std::size_t>(worker.life)] = last;
  post(last + 1 - now_, {.what = What::link_down, .worker = index, .life = worker.life});
}

void SimJob::inject_fault(int index) {
  const auto any = [&] { return static_cast<int>(random_.below(workers_.size())); };
  if (index < 0) index = any();
  SimWorker& worker = workers_[static_cast<std::size_t>(index)];
  if (!worker.alive) return;
  --faults_left_;
  ++faults_;
  next_fault_ = count_ + (random_.one_in(4) ? random_.below(8) : random_.below(2 * fault_gap_));
  switch (random_.below(16)) {
    case 0: worker.throws = true; return;
    case 1:
      if (!worker.linked) return;
      break_link(index, true);
      return post(some(20), {.what = What::trainer_gone, .worker = index, .life = worker.life});
    case 2:
      if (worker.at <= SimWorker::At::joining) return;
      worker.stopped = true;
      return post(kSimHangPatience,
                  {.what = What::hang_seen, .worker = index, .life = worker.life});
    case 3:
    case 4:  // several workers at once
      for (std::uint64_t more = 1 + random_.below(workers_.size()); more > 0; --more) {
        const int other = any();
        faults_ += workers_[static_cast<std::size_t>(other)].alive && other != index ? 1 : 0;
        if (other != index) end_process(other, 9);
      }
      break;
    default: break;
  }
  end_process(index, has_sigterms_ && random_.one_in(4) ? SIGTERM : SIGKILL);
}

}  // namespace weft::testing
