#pragma once
/// ActorProcess: the part of an actor system that is in one process.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <weft/actor/call.hpp>

#include "actors/table/actor_memory.hpp"
#include "actors/table/call_tracer.hpp"
#include "actors/user/actor_host.hpp"
#include "actors/user/calls.hpp"
#include "actors/user/replies.hpp"
#include "actors/user/runner.hpp"
#include "actors/user/waits.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft {

struct ActorProcessOptions {
  std::uint32_t port_count = 3;  ///< port 0 for answers, the others for runners
  std::uint32_t runners = 2;     ///< the runners of ports 1 to `runners` are started at once
  std::size_t heap_bytes = std::size_t{8} << 30;
  double call_timeout_s = 30;
};

namespace detail {

/// Sends calls and takes their answers, and runs the actors that are in this process. Thread-safe.
class ActorProcess final : public ActorHost, public CallHost {
 public:
  using Clock = ActorCall::Clock;
  /// Takes the messages at port 0 that aren't answers; ActorOp explains the numbers. Must not wait.
  using OnNews = std::function<void(ActorOp op, PeerId from, std::uint32_t target,
                                    std::uint64_t call, const Error& error)>;

  /// Lets this process take the slot `self`. `peers` and `actors` are its own views of the tables.
  static std::shared_ptr<ActorProcess> join(PeerTable peers, ActorTable actors, PeerId self,
                                            const ActorProcessOptions& options, OnNews on_news);
  ~ActorProcess() override;

  const std::shared_ptr<LaneNode>& node() const { return node_; }
  PeerTable& peers() { return members_->peers; }
  ActorTable& actors() { return members_->actors; }
  std::uint64_t system_key() const override { return system_key_; }
  bool is_awaited(const Asked& asked) override;
  int spins() const;  ///< how often a thread looks for a message before it sleeps
  void start_runner(std::uint32_t port);  ///< does nothing if the port has a runner
  /// Ends all calls with the error `why`, ends all threads, and destroys the actors.
  void stop(const Error& why = system_ended_error());

  std::shared_ptr<PendingCall> begin(std::uint32_t row, EndpointId endpoint,
                                     MessageWriter arguments, const CallOptions& options) override;
  /// Sends an order to a port, whatever the phase of the actor is. Doesn't wait: if the lane is
  /// full, the order ends with the error overloaded.
  std::shared_ptr<ActorCall> order(ActorOp op, std::uint32_t row, PeerId to, std::uint32_t port,
                                   const MessageWriter& body, double timeout_s);
  void tell(std::uint32_t row, EndpointId endpoint, const MessageWriter& body,
            const CallOptions& options) override;
  void send_answer(const Asked& asked, ActorOp op, const MessageWriter& value) override;
  /// Answers a call. Waits for room in the lane as long as the caller's process lives.
  void answer(const Asked& asked, ActorOp op, const MessageWriter& value);
  /// Keeps the lock of a claimed slot until the memory of this process is released.
  void keep(LifeLock life) { members_->life = std::move(life); }
  void report_failure(std::uint32_t row, const Error& error);  ///< tells the keeper
  /// Tells the keeper that this process can receive messages. If the process is a job's worker,
  /// `job` is the job_key() of the job and `worker` its number there; `job` is 0 otherwise.
  void report_joined(std::uint64_t job = 0, std::uint32_t worker = 0);
  /// Tells all processes that this process, which had attached, receives nothing any more.
  void report_leaving();
  /// Sends the order `leave` or `run`. Doesn't wait. Returns false if it can't be sent now.
  bool tell_process(PeerId process, ActorOp op, std::uint32_t port = 0);
  Error ended_error(std::uint32_t row) const;  ///< the error of calls to an ended actor
  Replies& replies() { return *replies_; }
  CallTracer& tracer() { return tracer_; }
  void count_lost_tell() { actors().head().lost_tells.fetch_add(1, std::memory_order_relaxed); }
  std::size_t least_busy(const std::vector<ActorHandle>& actors) override;
  std::string name(std::uint32_t row) const override { return members_->actors.name(row); }
  MeshOfActors mesh_of(std::uint32_t row) const override;
  std::vector<MeshOfActors> meshes() const override;
  ProcessPlace place() const override;
  bool must_end(std::optional<std::uint32_t> row) const override;
  Clock::time_point now() const override { return Clock::now(); }
  std::uint32_t pipe_user() const override;
  void show_wait(std::uint64_t word) const override;
  std::uint32_t job_source(const std::string& job, const std::string& name) const override;
  LoanedTensor loan(const TensorType& type) override;

  bool wait(ActorCall& call, Clock::time_point time) override;
  void post(std::function<void()> done, bool is_the_programs) override {
    replies_->post(std::move(done), is_the_programs);
  }
  void watch(int more_callbacks) noexcept override { replies_->watch(more_callbacks); }
  void end(ActorCall& call, Answer answer) override;

 private:
  ActorProcess(std::shared_ptr<ActorMemory> members, const ActorProcessOptions& options,
               OnNews on_news);

  std::shared_ptr<CallHost> shared_host() { return {shared_from_this(), this}; }
  void submit(const std::shared_ptr<ActorCall>& call, bool wait_if_full);
  void send(PeerId to, std::uint32_t port, const LaneHeading& heading, const MessageWriter& body,
            bool wait_if_full, SendLimit& limit);
  bool send_call(const std::shared_ptr<ActorCall>& call, PeerId to, std::uint32_t port,
                 bool wait_if_full);
  void finish(ActorCall& call, Answer answer);
  void park(const std::shared_ptr<ActorCall>& call);
  bool is_parked(std::uint32_t row);
  bool has_room(const ActorPosition& at);
  void send_parked();
  void lose(const std::shared_ptr<ActorCall>& call);
  void on_message(InMessage message);
  void on_deaths();
  Clock::time_point on_time();
  Error timeout_error(const ActorCall& call);
  const EndpointEntry* endpoint_of(const ActorCall& call);
  std::string name_of(const ActorCall& call);
  std::string name_of(PeerId process) const;
  PeerId keeper() const;

  std::shared_ptr<ActorMemory> members_;
  std::shared_ptr<LaneNode> node_;  ///< belongs to members_
  CallTracer tracer_;
  ActorProcessOptions options_;
  std::uint64_t system_key_;
  OnNews on_news_;
  int cores_;
  Calls calls_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> open_calls_;    ///< number of open calls, by row
  std::array<std::atomic<bool>, kPeerCountMax> slow_takers_{};  ///< by slot; see answer()
  std::atomic<bool> is_stopped_{false};
  std::mutex mutex_;
  std::map<std::uint32_t, std::vector<std::shared_ptr<ActorCall>>> parked_;  // guarded by mutex_
  std::atomic<bool> has_parked_{false};  // written under mutex_; lets senders skip the mutex
  std::uint32_t seen_changes_ = 0;       // the table's changes at the last on_time()
  std::mutex runners_mutex_;
  std::map<std::uint32_t, std::unique_ptr<Runner>> runners_;  // by port; guarded by runners_mutex_
  std::unique_ptr<Replies> replies_;
};

}  // namespace detail
}  // namespace weft
