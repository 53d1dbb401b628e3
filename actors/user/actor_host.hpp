#pragma once
/// ActorHost: the process of references to actors, of messages and of actors' contexts.

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
#include "transport/channel/channel.hpp"

namespace weft {
struct Asked;
enum class ActorOp : std::uint8_t;
}  // namespace weft

namespace weft::detail {

/// The facts of a mesh by which its actors are found.
struct MeshOfActors {
  std::string name{};
  std::string type{};
  std::uint32_t first_row = 0;
  std::uint32_t count = 0;
};

/// Identifies a process of an actor system.
struct ProcessPlace {
  std::string system{};  ///< id, 32 hex digits
  std::uint32_t slot = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t host = 0;
  std::uint32_t host_count = 1;  ///< of the system
};

/// One process of an actor system. Thread-safe.
class ActorHost : public JobHost, public std::enable_shared_from_this<ActorHost> {
 public:
  /// Begins a call, or sends a message: see begin_call() and begin_tell() of
  /// <weft/actor/call.hpp>.
  virtual std::shared_ptr<PendingCall> begin(std::uint32_t row, EndpointId endpoint,
                                             MessageWriter arguments,
                                             const CallOptions& options) = 0;
  virtual void tell(std::uint32_t row, EndpointId endpoint, const MessageWriter& body,
                    const CallOptions& options) = 0;
  /// Sends an `answer` or an `error`.
  virtual void send_answer(const Asked& asked, ActorOp op, const MessageWriter& value) = 0;
  /// Returns whether the caller of this message still waits for the answer.
  virtual bool is_awaited(const Asked& asked) = 0;
  /// See detail::least_busy(). There is an actor at least.
  virtual std::size_t least_busy(const std::vector<ActorHandle>& actors) = 0;
  /// A part of the system's id, by which references to its actors are known. Never 0.
  virtual std::uint64_t system_key() const = 0;
  /// Returns the name of an actor, such as "sieves[3]".
  virtual std::string name(std::uint32_t row) const = 0;
  /// Returns the mesh of an actor. Throws corrupt if there was never such an actor, and the error
  /// of its calls if a later actor has its row.
  virtual MeshOfActors mesh_of(std::uint32_t row) const = 0;
  /// Returns the meshes that haven't ended.
  virtual std::vector<MeshOfActors> meshes() const = 0;
  virtual ProcessPlace place() const = 0;
  /// Returns whether waits must end: those of the actor `row`, or all of this process.
  virtual bool must_end(std::optional<std::uint32_t> row) const = 0;
  /// Called while this thread waits for something that isn't a call, of which `what` is a name.
  /// Throws invalid_argument if other actors need the thread, cancelled if the wait must end.
  void check_wait(std::string_view what) const;
  /// Throws unavailable, naming `what`, if this process is on another host than the job's.
  void require_host_0(std::string_view what) const;
  /// Called before something that isn't a call is given to another process. In a simulation, the
  /// process may be killed here. Returns false in destructors of a process that was killed, which
  /// send nothing.
  virtual bool before_sending() { return true; }
  /// The channels of pipes, by their names within the system. `options` need no job. The functions
  /// throw as those of Channel, and create_channel() throws unavailable in a system on several
  /// hosts.
  virtual void create_channel(ChannelOptions options);
  virtual std::shared_ptr<Channel> open_channel(const std::string& name);
  virtual void remove_channel(const std::string& name) noexcept;
  std::uint64_t next_pipe() { return pipe_count_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns the word of a PipeUser that is the calling thread; 0: unknown.
  virtual std::uint32_t pipe_user() const { return 0; }
  /// Shows others that this thread waits at a pipe: the word of an AwaitedPipe. 0: it doesn't.
  virtual void show_pipe_wait(std::uint64_t /*word*/) const {}
  /// Returns a tensor that messages of this process carry without a copy. Throws no_space.
  virtual LoanedTensor loan(const TensorType& type) = 0;

 private:
  std::atomic<std::uint64_t> pipe_count_{0};  ///< that this process has made
};

}  // namespace weft::detail
