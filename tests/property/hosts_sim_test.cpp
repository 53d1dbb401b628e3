// Tests the trainer's JobState and HostCommits with simulated jobs, in virtual time, whose hosts
// are killed, cut off, replaced, or come back. WEFT_TEST_SEED and WEFT_TEST_TIMES: see seeds.hpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "actors/supervision/job_state.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/event_queue.hpp"

namespace weft::hosts_sim_test {
namespace {

struct SimOptions {
  int num_hosts = 3;
  int workers_per_host = 2;
  std::uint64_t steps = 40;
  int losses = 8;
};

/// A worker's process. Its chips run step s + 1 only when all chips have committed s.
struct SimWorker {
  int pid = 0;
  bool lives = false;
  bool loops = false;      ///< the process runs the loop of `generation`
  bool has_ended = false;  ///< its loop has made all steps
  std::uint64_t generation = 0;
  std::uint64_t committed = 0;
  std::uint64_t last_message = 0;  ///< when its last message arrives
};

/// A host's slot, and the process that holds it.
struct SimHost {
  int life = 0;                    ///< the number of memories that the slot has had
  bool joined = false;             ///< the trainer has let it join and hasn't lost it
  bool has_state = false;          ///< its memory has the versions that its workers have committed
  std::uint64_t generation = 0;    ///< the generation that its memory is prepared for; 0: none
  std::uint64_t last_message = 0;  ///< when its agent's last message arrives
  std::uint64_t last_order = 0;    ///< when the trainer's last order to the host arrives
};

class HostsSim {
 public:
  HostsSim(const SimOptions& options, std::uint64_t seed)
      : options_(options),
        queue_(seed),
        job_({.num_workers = options.num_hosts * options.workers_per_host,
              .num_hosts = options.num_hosts,
              .recovery = {.max_failures = -1, .restart = Restart::worker},
              .timeout_s = 1e9}),
        commits_(options.num_hosts),
        hosts_(static_cast<std::size_t>(options.num_hosts)),
        workers_(static_cast<std::size_t>(options.num_hosts * options.workers_per_host)) {}

  void run() {
    carry_out(job_.begin());
    for (SimHost& each : hosts_) each.has_state = true;
    start_workers(0);
    for (int h = 1; h < options_.num_hosts; ++h) after(0, 50, [this, h] { join(h, false); });
    for (int i = 0; i < options_.losses; ++i) after(20, 2000, [this] { stage_a_loss(); });
    while (!queue_.empty() && !job_.over() && !::testing::Test::HasFailure()) {
      ASSERT_LT(queue_.handled(), 20'000'000U) << "the job never ends";
      queue_.run_next();
    }
    EXPECT_EQ(job_.phase(), JobPhase::succeeded)
        << (job_.failure() ? job_.failure()->message : "nothing happens any more");
  }

  int losses() const { return staged_; }
  int transfers() const { return transfers_; }
  int returns() const { return returns_; }

 private:
  SimHost& host(int h) { return hosts_[static_cast<std::size_t>(h)]; }
  SimWorker& worker(int w) { return workers_[static_cast<std::size_t>(w)]; }
  int of(int w) const { return w / options_.workers_per_host; }
  int first(int h) const { return h * options_.workers_per_host; }
  std::uint64_t draw(std::uint64_t least, std::uint64_t most) { return queue_.draw(least, most); }
  void after(std::uint64_t least, std::uint64_t most, std::function<void()> act) {
    queue_.after(least, most, std::move(act));
  }
  /// Sends the trainer a message of host `h` from the sender with `last`. Messages of a sender
  /// arrive in order, some late, and are lost unless the host has joined.
  void tell(int h, std::uint64_t& last, const std::function<void()>& act) {
    const std::uint64_t delay = draw(1, draw(0, 9) == 0 ? 100 : 5);
    last = std::max(last, queue_.now() + delay);
    queue_.add(last, [this, h, life = host(h).life, act] {
      if (host(h).life == life && (h == 0 || host(h).joined)) act();
    });
  }
  void agent_tells(int h, const std::function<void()>& act) { tell(h, host(h).last_message, act); }
  void worker_tells(int w, const std::function<void()>& act) {
    tell(of(w), worker(w).last_message, act);
  }

  // Functions of the trainer:

  std::uint64_t common_step() { return commits_.least(committed_of(0)); }

  void join(int h, bool was_here) {
    if (job_.over() || job_.hosts().has_joined(h)) return;
    host(h).joined = true;
    job_.host_joined({.host = h,
                      .memory_id = fmt::format("{}.{}", h, host(h).life),
                      .machine = "node",
                      .was_here = was_here});
    if (was_here && !job_.hosts().is_empty(h)) commits_.returned(h, committed_of(h));
    start_workers(h);
  }

  void lose_host(int h, const char* why) {
    host(h).joined = false;
    const std::uint64_t committed = common_step();
    commits_.lost(h);
    carry_out(job_.host_lost(h, why, true, committed));
  }

  void joined(int w, int pid, std::uint64_t committed) {
    if (job_.refuse_join(w, pid)) return;
    commits_.told(of(w), committed);
    carry_out(job_.joined(w, pid, common_step()));
  }

  void unwound(int w, std::uint64_t generation, std::uint64_t committed) {
    if (generation == job_.generation()) commits_.told(of(w), committed);
    carry_out(job_.unwound(w, generation, common_step()));
  }

  void carry_out(const Actions& actions) {
    for (const Action& action : actions) {
      std::visit(
          Overloaded{
              [&](const action::Prepare& prepare) { this->prepare(prepare); },
              [&](const Start& start) { begin(start); },
              [&](const action::Unwind&) { unwind(); },
              [&](const action::Launch& launch) { start_worker(launch.worker); },
              [&](const action::Kill& kill) { this->kill(kill.worker); },
              [&](const action::Backoff& backoff) {
                after(backoff.ms, backoff.ms,
                      [this, w = backoff.worker] { carry_out(job_.restart_due(w)); });
              },
              [&](const action::LinkGrace& grace) {
                after(1000, 1000, [this, grace] {
                  carry_out(job_.link_grace_over(grace.worker, grace.number, {}, common_step()));
                });
              },
              [&](const action::WireGrace& grace) {
                after(1000, 1000, [this, grace] {
                  carry_out(job_.wire_grace_over(grace.generation, common_step()));
                });
              },
              [](const auto&) {},
          },
          action);
    }
  }

  // Functions of the hosts:

  std::uint64_t committed_of(int h) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (int i = 0; i < options_.workers_per_host; ++i) {
      least = std::min(least, worker(first(h) + i).committed);
    }
    return least;
  }

  void prepare(const action::Prepare& order) {
    // Nothing runs, so the trainer knows the commits exactly: no step that all chips have committed
    // is lost.
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (int h = 0; h < options_.num_hosts; ++h) {
      if (h == 0 || host(h).generation > 0) least = std::min(least, committed_of(h));
      // An empty host gets the state from another host, even if it has it.
      if (job_.hosts().is_empty(h)) host(h).has_state = false;
    }
    EXPECT_GE(order.step, least) << "generation " << order.generation;
    commits_.prepare(order.step);
    set_memory(0, order);
    for (int h = 1; h < options_.num_hosts; ++h) {
      std::uint64_t& last = host(h).last_order;
      last = std::max(last, queue_.now() + draw(1, 5));
      queue_.add(last, [this, h, order, life = host(h).life] {
        if (host(h).life != life || !host(h).joined) return;
        set_memory(h, order);
        agent_tells(h, [this, h, order] { carry_out(job_.prepared(h, order.number)); });
        if (draw(0, 9) > 0) return;  // 1 of 10 answers comes a second time
        after(50, 300, [this, h, order] { carry_out(job_.prepared(h, order.number)); });
      });
    }
  }

  void set_memory(int h, const action::Prepare& order) {
    host(h).generation = order.generation;
    for (int i = 0; i < options_.workers_per_host; ++i) {
      SimWorker& each = worker(first(h) + i);
      EXPECT_FALSE(each.loops) << "the memory of worker " << first(h) + i << " is in use";
      // The chip still has the version of this step.
      const bool has_version = order.step == each.committed || order.step + 1 == each.committed;
      EXPECT_TRUE(!host(h).has_state || has_version) << order.step << " of " << each.committed;
      each.committed = order.step;
    }
  }

  void begin(const Start& start) {
    commits_.start();
    for (int h = 0; h < options_.num_hosts; ++h) {
      EXPECT_EQ(host(h).generation, start.generation) << "host " << h << " wasn't prepared";
      const int donor = start.donors.empty() ? -1 : start.donors[static_cast<std::size_t>(h)];
      if (start.step == 0) host(h).has_state = true;  // the loops make the initial state
      if (host(h).has_state) continue;
      ASSERT_GE(donor, 0) << "host " << h << " gets no state";
      EXPECT_TRUE(host(donor).has_state) << "host " << donor << " has no state to give";
      ++transfers_;
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      workers_[w].loops = true;
      workers_[w].has_ended = false;
      workers_[w].generation = start.generation;
    }
    for (int h = 0; h < options_.num_hosts; ++h) {
      const int donor = start.donors.empty() ? -1 : start.donors[static_cast<std::size_t>(h)];
      after(1, donor < 0 ? 1 : 100, [this, h, life = host(h).life, n = start.generation] {
        if (host(h).life != life || host(h).generation != n || job_.generation() != n) return;
        host(h).has_state = true;
        for (int i = 0; i < options_.workers_per_host; ++i) step_later(first(h) + i, n);
      });
    }
  }

  void step_later(int w, std::uint64_t generation) {
    after(1, 20, [this, w, generation] { step(w, generation); });
  }

  void step(int w, std::uint64_t generation) {
    SimWorker& self = worker(w);
    if (!self.loops || self.generation != generation || self.has_ended) return;
    const auto has_reached = [&](const SimWorker& other) {
      return other.committed >= self.committed;
    };
    const bool may_step = std::ranges::all_of(workers_, has_reached) &&
                          host(of(w)).generation == generation && host(of(w)).has_state;
    if (may_step && self.committed == options_.steps) {
      self.has_ended = true;
      worker_tells(w, [this, w, generation] {
        carry_out(job_.loop_ended(
            {.worker = w, .generation = generation, .step = options_.steps, .runs = options_.steps},
            common_step()));
      });
      return;
    }
    if (may_step) ++self.committed;
    step_later(w, generation);
  }

  /// Ends all loops, each after a while, as an abort ends all waits.
  void unwind() {
    for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
      if (!worker(w).lives || !worker(w).loops) continue;
      after(1, 30, [this, w, pid = worker(w).pid, generation = job_.generation()] {
        if (worker(w).pid != pid || !worker(w).lives) return;
        worker(w).loops = false;
        const std::uint64_t committed = committed_of(of(w));
        const auto told = [this, w, generation, committed] { unwound(w, generation, committed); };
        worker_tells(w, told);
        if (draw(0, 9) == 0) worker_tells(w, told);  // a second time
      });
    }
  }

  void start_workers(int h) {
    for (int i = 0; i < options_.workers_per_host; ++i) start_worker(first(h) + i);
  }

  void start_worker(int w) {
    const int h = of(w);
    if (h > 0 && !host(h).joined) return;
    SimWorker& started = worker(w);
    started = {.pid = ++pids_, .lives = true, .committed = started.committed};
    agent_tells(h, [this, w, pid = pids_] { job_.started(w, pid); });
    after(10, 30, [this, w, h, pid = pids_] {
      if (worker(w).pid != pid || !worker(w).lives) return;
      const std::uint64_t committed = committed_of(h);
      worker_tells(w, [this, w, pid, committed] { joined(w, pid, committed); });
    });
  }

  void kill(int w) {
    SimWorker& killed = worker(w);
    if (!killed.lives) return;
    killed.lives = killed.loops = false;
    worker_tells(w, [this, w] { carry_out(job_.link_down(w)); });
    agent_tells(of(w), [this, w, pid = killed.pid] {
      carry_out(job_.process_ended({.worker = w, .pid = pid, .signal = 9}, {}, common_step()));
    });
  }

  void end_workers(int h) {
    for (int i = 0; i < options_.workers_per_host; ++i) {
      SimWorker& ended = worker(first(h) + i);
      ended.lives = ended.loops = false;
    }
  }

  /// The memory of a slot is gone. Another process takes the slot later.
  void replace(int h) {
    end_workers(h);
    ++host(h).life;
    host(h).has_state = false;
    host(h).generation = 0;
    for (int i = 0; i < options_.workers_per_host; ++i) worker(first(h) + i).committed = 0;
    after(50, 500, [this, h, life = host(h).life] {
      if (host(h).life == life && !host(h).joined) join(h, false);
    });
  }

  void stage_a_loss() {
    if (job_.over()) return;
    ++staged_;
    const int h = static_cast<int>(draw(1, hosts_.size() - 1));
    const int w = static_cast<int>(draw(0, workers_.size() - 1));
    switch (draw(0, 3)) {
      case 0: kill(w); break;
      case 1:
        carry_out(job_.wire_lost(
            {.worker = w, .generation = worker(w).generation, .chip = w, .peer = 0, .why = "cut"}));
        break;
      case 2:  // the host is killed
        if (!host(h).joined) return;
        replace(h);
        lose_host(h, "killed");
        break;
      default:  // the host is cut off: it kills its workers, and comes back or is replaced
        if (!host(h).joined) return;
        end_workers(h);
        after(1, 100, [this, h, life = host(h).life] {
          if (host(h).life == life && host(h).joined) lose_host(h, "silent");
        });
        after(200, 800, [this, h, life = host(h).life] {
          if (host(h).life != life || host(h).joined) return;
          if (draw(0, 2) == 0) return replace(h);
          ++returns_;
          join(h, true);
        });
    }
  }

  const SimOptions options_;
  testing::EventQueue queue_;
  JobState job_;
  HostCommits commits_;
  std::vector<SimHost> hosts_;
  std::vector<SimWorker> workers_;
  int pids_ = 100;
  int staged_ = 0;
  int transfers_ = 0;
  int returns_ = 0;
};

TEST(HostsSim, NoStepIsLostWithHosts) {
  int losses = 0, transfers = 0, returns = 0;
  for (const std::uint64_t seed : testing::seeds(2000)) {
    SCOPED_TRACE(fmt::format("WEFT_TEST_SEED={}", seed));
    std::mt19937_64 random(seed);
    const auto draw = [&](int least, int most) {
      return std::uniform_int_distribution<int>(least, most)(random);
    };
    HostsSim sim({.num_hosts = draw(2, 6),
                  .workers_per_host = draw(1, 3),
                  .steps = static_cast<std::uint64_t>(draw(1, 60)),
                  .losses = draw(0, 12)},
                 seed);
    sim.run();
    if (::testing::Test::HasFailure()) return;
    losses += sim.losses();
    transfers += sim.transfers();
    returns += sim.returns();
  }
  RecordProperty("losses", std::to_string(losses));
  RecordProperty("transfers", std::to_string(transfers));
  RecordProperty("returns", std::to_string(returns));
}

TEST(HostsSim, FourThousandHostsGoOn) {
  HostsSim sim({.num_hosts = 4096, .workers_per_host = 1, .steps = 3, .losses = 3}, 1);
  sim.run();
}

}  // namespace
}  // namespace weft::hosts_sim_test
