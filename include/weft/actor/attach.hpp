#pragma once
/// attach(): lets another program of the same user on this host call the actors of a system.

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
  double wait_s = 0;  ///< seconds to wait for the system to start; 0 to 1e9
  /// The timeout in seconds of calls whose CallOptions::timeout_s is 0; more than 0.
  double call_timeout_s = 30;
  /// Address space, in bytes, for the tensors of messages that this program sends;
  /// 1 MiB to 1 TiB.
  std::size_t heap_bytes = std::size_t{1} << 30;
};

namespace detail {
class AttachedHost;
}

/// Gives this program access to an actor system of another program, which may be another build. If
/// the two programs have different schemas of an endpoint, its messages are translated as
/// <weft/message.hpp> says; where that is impossible, calls end with the error version. Movable.
/// The destructor detaches: open calls end with the error cancelled. When the system ends, calls
/// end with peer_lost or cancelled.
class AttachedSystem {
 public:
  AttachedSystem(AttachedSystem&&) noexcept;
  AttachedSystem& operator=(AttachedSystem&&) noexcept;
  ~AttachedSystem();

  /// Returns the mesh named `mesh`. `type` is this program's declaration of the actor class, with
  /// the endpoints that it calls. Throws not_found, with the names of all meshes, or
  /// invalid_argument if the mesh has actors of a type with another name.
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
  /// Makes a pipe to or from actors. Throws invalid_argument, no_space.
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) const {
    return detail::make_pipe_of<T>(host(), options);
  }
  /// Returns a tensor in shared memory: fill it, then send it without a copy. Throws no_space.
  LoanedTensor loan(const TensorType& type) const;
  /// Posts a command, as Job::post() does, to a job that meshes of the system live with. Waits
  /// until the job's loops have read it, and returns the step in which they did. `job` is the job's
  /// id or its first digits; "": the only job. Throws not_found if no job matches; invalid_argument
  /// if several jobs match or `timeout_s` isn't in 0 to 1e9; timeout (the command stays posted);
  /// and the errors of PostedCommand::get().
  std::uint64_t post(const Command& command, double timeout_s = 30,
                     std::string_view job = {}) const;
  /// These two functions work like those of ActorSystem.
  int fd();
  int run_ready();

  std::string name() const;
  const std::string& id() const;  ///< 32 hex digits
  /// Returns whether the system has ended or its program has died.
  bool has_ended() const;

 private:
  friend AttachedSystem attach(std::string_view system, const AttachOptions& options);
  explicit AttachedSystem(std::shared_ptr<detail::AttachedHost> host) : host_(std::move(host)) {}
  std::shared_ptr<detail::ActorHost> host() const;
  std::vector<detail::ActorHandle> find_handles(std::string_view mesh, std::string_view type) const;

  std::shared_ptr<detail::AttachedHost> host_;
};

/// Attaches to the running actor system whose SystemOptions::name is `system`, or whose id begins
/// with `system`. Throws not_found, with the names of the running systems; invalid_argument for an
/// empty name, wrong options, or if several systems match; no_space if the system has 256
/// processes; version if its program has another version of weft's shared memory; and unavailable
/// if its program doesn't answer or refuses this program.
AttachedSystem attach(std::string_view system, const AttachOptions& options = {});

}  // namespace weft
