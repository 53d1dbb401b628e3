#pragma once
/// A call of an actor that is under way, without its types. Programs use Future.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <weft/message/bytes.hpp>
#include <weft/tensor/error.hpp>

namespace weft {

struct CallOptions {
  /// Seconds after which the call ends with the error timeout. 0: SystemOptions::call_timeout_s.
  double timeout_s = 0;
  /// A request to stop ends the call with the error cancelled.
  std::stop_token stop{};
  /// At most 64 messages of this process wait for a thread that runs actors. Whether a further one
  /// waits for room, or ends with the error overloaded.
  bool wait_if_full = true;
};

namespace detail {

class ActorHost;

/// The value that an endpoint returned, or the error of the call.
struct Answer {
  std::vector<std::byte> bytes{};
  std::vector<MessagePayload> payloads{};
  std::optional<Error> error{};
  ActorHost* process = nullptr;  ///< the caller's
};

/// Thread-safe.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Waits for the end of the call until the time. Returns whether it has ended. Throws
  /// invalid_argument on a thread that other actors need, since it would keep them from answering.
  virtual bool wait_until(std::chrono::steady_clock::time_point time) = 0;
  /// Returns the time by the clock of wait_until().
  virtual std::chrono::steady_clock::time_point now() const = 0;
  /// Returns the answer of a call that has ended.
  virtual const Answer& answer() const = 0;
  /// Calls `done` once the call has ended, on the thread `weft.replies`.
  virtual void when_done(std::function<void()> done) = 0;
  /// Ends the call with the error cancelled. The endpoint doesn't run if it hasn't begun.
  virtual void cancel() = 0;
};

/// Identifies an actor among those of a system: its number in the system's table of actors. Without
/// a process: no actor.
struct ActorHandle {
  std::shared_ptr<ActorHost> process{};
  std::uint32_t row = 0;  ///< an ActorNumber: the row, and how many meshes had it before
};

/// An endpoint of an actor's class, without its types.
struct EndpointId {
  std::uint32_t index = 0;
  bool is_const = false;
};

/// Sends a call to an endpoint of an actor. Errors of the call are in its answer.
std::shared_ptr<PendingCall> begin_call(const ActorHandle& actor, EndpointId endpoint,
                                        MessageWriter arguments, const CallOptions& options);
/// Sends a message that nobody answers. Throws the errors of Future::get() that can be known when
/// it is sent.
void begin_tell(const ActorHandle& actor, EndpointId endpoint, const MessageWriter& arguments,
                const CallOptions& options);
/// Returns the name of an actor, such as "sieves[3]"; "" for none.
std::string name_of(const ActorHandle& actor);
/// Returns the place in `actors` of the one with the fewest unanswered calls of this process.
std::size_t least_busy(const std::vector<ActorHandle>& actors);

}  // namespace detail
}  // namespace weft
