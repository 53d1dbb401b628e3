#pragma once
/// ActorSystem: the actors of an application, in its process and in processes of their own.

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

/// Counts of messages of a system, in all its processes.
struct ActorCounts {
  std::uint64_t copied_tensors = 0;  ///< that weren't loaned, so that they were copied when sent
  std::uint64_t lost_tells = 0;      ///< messages that were told and whose actor ended before
};

/// Owns its actors. The destructor requests all of them to stop, waits for them up to 5 s, and ends
/// the processes that it has started. References to its actors may outlive it; their calls end with
/// the error cancelled. Thread-safe.
class ActorSystem {
 public:
  /// Throws invalid_argument, no_space or io.
  explicit ActorSystem(SystemOptions options = {});
  ~ActorSystem();
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  /// Makes the actors of a mesh, and returns when all of them have been constructed. Throws
  /// invalid_argument for options that can't be, or a name that is taken; actor_failed with the
  /// first exception of a constructor; not_found if the type isn't registered in an actor's
  /// process; unavailable if a process can't be started; no_space if there are no rows or threads
  /// left; cancelled if the job of the mesh ends before.
  template <typename T>
  ActorMesh<T> spawn(const ActorType<T>& type, const SpawnOptions& options = {}) {
    std::vector<ActorRef<T>> actors;
    for (detail::ActorHandle& actor : spawn_class(type.entry(), options)) {
      actors.emplace_back(std::move(actor));
    }
    return ActorMesh<T>(std::move(actors));
  }
  /// Ends the actors of a mesh: requests their stop tokens, and destroys them after their current
  /// function. Its name is free again. Throws not_found.
  void stop(const std::string& mesh);
  /// Makes a stream of values to or from actors. Throws invalid_argument, no_space.
  template <Message T>
  Pipe<T> pipe(const PipeOptions& options = {}) {
    return detail::make_pipe_of<T>(host(), options);
  }
  /// Returns a tensor in shared memory, to be filled and sent without a copy. Throws no_space.
  LoanedTensor loan(const TensorType& type);
  /// For programs that have an event loop (poll(), epoll, QSocketNotifier). Returns a descriptor
  /// that is readable while callbacks of Future::then() wait for run_ready(). From the first call
  /// of fd() on, callbacks run there, and in the destructor, but not on the thread `weft.replies`.
  /// The system owns the descriptor. Throws io.
  int fd();
  /// Runs the callbacks that wait, on this thread, and returns how many it ran.
  int run_ready();
  ActorCounts counts() const;
  /// Returns the error that failed the system, if an actor failed whose Supervision escalates.
  std::optional<Error> failure() const;
  /// 32 hex digits.
  const std::string& id() const;

 private:
  std::shared_ptr<detail::ActorHost> host() const;
  std::vector<detail::ActorHandle> spawn_class(const detail::ActorClass& type,
                                               const SpawnOptions& options);

  std::unique_ptr<Keeper> keeper_;
};

}  // namespace weft
