#pragma once
/// ActorHost: what references to actors, messages and actors' contexts need of their process.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/actor/call.hpp>
#include <weft/actor/loan.hpp>

#include "actors/user/job_wait.hpp"
#include "transport/actors/awaited.hpp"
#include "transport/channel/channel.hpp"

namespace weft {
struct Asked;
enum class ActorOp : std::uint8_t;
}  // namespace weft

namespace weft::detail {

/// Identifies a mesh, and the rows of its actors.
struct MeshOfActors {
  std::string name{};
  std::string type{};
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
};

/// Identifies a process of an actor system.
struct ProcessPlace {
  std::string system{};  ///< the system's id, 32 hex digits
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t host = 0;
  std::uint32_t host_count = 1;  ///< number of hosts of the system
};

/// One process of an actor system. Thread-safe.
class ActorHost : public JobHost, public std::enable_shared_from_this<ActorHost> {
 public:
  /// Begin a call, or send a message without an answer: see begin_call() and begin_tell() of
  /// <weft/actor/call.hpp>.
  virtual std::shared_ptr<PendingCall> begin(std::uint32_t row, EndpointId endpoint,
                                             MessageWriter arguments,
                                             const CallOptions& options) = 0;
  virtual void tell(std::uint32_t row, EndpointId endpoint, const MessageWriter& body,
                    const CallOptions& options) = 0;
  /// Sends the answer to a message; `op` is `answer` or `error`.
  virtual void send_answer(const Asked& asked, ActorOp op, const MessageWriter& value) = 0;
  /// Returns whether the sender of this message still waits for the answer.
  virtual bool is_awaited(const Asked& asked) = 0;
  /// See detail::least_busy(). `actors` must not be empty.
  virtual std::size_t least_busy(const std::vector<ActorHandle>& actors) = 0;
  /// Returns a part of the system's id, which references carry to show that their actor belongs to
  /// this system. Never 0.
  virtual std::uint64_t system_key() const = 0;
  /// Returns the name of an actor, such as "sieves[3]".
  virtual std::string name(std::uint32_t row) const = 0;
  /// Returns the mesh of an actor. Throws corrupt if there was never an actor with this number. If
  /// the actor has ended and another one has its row, throws the error of calls to it.
  virtual MeshOfActors mesh_of(std::uint32_t row) const = 0;
  /// Returns the meshes that haven't ended.
  virtual std::vector<MeshOfActors> meshes() const = 0;
  virtual ProcessPlace place() const = 0;
  /// Returns whether waits must end: the waits of actor `row`, or all of this process if there is
  /// no `row`.
  virtual bool must_end(std::optional<std::uint32_t> row) const = 0;
  /// Called repeatedly while this thread waits for something other than a call; `what` names it.
  /// Throws invalid_argument if other actors need the thread, and cancelled if the wait must end.
  void check_wait(std::string_view what) const;
  /// Throws unavailable, naming `what`, if this process isn't on host 0, where the job is.
  void require_host_0(std::string_view what) const;
  /// Called before something other than a call is sent to another process. A simulation may kill
  /// the process here. Returns false if nothing may be sent, as in destructors of a killed process.
  virtual bool before_sending() { return true; }
  /// Make, open and remove the channel of a pipe; names are unique in the system. `options` need no
  /// job. Throw the errors of Channel's functions, and create_channel() throws unavailable in a
  /// system on several hosts.
  virtual void create_channel(ChannelOptions options);
  virtual std::shared_ptr<Channel> open_channel(const std::string& name);
  virtual void remove_channel(const std::string& name) noexcept;
  std::uint64_t next_pipe() { return pipe_count_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns the calling thread as the word of a PipeUser; 0 if unknown.
  virtual std::uint32_t pipe_user() const { return 0; }
  /// Shows others for what this thread waits. `word` is that of an AwaitedPipe or AwaitedJob; 0: it
  /// doesn't wait any more. Only the thread of an actor may wait for a job.
  virtual void show_wait(std::uint64_t /*word*/) const {}
  /// Returns AwaitedJob::source for a Publisher or an experience of a job.
  virtual std::uint32_t job_source(const std::string& /*job*/, const std::string& /*name*/) const {
    return AwaitedJob::kUnnamed;
  }
  /// Returns memory for a tensor that messages of this process carry without a copy. Throws
  /// no_space.
  virtual LoanedTensor loan(const TensorType& type) = 0;

 private:
  std::atomic<std::uint64_t> pipe_count_{0};  ///< number of pipes that this process has made
};

}  // namespace weft::detail
