#include "actors/user/late_reply.hpp"

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"

namespace weft {

/// Returns the process through which to answer. Returns null if nobody waits for an answer, or if
/// the call was answered before.
std::shared_ptr<detail::ActorHost> LateReply::process_that_answers() {
  if (op_of(asked_.heading) != ActorOp::call || is_answered_.exchange(true)) return nullptr;
  return process_.lock();
}

void LateReply::send(const MessageWriter& value) {
  if (const auto process = process_that_answers()) {
    process->send_answer(asked_, ActorOp::answer, value);
  }
}

void LateReply::fail(const std::string& why) {
  send_error(Error(Errc::endpoint_failed, fmt::format("{}: {}", endpoint_, why)));
}

void LateReply::send_error(const Error& error) {
  const auto process = process_that_answers();
  if (process == nullptr) return;
  try {
    MessageWriter body;
    put_error(body, error);
    process->send_answer(asked_, ActorOp::error, body);
  } catch (const Error& failure) {  // fail() may be called by a destructor, so it must not throw
    logger("weft.worker")->warn("actors: {}: its answer is lost: {}", endpoint_, failure.what());
  }
}

bool LateReply::is_awaited() const {
  const auto process = process_.lock();
  return process != nullptr && !is_answered_.load() && op_of(asked_.heading) == ActorOp::call &&
         process->is_awaited(asked_);
}

}  // namespace weft
