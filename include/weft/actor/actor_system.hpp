#pragma once
/// ActorSystem: owns the actors of an application, in this process and in processes that it starts.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weft/actor/actor_mesh.hpp>
#include <weft/actor/actor_options.hpp>
#include <weft/actor/actor_type.hpp>
#include <weft/actor/loan.hpp>

namespace weft {

class Keeper;

/// Counts messages of a system, over all its processes.
struct ActorCounts {
  std::uint64_t copied_tensors = 0;  ///< tensors that were copied: not loaned
  std::uint64_t lost_tells = 0;      ///< tell() messages that no actor received
};

/// Owns actors. The destructor asks all of them to stop, waits up to 5 s for them, and ends the
/// processes that the system has started. References to its actors may outlive it; calls through
/// them end with the error cancelled. Thread-safe.
class ActorSystem {
 public:
  /// Throws invalid_argument, no_space or io.
  explicit ActorSystem(SystemOptions options = {});
  ~ActorSystem();
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  /// Makes the actors of a mesh, and returns when all of them have been constructed. Throws
  /// invalid_argument for wrong options or a name that is in use; actor_failed with the first
  /// exception of a constructor; not_found if the type isn't registered in an actor's process;
  /// unavailable if a process can't be started; no_space if the system has no room for more actors
  /// or threads; cancelled if the job of the mesh ends before they are made.
  template <typename T>
  ActorMesh<T> spawn(const ActorType<T>& type, const SpawnOptions& options = {}) {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : spawn_class(type.entry(), options)) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Ends the actors of a mesh: asks them to stop, and destroys each after the function that it
  /// runs. Then the name of the mesh is free again. Throws not_found.
  void stop(const std::string& mesh);
  /// Makes a pipe to or from actors. Throws invalid_argument, no_space.
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) {
    return detail::make_pipe_of<T>(host(), options);
  }
  /// Returns a tensor in shared memory: fill it, then send it without a copy. Throws no_space.
  LoanedTensor loan(const TensorType& type);
  /// Returns a file descriptor for programs that have an event loop (poll(), epoll,
  /// QSocketNotifier). It is readable while callbacks of Future::then() wait for run_ready(). From
  /// the first call of fd() on, callbacks run in run_ready() and in the destructor, and no longer
  /// on the thread `weft.replies`. The system owns the descriptor. Throws io.
  int fd();
  /// Runs the waiting callbacks on this thread, and returns their number.
  int run_ready();
  ActorCounts counts() const;
  /// Returns the error that ended the system: that of an actor whose Supervision says `escalate`.
  std::optional<Error> failure() const;
  /// Returns 32 hex digits that identify the system.
  const std::string& id() const;

 private:
  std::shared_ptr<detail::ActorHost> host() const;
  std::vector<detail::ActorHandle> spawn_class(const detail::ActorClass& type,
                                               const SpawnOptions& options);

  std::unique_ptr<Keeper> keeper_;
};

}  // namespace weft
