#pragma once
/// SimulatedProcess: one process of a simulated actor system.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/process/wake_queue.hpp"
#include "actors/simulate/actor_simulation.hpp"
#include "actors/simulate/simulated_rows.hpp"
#include "actors/user/actor_host.hpp"
#include "actors/user/calls.hpp"
#include "actors/user/waits.hpp"

namespace weft {

/// Sends calls, takes their answers, and runs actors, like ActorProcess, Replies and Runner.
class SimulatedProcess final : public detail::ActorHost, public CallHost {
 public:
  SimulatedProcess(std::shared_ptr<ActorSimulation> simulation, PeerId id, std::uint32_t ports);

  PeerId id() const { return id_; }
  std::shared_ptr<detail::PendingCall> begin(std::uint32_t row, detail::EndpointId endpoint,
                                             MessageWriter arguments,
                                             const CallOptions& options) override;
  void tell(std::uint32_t row, detail::EndpointId endpoint, const MessageWriter& body,
            const CallOptions& options) override;
  void send_answer(const Asked& asked, ActorOp op, const MessageWriter& value) override;
  bool is_awaited(const Asked& asked) override;
  std::size_t least_busy(const std::vector<detail::ActorHandle>& actors) override;
  std::uint64_t system_key() const override { return simulation_->key(); }
  std::string name(std::uint32_t row) const override { return simulation_->keeper().name(row); }
  detail::MeshOfActors mesh_of(std::uint32_t row) const override;
  std::vector<detail::MeshOfActors> meshes() const override;
  LoanedTensor loan(const TensorType& type) override;
  detail::ProcessPlace place() const override;
  bool must_end(std::optional<std::uint32_t> row) const override;
  bool before_sending() override { return may_send(); }
  void create_channel(ChannelOptions options) override;
  std::shared_ptr<Channel> open_channel(const std::string& name) override;
  void remove_channel(const std::string& name) noexcept override;

  bool await(const WaitFor& wait_for, SimulatedTime deadline) override;
  void await_job(const JobWait& wait, SimulatedTime deadline) override;
  void require_running(const JobWait& wait) const override;
  std::shared_ptr<VersionSource> open_versions(const std::string& job,
                                               const std::string& name) override;
  std::shared_ptr<RowSink> open_rows(const std::string& job, const std::string& name) override;
  std::vector<std::string> published_names(const std::string& job) const override;

  bool wait(ActorCall& call, SimulatedTime time) override;
  SimulatedTime now() const override { return simulation_->now(); }
  void post(std::function<void()> done, bool is_the_programs) override;
  void watch(int /*more_callbacks*/) noexcept override {}
  void end(ActorCall& call, detail::Answer answer) override;

  // The following functions are for the simulation and the keeper.
  std::map<std::uint32_t, SimulatedPort>& ports() { return ports_; }
  void order_make(std::uint32_t row);
  void order_end(std::uint32_t row);
  void request_stop(std::uint32_t row);
  /// Returns the rows of the port's actors whose work() can be called.
  std::vector<std::uint32_t> workers(const SimulatedPort& port) const;
  void work(SimulatedPort& port, std::uint32_t row);
  /// Ends the calls whose deadlines have passed.
  void expire();
  SimulatedTime next_deadline() const;
  bool waits_for(std::uint64_t call) const { return calls_.contains(call); }
  bool has_calls_to(PeerId process) const;
  /// Ends the calls that were sent to a process that has died.
  void lose_calls_to(PeerId process);
  /// See Replies.
  int ready_fd();
  int run_ready();
  /// Destroys the actors, and ends the open calls with this error.
  void clear(const Error& error);

 private:
  struct Sent {
    std::shared_ptr<ActorCall> call;
    std::uint32_t sender;
  };

  std::shared_ptr<CallHost> shared_host() { return {shared_from_this(), this}; }
  bool may_send();
  static std::uint32_t sender();
  std::string sender_name(std::uint32_t sender) const;
  void submit(const std::shared_ptr<ActorCall>& call, bool wait_if_full);
  bool send_call(const Sent& sent, const ActorPosition& to, bool wait_if_full);
  void send(const ActorPosition& to, const LaneHeading& heading, std::uint32_t sender,
            const MessageWriter& body, bool wait_if_full, SimulatedTime limit);
  SimulatedMessage packed(const MessageWriter& body);
  void park(const Sent& sent);
  bool is_parked(std::uint32_t row) const;
  void send_parked(const Sent& sent);
  void take_answer(std::uint64_t number, detail::Answer answer);
  void finish(ActorCall& call, detail::Answer answer);
  Error ended_error(std::uint32_t row) const;
  Error timeout_error(const ActorCall& call) const;
  bool find_running(std::uint32_t row, UnansweredCall& why) const;
  void find_running_beside(std::uint32_t row, UnansweredCall& why) const;
  std::string name_of(const ActorCall& call) const;
  std::string circle_of(std::uint32_t waiter, AwaitedCall awaited) const;

  void take(SimulatedPort& port, SimulatedMessage message);
  void handle(SimulatedPort& port, SimulatedMessage message);
  void refuse(const SimulatedPort& port, const SimulatedMessage& message);
  void run_message(SimulatedPort& port, SimulatedActor& actor, const SimulatedMessage& message);
  void make(SimulatedPort& port, std::uint32_t row);
  void end_actor(SimulatedPort& port, std::uint32_t row);
  void fail_actor(SimulatedActor& actor, const std::string& why);
  void destroy(SimulatedActor& actor);
  void answer_error(const Asked& asked, const Error& error);
  std::string endpoint_name(std::uint32_t row, std::uint32_t endpoint) const;
  std::string function_name(std::uint32_t row, const ActorFunction& function) const;

  std::shared_ptr<ActorSimulation> simulation_;
  PeerId id_;
  bool is_cleared_ = false;
  int destroyed_ = 0;                        ///< number of actors whose destructors run
  std::map<std::uint64_t, Sent> calls_;      ///< by number
  std::vector<Sent> parked_;                 ///< calls that wait for their actor
  std::map<std::uint32_t, int> open_calls_;  ///< number of open calls, by row
  std::map<std::uint32_t, SimulatedPort> ports_;
  std::optional<WakeFd> ready_fd_;
  std::vector<std::function<void()>> ready_;  ///< for run_ready()
};

}  // namespace weft
