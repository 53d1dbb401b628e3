#include "actors/table/actor_protocol.hpp"

#include <exception>
#include <string>

#include <fmt/format.h>

#include <weft/message/codec.hpp>

namespace weft {
namespace {

constexpr std::size_t kErrorBytesMax = std::size_t{16} << 10;

/// Mixes two words into one (splitmix64), so that actors get different random numbers from the same
/// seed.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a + 0x9e37'79b9'7f4a'7c15ULL * (b + 1);
  x = (x ^ (x >> 30U)) * 0xbf58'476d'1ce4'e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d0'49bb'1331'11ebULL;
  return x ^ (x >> 31U);
}

}  // namespace

void put_error(MessageWriter& out, const Error& error) {
  MessageCodec<std::uint8_t>::put(out, static_cast<std::uint8_t>(error.code()));
  MessageCodec<std::string>::put(out, std::string_view(error.what()).substr(0, kErrorBytesMax));
}

Error get_error(MessageReader& in) {
  const auto code = MessageCodec<std::uint8_t>::get(in);
  std::string text = MessageCodec<std::string>::get(in);
  in.finish();
  if (to_string(static_cast<Errc>(code)) == "unknown") {
    fail(Errc::corrupt, "a message has the unknown error code {}: {}", code, text);
  }
  return {static_cast<Errc>(code), std::move(text)};
}

std::uint64_t job_key(std::string_view id) {
  return std::stoull(std::string(id.substr(0, 16)), nullptr, 16) | 1;
}

std::uint64_t actor_seed(std::uint64_t system, std::uint32_t mesh, std::uint32_t index,
                         std::uint32_t incarnation) {
  return mix(mix(mix(system, mesh), index), incarnation);
}

std::string current_exception_text() {
  try {
    throw;
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that isn't a std::exception";
  }
}

Error may_not_wait_error(std::string_view call, std::string_view waiter) {
  return {Errc::invalid_argument,
          fmt::format("{}: {} may not wait for an answer, because other actors need its thread; "
                      "use then(), or spawn the mesh with .own_thread = true",
                      call, waiter)};
}

Error circle_error(std::string_view circle) {
  return {Errc::invalid_argument,
          fmt::format("{}: each waits for the answer of the next, and the last for itself; one of "
                      "them must use then(), or a Reply",
                      circle)};
}

Error full_error(std::string_view actor, bool must_not_wait) {
  return {
      Errc::overloaded,
      fmt::format("{}: {} messages of this process wait for its thread already{}", actor,
                  kLaneEntryCount,
                  must_not_wait ? ", and this thread may not wait; send it fewer at once"
                                : "; with CallOptions::wait_if_full, the sender waits for room")};
}

Error still_full_error(std::string_view actor) {
  return {
      Errc::timeout,
      fmt::format(
          "{}: {} messages of this process waited for its thread all the time; send it fewer at "
          "once, or set a longer CallOptions::timeout_s",
          actor, kLaneEntryCount)};
}

Error being_made_error(std::string_view actor) {
  return {
      Errc::overloaded,
      fmt::format("{} is being made again, and the sender may not wait for it; send the message "
                  "later",
                  actor)};
}

Error still_being_made_error(std::string_view actor) {
  return {Errc::timeout,
          fmt::format("{} is being made again, and wasn't there in time; set a longer "
                      "CallOptions::timeout_s",
                      actor)};
}

Error kept_too_many_error(std::string_view actor) {
  return {Errc::overloaded,
          fmt::format("{} is being made again, and {} messages wait for that, the most that may; "
                      "send it fewer meanwhile",
                      actor, kKeptMax)};
}

Error lost_call_error(std::string_view call, std::string_view process) {
  return {Errc::peer_lost,
          fmt::format("{}: {} died before it answered; the call may have run", call, process)};
}

Error system_ended_error() { return {Errc::cancelled, "the actor system has ended"}; }

Error too_many_calls_error() {
  return {Errc::overloaded,
          fmt::format("{} calls of this process wait for answers, the most that may: get() some of "
                      "them first",
                      kCallCountMax)};
}

Error unsendable_answer_error(std::string_view actor, const Error& why) {
  return {why.code(), fmt::format("{}: its answer: {}", actor, why.what())};
}

Error constructor_error(std::string_view actor, std::string_view text) {
  return {Errc::actor_failed, fmt::format("{}: its constructor threw: {}", actor, text)};
}

Error unmade_error(std::string_view actor, std::uint32_t slot, int pid, const Error& why) {
  return {why.code(),
          fmt::format("{}: process {} (pid {}) can't make it: {}", actor, slot, pid, why.what())};
}

Error no_endpoint_error(std::uint32_t endpoint) {
  return {Errc::version,
          fmt::format("it has no endpoint {}; both programs need the same build", endpoint)};
}

Error no_such_actor_error(std::uint32_t row, std::uint32_t count) {
  return {Errc::corrupt, fmt::format("a message refers to actor {}; there are {}", row, count)};
}

Error mesh_ended_error(std::string_view actor, std::uint8_t code, std::string_view text) {
  if (code == 0) return {Errc::cancelled, fmt::format("{} was stopped", actor)};
  // A mesh that ends together with its job was cancelled; otherwise one of its actors has failed.
  const bool is_cancelled = static_cast<Errc>(code) == Errc::cancelled;
  return {is_cancelled ? Errc::cancelled : Errc::actor_failed,
          fmt::format("{} has ended: {}", actor, text)};
}

Error no_answer_error(std::string_view call, double timeout_s, const UnansweredCall& why) {
  std::string text =
      why.replies_later ? "it hasn't begun, or its Reply wasn't sent" : "it hasn't begun";
  if (why.is_being_made) {
    text = "the actor is being made again";
  } else if (!why.shared_thread.empty()) {
    text = fmt::format(
        "{}, which runs the actor, has run {} for {:.1f} s; spawn its mesh with .own_thread = "
        "true, or set SystemOptions::threads higher",
        why.shared_thread, why.running, why.busy_s);
  } else if (!why.running.empty()) {
    text =
        fmt::format("{} has run for {:.1f} s; set a longer CallOptions::timeout_s to wait for it",
                    why.running, why.busy_s);
  }
  return {Errc::timeout, fmt::format("{}: no answer within {} s: {}", call, timeout_s, text)};
}

}  // namespace weft
