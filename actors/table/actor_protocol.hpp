#pragma once
/// The messages between the processes of an actor system, in the form that lanes carry, and the
/// errors of calls and messages.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <weft/message/bytes.hpp>
#include <weft/tensor/error.hpp>

#include "transport/actors/actor_op.hpp"
#include "transport/lanes/lane_message.hpp"

namespace weft {

/// The slot of the keeper, which is the process that has the ActorSystem.
inline constexpr std::uint32_t kKeeperSlot = 0;
/// The port at which each process receives answers and news. Higher ports are for actors.
inline constexpr std::uint32_t kReplyPort = 0;
/// The longest circle of waits that is found. Calls in a longer one end at their timeouts.
inline constexpr int kCircleLengthMax = 100;
/// The messages that wait for an actor that is being made again, at most.
inline constexpr std::size_t kKeptMax = 4096;

inline LaneHeading heading_of(ActorOp op, std::uint64_t call, std::uint32_t row,
                              std::uint32_t endpoint = 0) {
  return {.call = call, .target = row, .kind = static_cast<std::uint32_t>(op) | endpoint << 8U};
}
inline ActorOp op_of(const LaneHeading& heading) { return op_of_kind(heading.kind); }
inline std::uint32_t endpoint_of(const LaneHeading& heading) {
  return endpoint_of_kind(heading.kind);
}

/// Returns the number that identifies a job for the keeper. `id` is JobInfo::id. Never 0.
std::uint64_t job_key(std::string_view id);

/// Write and read the body of `error` and `failed`. The text is cut to 16 KiB. get_error() throws
/// corrupt for a malformed body.
void put_error(MessageWriter& out, const Error& error);
Error get_error(MessageReader& in);

/// Identifies the message to which an answer belongs.
struct Asked {
  PeerId by{};
  LaneHeading heading{};
};

/// The body of the order `make`.
struct MakeOrder {
  std::string type{};
  std::uint64_t seed = 0;
  bool own_thread = false;
  std::string config{};  ///< JSON
  std::string job{};     ///< the id of SpawnOptions::lives_with; "": none
};

/// Returns the seed of an actor's context, computed from the seed of its system.
std::uint64_t actor_seed(std::uint64_t system, std::uint32_t mesh, std::uint32_t index,
                         std::uint32_t incarnation);

/// Returns the text of the exception that is being handled.
std::string current_exception_text();

// The following functions return the errors of calls and messages. `call` is a name such as
// "sieves[3].primes", and `actor` a name such as "sieves[3]".

/// `waiter` must not wait for answers.
Error may_not_wait_error(std::string_view call, std::string_view waiter);
/// `circle` is a text such as "a[0].f > b[0].g > a[0].h".
Error circle_error(std::string_view circle);
/// The limit of messages that wait for the actor's thread is reached. `must_not_wait`: the sender
/// wants to wait for room, but its thread must not.
Error full_error(std::string_view actor, bool must_not_wait);
Error still_full_error(std::string_view actor);
Error being_made_error(std::string_view actor);
Error still_being_made_error(std::string_view actor);
Error kept_too_many_error(std::string_view actor);
/// `process` is a text such as "its process".
Error lost_call_error(std::string_view call, std::string_view process);
Error system_ended_error();
/// The limit of this process's calls that wait for answers is reached.
Error too_many_calls_error();
/// The actor's answer is too long, or there is no memory for it.
Error unsendable_answer_error(std::string_view actor, const Error& why);
Error constructor_error(std::string_view actor, std::string_view text);
/// Process `slot` doesn't know the actor's type.
Error unmade_error(std::string_view actor, std::uint32_t slot, int pid, const Error& why);
Error no_endpoint_error(std::uint32_t endpoint);
Error no_such_actor_error(std::uint32_t row, std::uint32_t count);
/// The actor's mesh has ended with an error of this code and text; code 0: it was stopped.
Error mesh_ended_error(std::string_view actor, std::uint8_t code, std::string_view text);
/// Why an actor may not have answered in time.
struct UnansweredCall {
  bool is_being_made = false;
  bool replies_later = false;
  std::string running{};  ///< the function that its thread runs, such as "a[0].f"; "": none runs
  double busy_s = 0;      ///< how long `running` has run
  /// The thread, such as "thread 1 of process 2", if `running` is a function of another actor.
  std::string shared_thread{};
};
Error no_answer_error(std::string_view call, double timeout_s, const UnansweredCall& why);

}  // namespace weft
