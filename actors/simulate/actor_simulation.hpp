#pragma once
/// ActorSimulation: the clock, the events and the processes of an ActorTest.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor/actor_test.hpp>

#include "actors/simulate/simulated_job.hpp"
#include "actors/simulate/simulated_keeper.hpp"
#include "actors/simulate/simulated_rows.hpp"
#include "transport/channel/channel.hpp"

namespace weft {

class SimulatedProcess;

/// Only one thread uses it at a time: the test's, or the fiber whose function runs.
class ActorSimulation : public std::enable_shared_from_this<ActorSimulation> {
 public:
  explicit ActorSimulation(const ActorTestOptions& options);
  ~ActorSimulation();
  /// Makes the process of the test.
  void begin();
  /// Ends all processes. Open calls then end with the error cancelled.
  void end();

  // Steps and time. Only the test calls the functions that take steps.
  bool step(bool with_work_alone);
  void advance_to(SimulatedTime time);
  SimulatedTime now() const { return now_; }
  double seconds() const;
  /// Lets the calling thread wait until `is_over` returns true or the clock reaches `limit`.
  void wait(const std::function<bool()>& is_over, SimulatedTime limit);
  void call_in(std::chrono::nanoseconds time, std::function<void()> what);
  void add(SimulatedEvent event) { events_.push_back(std::move(event)); }
  void add_event(const SimulatedEvent::Channel& channel, PeerId process,
                 std::function<void()> happen);
  /// Throws invalid_argument if it isn't the calling thread's turn to run.
  void require_turn() const;

  // Functions of processes.
  /// Runs a function of a process. If it may pause, it runs on the port's fiber. `port` may be
  /// null.
  void enter(SimulatedProcess& process, SimulatedPort* port, bool may_pause,
             std::function<void()> function);
  /// Returns whether a function of this process is running.
  bool runs(const SimulatedProcess& process) const { return running_.process == &process; }

  // Processes.
  PeerId start_process(std::uint32_t port_count);
  SimulatedProcess& test_process() { return *processes_.begin()->second; }
  std::shared_ptr<SimulatedProcess> find(PeerId process) const;  ///< null if the process has died
  bool is_alive(PeerId process) const { return processes_.contains(process.slot); }
  /// Returns whether the functions of the process must end.
  bool is_killed(PeerId process) const {
    return !is_alive(process) || killed_.contains(process.slot);
  }
  /// `why` is a text such as "was killed".
  void kill(PeerId process, const std::string& why);
  /// Ends a process whose actors have ended.
  void leave(PeerId process);

  // Messages.
  /// Returns the number of messages in the lane from one process to the port of another.
  int waiting(PeerId from, PeerId to, std::uint32_t port) const;
  bool has_message(PeerId to, std::uint32_t port) const;
  bool has_answer(std::uint64_t call) const;
  std::uint64_t next_call() { return ++last_call_; }
  bool is_awaited(const Asked& asked) const;

  // Chance, faults and counts.
  std::uint64_t draw(std::uint64_t below);
  bool draws_kill();
  bool draws_drop();
  void end_faults() { kills_ = drops_ = 0; }
  bool has_ended() const { return has_ended_; }
  std::uint64_t key() const { return key_; }
  const ActorTestOptions& options() const { return options_; }
  SimulatedKeeper& keeper() { return keeper_; }
  SimulatedJob& job() { return job_; }
  /// The channels of pipes, by name. A channel whose name was removed isn't there.
  std::map<std::string, std::shared_ptr<Channel>>& channels() { return channels_; }
  ActorCounts& counts() { return counts_; }
  void log(std::string text);
  const std::vector<std::string>& history() const { return history_; }

 private:
  struct Running {
    SimulatedProcess* process = nullptr;
    SimulatedPort* port = nullptr;
    bool may_pause = false;
  };
  struct Choice;

  std::vector<Choice> choices(bool with_work_alone);
  void happen(std::size_t event);
  void resume(SimulatedProcess& process, SimulatedPort& port);
  void after_function();
  void bury(const std::shared_ptr<SimulatedProcess>& process);
  /// Removes a killed process, and lets the keeper learn of its end.
  void bury_killed(PeerId process, const std::string& why);
  void pump(const std::function<bool()>& is_over, SimulatedTime limit);
  SimulatedTime next_time() const;
  void run_due();
  bool draws_fault(int& left);

  ActorTestOptions options_;
  std::uint64_t random_;
  std::uint64_t key_;  ///< the key in references to actors
  int kills_;
  int drops_;
  int steps_ = 0;
  bool has_ended_ = false;
  SimulatedTime now_{};
  std::thread::id thread_ = std::this_thread::get_id();  ///< the test's thread
  Running running_{};
  std::vector<SimulatedEvent> events_;
  std::multimap<SimulatedTime, std::function<void()>> timers_;
  std::map<std::uint32_t, std::shared_ptr<SimulatedProcess>> processes_;  ///< by number
  std::map<std::uint32_t, std::string> killed_;  ///< why, by number; not buried yet
  std::uint32_t last_process_ = 0;
  std::uint64_t last_call_ = 0;
  ActorCounts counts_{};
  SimulatedKeeper keeper_;
  SimulatedJob job_;
  std::map<std::string, std::shared_ptr<Channel>> channels_;
  std::vector<std::string> history_;
};

}  // namespace weft
