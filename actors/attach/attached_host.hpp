#pragma once
/// AttachedHost: the process of a program that has attached to another program's actor system.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "actors/launch/process_fd.hpp"
#include "actors/message/schema.hpp"
#include "actors/process/wake_queue.hpp"
#include "actors/user/actor_host.hpp"
#include "actors/user/actor_process.hpp"

namespace weft {

/// Compares this program's declaration of an endpoint with that of the system's program.
struct EndpointMatch {
  detail::EndpointId theirs{};  ///< the endpoint in the system's program
  bool is_same = false;         ///< both schemas are equal, so nothing needs to be translated
  EndpointSchema our_schema{};
  EndpointSchema their_schema{};
  std::string why_not{};  ///< why calls can't be translated; "": they can be
};

/// Returns whether the program of an actor system lives and hasn't ended the system.
bool system_runs(const std::string& id);

/// Compares the endpoints of a class with the schemas `theirs` in the system's program.
std::vector<EndpointMatch> matched_endpoints(const detail::ActorClass& ours,
                                             const std::vector<std::string>& theirs);

namespace detail {

/// Translates calls where the programs' schemas differ. Thread-safe.
class AttachedHost final : public ActorHost {
 public:
  /// `process` must have joined the system. `end` is woken when the system tells this process to
  /// leave.
  AttachedHost(std::shared_ptr<ActorProcess> process, std::shared_ptr<WakeFd> end);
  ~AttachedHost() override;

  ActorProcess& process() const { return *process_; }
  bool has_ended() const { return has_ended_.load(); }
  /// Ends all calls with the error cancelled. No call can be made afterwards.
  void detach();

  std::shared_ptr<PendingCall> begin(std::uint32_t row, EndpointId endpoint,
                                     MessageWriter arguments, const CallOptions& options) override;
  void tell(std::uint32_t row, EndpointId endpoint, const MessageWriter& body,
            const CallOptions& options) override;
  // No actors are in this process, so it answers no messages.
  void send_answer(const Asked&, ActorOp, const MessageWriter&) override {}
  bool is_awaited(const Asked&) override { return false; }
  std::size_t least_busy(const std::vector<ActorHandle>& actors) override {
    return process_->least_busy(actors);
  }
  std::uint64_t system_key() const override { return process_->system_key(); }
  std::string name(std::uint32_t row) const override { return process_->name(row); }
  MeshOfActors mesh_of(std::uint32_t row) const override { return process_->mesh_of(row); }
  std::vector<MeshOfActors> meshes() const override { return process_->meshes(); }
  ProcessPlace place() const override { return process_->place(); }
  bool must_end(std::optional<std::uint32_t> row) const override { return process_->must_end(row); }
  std::uint32_t pipe_user() const override { return process_->pipe_user(); }
  void show_wait(std::uint64_t word) const override { process_->show_wait(word); }
  LoanedTensor loan(const TensorType& type) override { return process_->loan(type); }

 private:
  struct Matches {
    std::uint32_t turn = 0;  ///< the turn of the mesh's rows
    std::vector<EndpointMatch> endpoints{};
  };

  const EndpointMatch& match(std::uint32_t row, std::uint32_t endpoint);
  void watch();

  std::shared_ptr<ActorProcess> process_;
  std::shared_ptr<WakeFd> end_;  ///< readable when the system has ended or detach() was called
  ProcessFd keeper_;
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> is_detached_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<const Matches>> owned_{};  // guarded by mutex_; calls refer to them
  std::array<std::atomic<const Matches*>, kMeshCountMax> matches_{};  ///< by mesh
  std::jthread watch_;
};

}  // namespace detail
}  // namespace weft
