#pragma once
/// attach(): calls the actors of a system from another program of the same user on this host.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weft/actor/actor_context.hpp>
#include <weft/actor/actor_mesh.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/actor/loan.hpp>
#include <weft/job/command.hpp>

namespace weft {

struct AttachOptions {
  double wait_s = 0;  ///< seconds to wait until a system of this name runs; 0 to 1e9
  /// Seconds that a call may take if its CallOptions::timeout_s is 0; more than 0.
  double call_timeout_s = 30;
  /// Address space, in bytes, for the tensors of messages that this program sends;
  /// 1 MiB to 1 TiB.
  std::size_t heap_bytes = std::size_t{1} << 30;
};

namespace detail {
class AttachedHost;
}

/// A program's access to an actor system of another program, which may be of another build. If
/// their schemas of an endpoint differ, messages are translated as <weft/message.hpp> says, or
/// calls of it end with the error version. Movable. The destructor detaches: calls that are under
/// way end with the error cancelled. If the system ends, calls end with peer_lost or cancelled.
class AttachedSystem {
 public:
  AttachedSystem(AttachedSystem&&) noexcept;
  AttachedSystem& operator=(AttachedSystem&&) noexcept;
  ~AttachedSystem();

  /// Returns the mesh of this name. `type` is this program's declaration of the class, with the
  /// endpoints that it calls. Throws not_found
  /// with the names that exist, invalid_argument if its actors are of a type of another name.
  template <typename T>
  ActorMesh<T> find(const ActorType<T>& type, std::string_view mesh) const {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : find_handles(mesh, type.name())) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Returns the names of the meshes that haven't ended.
  std::vector<std::string> meshes() const;
  /// Makes a stream of values to or from actors. Throws invalid_argument, no_space.
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) const {
    return detail::make_pipe_of<T>(host(), options);
  }
  /// Returns a tensor in shared memory, to be filled and sent without a copy. Throws no_space.
  LoanedTensor loan(const TensorType& type) const;
  /// Posts a command to the job that a mesh of the system lives with, as Job::post() does, and
  /// waits until its loops have read it. Returns the step in which they did. `job` is a job's
  /// id or its first digits; "": the only job. Throws not_found if there is no such job,
  /// invalid_argument if there are several or unless `timeout_s` is from 0 to 1e9, timeout (the
  /// command stays posted), and the errors of PostedCommand::get().
  std::uint64_t post(const Command& command, double timeout_s = 30,
                     std::string_view job = {}) const;
  /// See ActorSystem.
  int fd();
  int run_ready();

  std::string name() const;
  const std::string& id() const;  ///< 32 hex digits
  /// Whether the system's program has ended it, or has died.
  bool has_ended() const;

 private:
  friend AttachedSystem attach(std::string_view system, const AttachOptions& options);
  explicit AttachedSystem(std::shared_ptr<detail::AttachedHost> host) : host_(std::move(host)) {}
  std::shared_ptr<detail::ActorHost> host() const;
  std::vector<detail::ActorHandle> find_handles(std::string_view mesh, std::string_view type) const;

  std::shared_ptr<detail::AttachedHost> host_;
};

/// Attaches to the running actor system whose SystemOptions::name is `system`, or whose id begins
/// with it. Throws not_found with the names of those that run; invalid_argument for an empty name,
/// for options that can't be, or if several have the name; no_space if the system has 256
/// processes; version if its program has another version of weft's shared memory; and unavailable
/// if its program doesn't answer or refuses this one.
AttachedSystem attach(std::string_view system, const AttachOptions& options = {});

}  // namespace weft
