#pragma once
/// A simulated job, which these files implement: recovery_sim.cpp the trainer, recovery_faults.cpp
/// processes and links, recovery_messages.cpp the workers' actors, recovery_worker.cpp the loops,
/// recovery_state.cpp the state that loops keep, recovery_saves.cpp their checkpoints,
/// recovery_chip.cpp the chips, and recovery_end.cpp the checks at the end.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <stdexcept>
#include <string>

#include "actors/runtime/state_keeper.hpp"
#include "actors/supervision/job_state.hpp"
#include "actors/supervision/members.hpp"
#include "actors/supervision/worker_state.hpp"
#include "spmd/program/program.hpp"
#include "tests/support/recovery_model.hpp"
#include "tests/support/recovery_sim.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/state/commits.hpp"

namespace weft::testing {

inline constexpr std::size_t kRecentEvents = 50;
inline constexpr std::uint64_t kSimNever = ~std::uint64_t{0};
/// Returns a process id. Two workers share their process ids, as workers on two hosts may.
inline int sim_pid(int worker, int life) { return 100 + worker / 2 + 1000 * life; }
/// The time by which, in most jobs, all workers must have joined.
inline constexpr std::uint64_t kLongDeadline = 1'000'000'000;
inline constexpr double kLongGrace = 1e6;
/// The time after which a worker that doesn't move is noticed.
inline constexpr std::uint64_t kSimHangPatience = 500;

enum class What : std::uint8_t {
  // Steps of a worker's loop or of a chip.
  loop,
  chip,
  // Messages from a worker to the trainer.
  join,
  program,
  lease,
  report,
  part,
  saved,
  ended,
  unwound,
  paused,
  asks,
  link_down,
  // Events from the trainer's processes and timers.
  process_started,
  process_ended,
  restart_due,
  link_lost,
  deadline,
  grace,
  hang_seen,
  // Messages from the trainer to a worker.
  assigned,
  start,
  asked,
  admit,
  grant,
  pause,
  end_at,
  peer_ended,
  join_parts,
  drop_parts,
  save_ended,
  unwind,
  trainer_gone,
  // Actions of the trainer on its processes.
  kill,
  start_process,
};

struct Event {
  std::uint64_t time = 0, order = 0;
  What what = What::loop;
  int worker = -1;  ///< the index of a worker, or of a chip
  int life = 0;     ///< the process of the worker, counted from its first start
  std::uint64_t generation = 0, a = 0, b = 0, c = 0;
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : order > other.order;
  }
};

/// The link of one process of a worker to the trainer.
struct SimLink {
  int worker = -1, life = 0;
  bool operator==(const SimLink&) const = default;
};

struct SimLaunch {
  std::uint64_t run = 0, commits = 0;
  std::size_t step = 0, index = 0;
  bool is_awaited = false;  ///< the run ends only after all chips have committed
  SimPlaces in{}, out{};
};

/// A tensor of the loop's state, with 8 bytes on each chip.
struct SimTensor {
  ProgramInput input;
  TensorType type;
};

struct SimChip {
  /// The last run in whose collective the chip took part. It is in the job's memory, so it outlives
  /// the process.
  std::uint64_t met = 0;
  // The members below belong to the process.
  std::optional<Commits> commits;
  enum class At : std::uint8_t { begin, read, meet, meeting, update, write, store };
  At at = At::begin;
  std::deque<SimLaunch> queue;
  std::uint64_t done = 0;
  std::size_t tensor = 0;
  SimValues results{};  ///< the results of the run in progress
  bool failed = false;
  Errc error{};
  int missing = -1;  ///< the worker for which the chip has waited too long
  bool parked = true;
};

struct SimWorker {
  enum class At : std::uint8_t {
    boot,
    joining,
    waiting,
    resend,
    open,
    granted,
    greet,
    step,
    program,
    admitted,
    room,
    directory,
    launch,
    report,
    send,
    save,
    end_step,
    lease,
    drain,
    close,
    finish,
    verdict,
    unwound,
    gone,
  };
  // The members up to `told_to_end` outlive the process.
  int life = 0;
  bool alive = false;
  bool linked = false;              ///< the worker's messages reach the trainer
  std::vector<std::uint64_t> cut;   ///< by process: messages after this time are lost
  std::uint64_t sent = 0, got = 0;  ///< when the last message each way arrives
  WorkerState state{-1};
  std::uint64_t begun = 0;   ///< the last step that WorkerState allowed to begin
  bool told_to_end = false;  ///< the worker was told to end in this generation
  // The members below belong to the process and its loop.
  bool was_ended = false;
  std::uint64_t pace = 1;
  At at = At::gone;
  bool parked = true, stopped = false, throws = false;
  std::uint64_t generation = 0;
  std::uint64_t step = 0, commits = 0, runs = 0;
  std::size_t index = 0;
  std::unique_ptr<StateKeeper> keeper;
  std::shared_ptr<BufferPool> pool;
  std::array<std::shared_ptr<ArenaBuffer>, kSimTensors> tensors;
  std::array<ChipSet, kSimTensors> overwriters;
  bool awaits_commits = false;  ///< the next run's SimLaunch::is_awaited
  int torn_slot = -1;           ///< the slot of the directory that is being written
  std::uint64_t save = 0;       ///< the last save that this generation has begun; 0: none
  std::vector<std::uint32_t> programs;
  std::uint64_t report_step = 0, metrics = 0;
  std::uint32_t report_number = 0;
  At after_report = At::step;
  std::uint8_t error = 0;
  int missing = -1;
};

/// Returns the memory of a job that begins. Jobs with the same number of chips reuse one memory.
JobMemory& fresh_memory(const Mesh& mesh);

class SimJob {
 public:
  SimJob(std::uint64_t seed, BrokenRule broken);
  SimResult run();

 private:
  struct Violation : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  [[noreturn]] void violated(const std::string& what) const;
  bool broken(BrokenRule rule) const { return broken_ == rule; }

  // Functions in recovery_sim.cpp:
  JobTerms draw_terms();
  void post(std::uint64_t delay, Event event);
  std::uint64_t some(std::uint64_t typical);
  void handle(const Event& event);
  bool has_ended(int worker) const;
  bool is_lost(const Event& event) const;
  bool is_from_member(const Event& event) const;
  void at_trainer(const Event& event);
  void carry_out(const Actions& actions);
  void carry_out(const Action& action);
  void send(const SimLink& link, Event event);
  Event message(const Action& action) const;
  void begin_generation(const Start& start);
  void take_report(const Event& event);
  std::string trace() const;

  // Functions in recovery_end.cpp:
  void count_incidents();
  bool has_repeated(const Failure& failure) const;
  void check_end() const;
  void check_preempted_end() const;

  // Functions in recovery_faults.cpp:
  void start_process(int worker);
  void end_process(int worker, int signal);
  void break_link(int worker, bool at_once);
  void inject_fault(int worker);

  // Functions in recovery_messages.cpp, recovery_worker.cpp and recovery_chip.cpp:
  void to_trainer(const SimWorker& worker, Event event);
  void at_worker(const Event& event);
  void loop_turn(int index);
  bool advance(int index);  ///< Takes the loop's next step; false if the loop waits.
  static WorkerState::StepBegin begin_step(SimWorker& worker);
  static void end_at(SimWorker& worker, std::uint64_t step);
  void leave(SimWorker& worker, Errc error, int missing = -1);
  void tell_end(const SimWorker& worker, const LoopEnded& ended);
  void open_session(int index);
  void end_loop(SimWorker& worker);
  void take_step(SimWorker& worker);
  bool has_room(int index);
  void launch(int index);
  SimPlaces places_of(int chip) const;
  // Functions in recovery_state.cpp:
  void open_state(int index);
  void take_kept(int index);
  bool commit_state(int index);
  void finish_directory(int index);
  void end_step_of_state(SimWorker& worker) const;
  void bind(int index, std::size_t tensor);
  std::shared_ptr<ArenaBuffer> update(SimWorker& worker, std::size_t tensor) const;
  void note_state(SimWorker& worker, std::size_t tensor) const;
  const SimValues& initial_values(const SimWorker& worker) const;
  // Functions in recovery_saves.cpp:
  bool save_is_over(const SimWorker& worker) const;
  void begin_save(int index);
  void at_trainer_of_save(const Event& event);
  void at_worker_of_save(const Event& event);
  void check_resumed(const Start& start) const;
  void check_kept(std::uint64_t step) const;
  std::uint64_t& value(int chip, std::uint64_t offset) const;
  std::uint64_t& directory_word(int index, int slot) const;
  std::vector<int> chips_of(int index) const;
  void make_report(SimWorker& worker, std::uint64_t metrics, SimWorker::At then);
  void wake(int worker);
  void wake_chip(int chip);
  void wake_chips();
  void chip_turn(int chip);
  bool advance_chip(int index);
  SimValues results_of(int index, const SimLaunch& launch);
  void fail_chip(int chip, Errc error, int missing);
  void commit(int chip, std::uint64_t step);
  bool group_met(int chip, const SimLaunch& launch, int group) const;
  void check_inputs(int chip, const SimLaunch& launch, std::size_t written = 0) const;
  bool all_committed(int chip, std::uint64_t step);
  std::uint64_t committed() const;

  const std::uint64_t seed_;
  const BrokenRule broken_;
  Random random_;
  int num_workers_ = 0, chips_each_ = 0;
  std::uint64_t lease_steps_ = 0, deadline_ = 0;
  bool late_ = false;  ///< leases, programs and ends of loops may arrive out of order
  RecoveryPolicy policy_;
  SimScript script_;
  const Mesh mesh_;
  JobMemory& memory_;
  std::array<SimTensor, kSimTensors> tensors_;
  std::vector<SimWorker> workers_;
  std::vector<SimChip> chips_;
  std::vector<SimReport> log_;  ///< the reports in worker 0's file
  std::uint64_t least_ = 0;     ///< the common_step() at which chips were last woken

  // Members of the trainer's actor and process.
  Members<SimLink> members_;
  std::uint64_t granted_ = 0;
  std::size_t delivered_ = 0;
  std::uint64_t process_lane_ = 0, event_lane_ = 0;

  bool keeps_state_ = true;
  std::uint64_t save_every_ = 0;  ///< the interval between saves in steps; 0: loops save nothing
  /// The workers that have written their part of a save in this generation, by the save's number.
  std::map<std::uint64_t, std::set<int>> parts_;
  std::set<std::uint64_t> joined_;        ///< the steps of complete checkpoints
  std::uint64_t told_save_ = 0;           ///< the last save that was reported in this generation
  std::uint64_t preempt_at_ = kSimNever;  ///< the number of the event at which the job is preempted
  double grace_s_ = kLongGrace;
  bool has_sigterms_ = false;
  std::uint64_t ask_every_ = 1;  ///< how often loops ask whether to end, in steps; 0: never
  JobState job_;
  std::set<int> lost_;  ///< workers that died after the last generation began
  std::size_t losses_ = 0;
  int incidents_ = 0;
  std::uint64_t faults_left_ = 0, faults_ = 0, next_fault_ = 0, fault_gap_ = 1;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Event> recent_;  ///< the last events, in a ring
  std::uint64_t now_ = 0, order_ = 0, count_ = 0;
};

}  // namespace weft::testing
