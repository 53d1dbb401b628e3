#pragma once
/// Calls of actors that are under way, without their C++ types. Programs use Future instead.

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
  /// At most 64 messages of this process wait for a thread that runs actors. If true, a further
  /// message waits for room; if false, it ends with the error overloaded.
  bool wait_if_full = true;
};

namespace detail {

class ActorHost;

/// The answer to a call: the value that the endpoint returned, or an error.
struct Answer {
  std::vector<std::byte> bytes{};
  std::vector<MessagePayload> payloads{};
  std::optional<Error> error{};
  ActorHost* process = nullptr;  ///< the process that made the call
};

/// A call that is under way. Thread-safe.
class PendingCall {
 public:
  virtual ~PendingCall() = default;
  /// Waits for the end of the call, at most until `time`. Returns whether the call has ended.
  /// Throws invalid_argument on a thread that other actors share, because waiting there could keep
  /// them from answering.
  virtual bool wait_until(std::chrono::steady_clock::time_point time) = 0;
  /// Returns the present time of the clock that wait_until() uses.
  virtual std::chrono::steady_clock::time_point now() const = 0;
  /// Returns the answer of a call that has ended.
  virtual const Answer& answer() const = 0;
  /// Calls `done` on the thread `weft.replies` once the call has ended.
  virtual void when_done(std::function<void()> done) = 0;
  /// Ends the call with the error cancelled. If the endpoint hasn't begun, it doesn't run.
  virtual void cancel() = 0;
};

/// Identifies an actor by its number in the system's table of actors. If `process` is null, there
/// is no actor.
struct ActorHandle {
  std::shared_ptr<ActorHost> process{};
  std::uint32_t row = 0;  ///< an ActorNumber: a row, and how many meshes used it before
};

/// Identifies an endpoint of an actor's class, without C++ types.
struct EndpointId {
  std::uint32_t index = 0;
  bool is_const = false;
};

/// Sends a call to an endpoint of an actor. Errors are given in the answer, and not thrown.
std::shared_ptr<PendingCall> begin_call(const ActorHandle& actor, EndpointId endpoint,
                                        MessageWriter arguments, const CallOptions& options);
/// Sends a message that isn't answered. Throws those errors of Future::get() that are known at
/// once.
void begin_tell(const ActorHandle& actor, EndpointId endpoint, const MessageWriter& arguments,
                const CallOptions& options);
/// Returns the name of an actor, such as "sieves[3]"; "" for no actor.
std::string name_of(const ActorHandle& actor);
/// Returns the index in `actors` of the actor with the fewest unanswered calls from this process.
std::size_t least_busy(const std::vector<ActorHandle>& actors);

}  // namespace detail
}  // namespace weft
