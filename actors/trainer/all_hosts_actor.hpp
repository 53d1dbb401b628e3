#pragma once
/// AllHosts: the trainer's link to all hosts of a job: to its own host, and to the others' agents.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/link/messages.hpp"
#include "actors/supervision/action.hpp"
#include "actors/supervision/membership.hpp"
#include "actors/trainer/host_link.hpp"
#include "actors/trainer/job_spec.hpp"

namespace weft {

/// Only the trainer's actor may use it. Host 0's board also shows the rows that other hosts sent
/// last.
class AllHosts final : public HostLink {
 public:
  using Clock = std::chrono::steady_clock;

  /// `own` is the link to host 0, which must outlive the object.
  AllHosts(HostLink& own, const JobSpec& spec);

  /// Adds the agent of a host. If the host still has the state of a step, that step is `committed`.
  void add(int host, const AgentActor& agent, std::optional<std::uint64_t> committed = {});
  /// Returns the host whose agent this actor is; nothing if it is no host's agent.
  std::optional<int> find(const caf::actor_addr& agent) const;
  /// Forgets the agent of a lost host, and tells the agent the reason.
  void lose(int host, const std::string& why);
  /// Returns the host whose agent has sent a message; nothing for another sender.
  std::optional<int> host_of(const caf::strong_actor_ptr& sender) const;
  bool is_own(int worker) const { return worker / workers_per_host_ == 0; }

  /// Stores what a host has told about itself.
  void take(const HostNews& news);
  /// Tells all agents that the trainer lives. Returns the hosts that have sent nothing for
  /// `longest`; none if this program itself has stood still.
  std::vector<int> beat(Clock::time_point now, Clock::duration longest);
  /// Notes that all chips of this worker's host have committed `step`.
  void committed(int worker, std::uint64_t step);
  void prepare(const action::Prepare& prepare);
  /// Notes that the loops of the prepared generation begin.
  void start() { commits_.start(); }
  /// Sends an order about a worker of another host to that host's agent.
  void launch(int worker);
  void kill(int worker, bool dumps_stack);
  void keep_hang(bool is_kept) const;
  /// Tells all agents that the job has ended.
  void stop();

  std::uint64_t common_step() const override;
  bool has_whole_state() const override { return own_.has_whole_state(); }
  void begin_generation(std::uint64_t step) override { own_.begin_generation(step); }
  void abort(std::string_view why) override;
  void remove_arena_names() override;
  std::vector<ActorRow> rows() const override { return own_.rows(); }
  Whereabouts locate(int worker) const override { return own_.locate(worker); }
  std::string describe_process(const ProcessId& process) const override;
  std::uint64_t core_time(const ProcessId& process) const override;
  void copy_rows(const HostNews& news) override { own_.copy_rows(news); }
  void mark_lost(int worker, std::string_view why) override;
  void set_status(JobStatus status) override;

 private:
  struct Other {
    AgentActor agent{};
    Clock::time_point heard{};               ///< when the agent last sent something
    bool has_sent_bad_rows = false;          ///< the bad rows were logged
    std::map<int, HostProcess> processes{};  ///< by worker
  };
  template <typename... Content>
  void tell_all(const Content&... content) const;
  template <typename... Content>
  void tell_host_of(int worker, const Content&... content) const;
  const HostProcess* find(const ProcessId& process) const;

  HostLink& own_;
  const int workers_per_host_;
  HostCommits commits_;
  std::uint64_t generation_ = 1;
  Clock::time_point beaten_ = Clock::now();
  std::map<int, Other> others_;  ///< by host
};

}  // namespace weft
