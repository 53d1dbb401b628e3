#pragma once
/// Keeper: makes the actors of a system, starts their processes, and supervises both.

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/actor/call.hpp>

#include "actors/host/job_place.hpp"
#include "actors/keeper/attached_peers.hpp"
#include "actors/keeper/job_tie.hpp"
#include "actors/keeper/kept_mesh.hpp"
#include "actors/keeper/loop_workers.hpp"
#include "actors/keeper/own_ports.hpp"
#include "actors/launch/worker_command.hpp"
#include "actors/launch/worker_processes.hpp"
#include "actors/process/wake_queue.hpp"
#include "actors/relay/system_hosts.hpp"
#include "actors/user/actor_process.hpp"
#include "transport/lanes/burial.hpp"

namespace weft {

/// The thread `weft.keeper` makes all decisions; other threads tell it what to do. Thread-safe.
class Keeper {
 public:
  using Clock = std::chrono::steady_clock;

  Keeper(SystemOptions options, const HostPlace& place);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  /// See ActorSystem.
  std::vector<detail::ActorHandle> spawn(const detail::ActorClass& type,
                                         const SpawnOptions& options);
  void stop(const std::string& mesh);
  std::optional<Error> failure() const;
  const std::string& id() const { return place_.id(); }
  const std::shared_ptr<detail::ActorProcess>& process() const { return process_; }

 private:
  /// The seconds that actors have to end before their process is killed.
  static constexpr double kEndTimeoutS = 5;
  /// The time after which an order is sent again because its lane was full. The keeper itself never
  /// waits.
  static constexpr std::chrono::milliseconds kRetryAfter{2};
  /// The seconds that a process has to join, and that an actor then has to be constructed.
  static constexpr double kMakeTimeoutS = 300;

  using Child = KeptProcess;
  using Actor = KeptActor;
  using Mesh = KeptMesh;

  void run();
  void call_soon(std::function<void()> what) { commands_.push(std::move(what)); }
  void call_in(std::chrono::nanoseconds time, std::function<void()> what);
  int run_timers();
  void attempt(const std::function<void()>& what) const;
  void require_may_wait(const char* what, const std::string& mesh = "") const;

  std::vector<detail::ActorHandle> add_mesh(const detail::ActorClass& type,
                                            const SpawnOptions& options, const JobTie& job,
                                            std::future<void>& ready);
  void require_ports(const std::string& name, const SpawnOptions& options, const JobTie& job);
  void give_back_port(const Mesh& mesh, const Actor& actor);
  std::uint32_t shared_port();
  void place(Mesh& mesh);
  void place_here(Mesh& mesh);
  void place_in_children(Mesh& mesh);
  void place_beside_loops(Mesh& mesh);
  template <typename Use>
  void for_each_beside(LoopWorker worker, Use use);
  void make_beside(LoopWorker worker);
  void lose_beside(LoopWorker worker);
  void start_child(Child& child);
  void kill_child(const Child& child);
  std::vector<std::size_t> lose_child(Child& child);
  void on_host_lost(int host, const std::string& why);
  void on_hung(const HungNews& news);
  void make(Mesh& mesh, std::size_t index);
  void order_make(const Mesh& mesh, std::size_t index);
  void make_later(const Mesh& mesh, std::size_t index);
  void order_end(ActorNumber mesh, std::size_t index);
  static ActorNumber number_of(const Mesh& mesh, std::size_t index);
  static LoopWorker worker_of(const Mesh& mesh, const Actor& actor);
  std::optional<PeerId> process_of(const Mesh& mesh, const Actor& actor) const;
  void set_phase(const Mesh& mesh, std::size_t index, ActorPhase phase);
  void on_made(ActorNumber mesh, std::size_t index, std::uint32_t incarnation,
               const std::optional<Error>& error);
  void on_news(ActorOp op, PeerId from, std::uint32_t target, std::uint64_t call,
               const Error& error);
  void on_joined(PeerId peer, std::optional<LoopWorker> worker);
  bool on_attached(PeerId peer);
  void on_detached(PeerId peer);
  void bury_claims();
  void on_process_ended(const ProcessEnded& ended);
  void on_ended_elsewhere(const EndedNews& news);
  void on_failure(Mesh& mesh, std::vector<std::size_t> failed, const Error& error);
  void leave_failed(Mesh& mesh, const std::vector<std::size_t>& failed, const Error& error);
  void give_up(Mesh& mesh, const Error& error);
  void restart(ActorNumber mesh, const std::vector<std::size_t>& actors);
  void end_mesh(Mesh& mesh, const std::optional<Error>& cause);
  void on_ended(ActorNumber mesh);
  void tell_ended(const Mesh& mesh);
  void release_rows(std::uint32_t mesh);
  bool runs(const Mesh& mesh) const;
  void kick_all();
  void fail_system(const Error& error);
  void look_for_hangs(ActorNumber mesh);
  void look_for_end_of_job(ActorNumber mesh);
  void bury();
  Child* child_of(PeerId peer);
  void bury_soon(PeerId dead);

  SystemOptions options_;
  JobPlace place_;  ///< the system's memory, which is removed even if this process is killed
  std::shared_ptr<detail::ActorProcess> process_;
  std::optional<AttachedPeers> attached_;
  WakeQueue<std::function<void()>> commands_;
  mutable std::mutex mutex_;
  std::optional<Error> failure_;  // guarded by mutex_
  bool must_stop_ = false;        // this and the rest belong to the thread weft.keeper
  std::multimap<Clock::time_point, std::function<void()>> timers_;
  std::map<ActorNumber, Mesh> meshes_;  ///< by Mesh::first
  std::map<int, Child> children_;       ///< by number
  LoopWorkers workers_;
  std::vector<StuckActor> stuck_;
  OwnPorts ports_;  ///< the ports of this process
  std::uint32_t next_shared_ = 0;
  std::unique_ptr<WorkerCommand> command_;
  WorkerProcesses processes_;
  std::vector<std::unique_ptr<Burial>> burials_;
  std::unique_ptr<SystemHosts> hosts_;  ///< null if the system is on one host
  std::jthread thread_;
};

}  // namespace weft
