#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "actors/user/actor_process.hpp"
#include "actors/user/tensor_blocks.hpp"
#include "actors/user/waits.hpp"
#include "transport/memory/wait.hpp"

namespace weft::detail {
namespace {

/// The time that an answer waits for room in the lane of a program that has attached.
constexpr std::chrono::seconds kAttachedTakesWithin{1};

}  // namespace

void ActorProcess::send(PeerId to, std::uint32_t port, const LaneHeading& heading,
                        const MessageWriter& body, bool wait_if_full, SendLimit& limit) {
  const PackedMessage packed(node_, body);
  if (packed.copies() > 0) {
    actors().head().copied_tensors.fetch_add(packed.copies(), std::memory_order_relaxed);
  }
  const std::shared_ptr<LaneSender> sender = node_->sender(to, port);
  const OutMessage message{.heading = heading, .body = packed.body(), .blocks = packed.blocks()};
  const ActorOp op = op_of(heading);
  const bool is_news =
      op == ActorOp::joined || op == ActorOp::failed || op == ActorOp::leave || op == ActorOp::run;
  while (!sender->send(message, is_news ? Ring::always : Ring::if_asleep)) {
    const ThreadRole& role = ThreadRole::current();
    const bool is_own_port =
        role.host == this && to == node_->self() && port == role.port && port != kReplyPort;
    if (!wait_if_full || !role.may_wait_for_room || is_own_port) {
      throw full_error(actors().name(heading.target), wait_if_full);
    }
    if (limit.is_over()) throw still_full_error(actors().name(heading.target));
    if (is_stopped_.load()) throw system_ended_error();
    if (!peers().is_alive(to)) fail(Errc::peer_lost, "process {} has died", to.slot);
    sender->wait_for_room(spins(), kSleepSlice);
  }
}

bool ActorProcess::send_call(const std::shared_ptr<ActorCall>& call, PeerId to, std::uint32_t port,
                             bool wait_if_full) {
  if (!peers().is_alive(to)) return false;
  std::uint64_t number = 0;
  try {
    const Calls::Begun begun = calls_.begin(call, to);
    number = begun.number;
    if (begun.is_earliest) replies_->kick();
    if (call->what.op == ActorOp::call) {
      tracer_.called(call->what.row, call->what.endpoint.index, number, call->what.from);
    }
    const LaneHeading heading =
        heading_of(call->what.op, number, call->what.row, call->what.endpoint.index);
    SendLimit limit(call->deadline);
    send(to, port, heading, call->message, wait_if_full, limit);
  } catch (const Error& error) {
    calls_.take(*call);
    if (error.code() == Errc::peer_lost) return false;
    finish(*call, {.error = error});
    return true;
  }
  // If the process died meanwhile, on_deaths() may have looked for lost calls before this one was
  // there.
  if (!peers().is_alive(to)) {
    if (const auto lost = calls_.take(number)) lose(lost);
  }
  return true;
}

std::shared_ptr<PendingCall> ActorProcess::begin(std::uint32_t row, EndpointId endpoint,
                                                 MessageWriter arguments,
                                                 const CallOptions& options) {
  const double timeout_s = options.timeout_s > 0 ? options.timeout_s : options_.call_timeout_s;
  auto call = std::make_shared<ActorCall>(
      shared_host(),
      ActorCall::What{.op = ActorOp::call,
                      .row = row,
                      .endpoint = endpoint,
                      .from = CallTracer::caller(ThreadRole::current().actor_in(*this))},
      std::move(arguments), SendLimit::deadline_after(timeout_s), timeout_s);
  open_calls_[row_of(row)].fetch_add(1, std::memory_order_relaxed);
  call->cancel_on(options.stop);
  submit(call, options.wait_if_full);
  return call;
}

void ActorProcess::submit(const std::shared_ptr<ActorCall>& call, bool wait_if_full) {
  const std::uint32_t row = call->what.row;
  if (call->is_done()) return;
  if (is_stopped_.load()) {
    return finish(*call, {.error = system_ended_error()});
  }
  const ActorPosition at = actors().position(row);
  if (at.phase == ActorPhase::alive && !is_parked(row) &&
      send_call(call, at.process, at.port, wait_if_full)) {
    return;
  }
  if (at.phase == ActorPhase::alive || at.phase == ActorPhase::starting) return park(call);
  finish(*call, {.error = ended_error(row)});
}

std::shared_ptr<ActorCall> ActorProcess::order(ActorOp op, std::uint32_t row, PeerId to,
                                               std::uint32_t port, const MessageWriter& body,
                                               double timeout_s) {
  auto call = std::make_shared<ActorCall>(shared_host(), ActorCall::What{.op = op, .row = row},
                                          body, SendLimit::deadline_after(timeout_s), timeout_s);
  open_calls_[row_of(row)].fetch_add(1, std::memory_order_relaxed);
  if (!send_call(call, to, port, false)) {
    finish(*call, {.error = Error(Errc::peer_lost,
                                  fmt::format("{}: its process has died", actors().name(row)))});
  }
  return call;
}

void ActorProcess::tell(std::uint32_t row, EndpointId endpoint, const MessageWriter& body,
                        const CallOptions& options) {
  SendLimit limit(options.timeout_s > 0 ? options.timeout_s : options_.call_timeout_s);
  const std::uint64_t number =
      tracer_.told(row, endpoint.index, CallTracer::caller(ThreadRole::current().actor_in(*this)));
  for (;;) {
    if (is_stopped_.load()) throw system_ended_error();
    const std::uint32_t changes = actors().head().changes.load(std::memory_order_seq_cst);
    const ActorPosition at = actors().position(row);
    if (at.phase != ActorPhase::alive && at.phase != ActorPhase::starting) throw ended_error(row);
    if (at.phase == ActorPhase::alive && !is_parked(row)) {
      try {
        return send(at.process, at.port, heading_of(ActorOp::tell, number, row, endpoint.index),
                    body, options.wait_if_full, limit);
      } catch (const Error& error) {
        if (error.code() != Errc::peer_lost) throw;
      }
    }
    if (!options.wait_if_full || !ThreadRole::current().may_wait_for_room) {
      throw being_made_error(actors().name(row));
    }
    if (limit.is_over()) throw still_being_made_error(actors().name(row));
    sleep_on(actors().head().changes, changes, kSleepSlice);
  }
}

void ActorProcess::send_answer(const Asked& asked, ActorOp op, const MessageWriter& value) {
  tracer_.replied(asked);
  answer(asked, op, value);
}

void ActorProcess::answer(const Asked& asked, ActorOp op, const MessageWriter& value) {
  const ThreadRoleScope role({.may_block = false, .may_wait_for_room = true});
  const std::uint32_t row = asked.heading.target;
  const PeerRole taker = peers().role(asked.by.slot);
  if (taker == PeerRole::leaving) return;
  const bool is_attached = taker == PeerRole::attached;
  std::atomic<bool>& is_slow = slow_takers_[asked.by.slot];
  SendLimit limit(is_attached ? Clock::now() + kAttachedTakesWithin : Clock::time_point::max());
  try {
    const bool waits = !is_attached || !is_slow.load(std::memory_order_relaxed);
    send(asked.by, kReplyPort, heading_of(op, asked.heading.call, row), value, waits, limit);
    if (is_attached) is_slow.store(false, std::memory_order_relaxed);
  } catch (const Error& error) {
    if (error.code() == Errc::peer_lost || error.code() == Errc::cancelled) return;
    if (error.code() == Errc::timeout || error.code() == Errc::overloaded) {
      // A stopped program must not block the actors of others, so the answer is dropped.
      if (!is_slow.exchange(true)) {
        logger("weft.worker")
            ->warn("actors: the attached program in slot {} takes no answers; they are dropped",
                   asked.by.slot);
      }
      return;
    }
    if (op == ActorOp::error) throw;
    MessageWriter body;  // the value is too long, or there is no memory for it
    put_error(body, unsendable_answer_error(actors().name(row), error));
    answer(asked, ActorOp::error, body);
  }
}

PeerId ActorProcess::keeper() const {
  return {.slot = kKeeperSlot, .incarnation = members_->peers.life(kKeeperSlot).incarnation};
}

void ActorProcess::report_failure(std::uint32_t row, const Error& error) {
  MessageWriter body;
  put_error(body, error);
  const ThreadRoleScope role({.may_block = false, .may_wait_for_room = true});
  SendLimit limit(Clock::time_point::max());
  send(keeper(), kReplyPort, heading_of(ActorOp::failed, actors().position(row).incarnation, row),
       body, true, limit);
}

void ActorProcess::report_joined(std::uint64_t job, std::uint32_t worker) {
  SendLimit limit(Clock::time_point::max());
  send(keeper(), kReplyPort, heading_of(ActorOp::joined, job, worker), MessageWriter(), true,
       limit);
}

void ActorProcess::report_leaving() {
  peers().set_leaving(node_->self().slot);
  if (!tell_process(keeper(), ActorOp::leave)) {
    logger("weft.worker")->warn("actors: the keeper isn't told that this process leaves");
  }
}

bool ActorProcess::tell_process(PeerId process, ActorOp op, std::uint32_t port) {
  SendLimit limit(Clock::time_point::max());
  try {
    send(process, kReplyPort, heading_of(op, 0, port), MessageWriter(), false, limit);
    return true;
  } catch (const Error& error) {
    logger("weft.worker")
        ->info("actors: a message of kind {} to process {} can't be sent now: {}",
               static_cast<int>(op), process.slot, error.what());
    return false;
  }
}

}  // namespace weft::detail
