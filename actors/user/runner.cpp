#include "actors/user/runner.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include <weft/message/aggregate.hpp>
#include <weft/message/containers.hpp>
#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/user/actor_process.hpp"
#include "actors/user/late_reply.hpp"
#include "actors/user/registry.hpp"
#include "actors/user/waits.hpp"

namespace weft {
namespace {

/// The time that a function may take without a warning on a thread that several actors share.
constexpr std::uint64_t kLongNs = 1'000'000;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// While it lives, the table shows which function an actor runs, and since when.
class RunningFunction {
 public:
  RunningFunction(ActorTableRow& row, const ActorFunction& function, std::uint64_t call = 0)
      : row_(row) {
    row_.function.store(function.word(), std::memory_order_relaxed);
    row_.call.store(call, std::memory_order_relaxed);
    row_.begun.store(row_.begun.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    row_.since_ns.store(begin_ns_, std::memory_order_release);
  }
  std::uint64_t ns_so_far() const { return now_ns() - begin_ns_; }
  ~RunningFunction() { row_.since_ns.store(0, std::memory_order_release); }
  RunningFunction(const RunningFunction&) = delete;
  RunningFunction& operator=(const RunningFunction&) = delete;

 private:
  ActorTableRow& row_;
  const std::uint64_t begin_ns_ = now_ns();
};

}  // namespace

Runner::Runner(detail::ActorProcess& process, std::uint32_t port)
    : process_(&process), port_(port) {
  thread_ = start_job_thread(fmt::format("weft.actors.{}", port).c_str(), [this] { run(); });
}

Runner::~Runner() { stop(); }

void Runner::request_stops() {
  const std::lock_guard lock(mutex_);
  for (auto& [row, actor] : actors_) {
    if (process_->actors().position(row).phase == ActorPhase::ended) actor.stop.request_stop();
  }
}

void Runner::stop() {
  must_stop_.store(true);
  {
    const std::lock_guard lock(mutex_);
    for (auto& [row, actor] : actors_) actor.stop.request_stop();
  }
  process_->node()->port(port_).wake();
  if (thread_.joinable()) thread_.join();
}

void Runner::run() {
  const ThreadRoleScope role(
      {.may_block = true, .may_wait_for_room = true, .port = port_, .host = process_});
  LanePort& port = process_->node()->port(port_);
  process_->tracer().begin_thread(port_);
  functions_ = FunctionTrace(process_->tracer().writer());
  while (!must_stop_.load()) {
    if (take_one() || work_once()) continue;
    functions_.pause();
    port.wait(process_->spins(), std::chrono::seconds(1));
  }
  std::map<std::uint32_t, Actor> ended;
  {
    const std::lock_guard lock(mutex_);
    ended.swap(actors_);
  }
  for (auto& [row, actor] : ended) {
    for (const InMessage& message : actor.kept) {
      if (op_of(message.heading) == ActorOp::tell) process_->count_lost_tell();
      drop_message(*process_->node(), message);
    }
    actor.object.reset();  // destroyed before the context, to which it may refer
  }
}

bool Runner::take_one() {
  const std::shared_ptr<LaneNode>& node = process_->node();
  node->settle(port_, [this](InMessage message) { handle_from_dead(std::move(message)); });
  try {
    std::optional<InMessage> message = node->port(port_).take();
    if (!message) return false;
    handle(std::move(*message));
  } catch (const Error& error) {
    logger("weft.worker")->warn("actors: a message was dropped: {}", error.what());
  }
  return true;
}

/// Handles a message of a process that has died. Drops it if the process waited for an answer, runs
/// it otherwise.
void Runner::handle_from_dead(InMessage message) {
  if (op_of(message.heading) != ActorOp::tell) return drop_message(*process_->node(), message);
  try {
    handle(std::move(message));
  } catch (const Error& error) {
    logger("weft.worker")->warn("actors: a message was dropped: {}", error.what());
  }
}

void Runner::handle(InMessage&& message) {
  switch (op_of(message.heading)) {
    case ActorOp::make: return make(std::move(message));
    case ActorOp::end: return end(message);
    case ActorOp::call:
    case ActorOp::tell: break;
    default:
      drop_message(*process_->node(), message);
      fail(Errc::corrupt, "process {} sent an actor a message of kind {}", message.from.slot,
           message.heading.kind);
  }
  const auto found = actors_.find(message.heading.target);
  if (found == actors_.end()) return refuse(message);
  Actor& actor = found->second;
  if (actor.object != nullptr) return run_message(actor, std::move(message));
  if (actor.kept.size() < kKeptMax) {
    actor.kept.push_back(std::move(message));
  } else {
    refuse(message);
  }
}

void Runner::refuse(const InMessage& message) {
  drop_message(*process_->node(), message);
  const std::uint32_t row = message.heading.target;
  const Asked asked{.by = message.from, .heading = message.heading};
  if (row_of(row) >= process_->actors().row_count()) {
    return answer_error(asked, Error(Errc::corrupt, fmt::format("there is no actor {}", row)));
  }
  const Error why = actors_.contains(row) ? kept_too_many_error(process_->actors().name(row))
                                          : process_->ended_error(row);
  if (op_of(message.heading) == ActorOp::call) return answer_error(asked, why);
  process_->count_lost_tell();
  logger("weft.worker")->info("actors: a message that was told is lost: {}", why.what());
}

void Runner::run_message(Actor& actor, InMessage&& message) {
  const ActorOp op = op_of(message.heading);
  const std::uint32_t endpoint = endpoint_of(message.heading);
  const Asked asked{.by = message.from, .heading = message.heading};
  if (op == ActorOp::call && !process_->is_awaited(asked)) {
    return drop_message(*process_->node(), message);
  }
  const ActorFunction function{
      .kind = op == ActorOp::call ? ActorFunctionKind::call : ActorFunctionKind::tell,
      .caller = asked.by.slot,
      .endpoint = endpoint};
  const std::uint64_t begin = functions_.begin();
  MessageWriter result;
  std::optional<Error> error;
  std::shared_ptr<LateReply> later;
  try {
    const RunningFunction running(process_->actors().row(actor.row), function, asked.heading.call);
    const ThreadRoleScope role({.may_block = actor.own_thread,
                                .may_wait_for_room = actor.own_thread,
                                .port = port_,
                                .actor = actor.row,
                                .host = process_});
    UnpackedMessage in(process_->node(), std::move(message));
    const auto& endpoints = actor.type->parts().endpoints;
    if (endpoint >= endpoints.size()) throw no_endpoint_error(endpoint);
    MessageReader reader(in.body(), in.payloads(), process_);
    if (endpoints[endpoint].replies_later) {
      later = std::make_shared<LateReply>(process_->weak_from_this(), asked,
                                          endpoint_name(actor, endpoint));
    }
    endpoints[endpoint].run(actor.object.get(), reader, result, later);
    if (!actor.own_thread && actors_.size() > 1 && running.ns_so_far() > kLongNs) {
      warn_of_delay(actor, endpoint, running.ns_so_far());
    }
  } catch (...) {
    error.emplace(Errc::endpoint_failed,
                  fmt::format("{}: {}", endpoint_name(actor, endpoint), current_exception_text()));
  }
  if (later != nullptr && error) later->send_error(*error);
  if (op == ActorOp::call && later == nullptr) {
    error ? answer_error(asked, *error) : answer(asked, result);
  } else if (op == ActorOp::tell && error) {
    fail_actor(actor, error->what());
  }
  functions_.end(begin, {.function = function.kind,
                         .replies_later = later != nullptr,
                         .row = actor.row,
                         .endpoint = endpoint,
                         .peer = asked.by.slot,
                         .peer_incarnation = asked.by.incarnation,
                         .number = asked.heading.call});
}

/// Warns that an endpoint has blocked its thread for long; only once per endpoint of a class.
void Runner::warn_of_delay(const Actor& actor, std::uint32_t endpoint, std::uint64_t ns) {
  if (!warned_.emplace(actor.type, endpoint).second) return;
  logger("weft.worker")
      ->warn(
          "actors: {} took {:.1f} ms, and {} other actors that share its thread waited; spawn the "
          "mesh with .own_thread = true if that is usual",
          endpoint_name(actor, endpoint), static_cast<double>(ns) * 1e-6, actors_.size() - 1);
}

void Runner::run_kept(Actor& actor) {
  while (actor.object != nullptr && !actor.kept.empty()) {
    InMessage message = std::move(actor.kept.front());
    actor.kept.pop_front();
    run_message(actor, std::move(message));
  }
}

bool Runner::work_once() {
  const auto can_work = [](const auto& entry) {
    const Actor& actor = entry.second;
    return actor.object != nullptr && actor.type->parts().work != nullptr &&
           !actor.stop.stop_requested();
  };
  auto next = std::find_if(actors_.upper_bound(last_worker_), actors_.end(), can_work);
  if (next == actors_.end()) next = std::ranges::find_if(actors_, can_work);
  if (next == actors_.end()) return false;
  Actor& actor = next->second;
  last_worker_ = actor.row;
  const std::uint64_t begin = functions_.begin();
  try {
    const RunningFunction running(process_->actors().row(actor.row),
                                  {.kind = ActorFunctionKind::work});
    const ThreadRoleScope role({.may_block = true,
                                .may_wait_for_room = true,
                                .port = port_,
                                .actor = actor.row,
                                .host = process_});
    actor.type->parts().work(actor.object.get());
    functions_.end_work(begin, actor.row);
  } catch (...) {
    functions_.end_work(begin, actor.row);
    if (actor.stop.stop_requested()) return true;  // the stop cancelled a call in work()
    fail_actor(actor, fmt::format("{}.work: {}", process_->actors().name(actor.row),
                                  current_exception_text()));
  }
  return true;
}

void Runner::make(InMessage&& message) {
  const std::uint32_t row = message.heading.target;
  const Asked asked{.by = message.from, .heading = message.heading};
  ActorTable& table = process_->actors();
  if (!table.has(row)) {
    drop_message(*process_->node(), message);
    fail(Errc::corrupt, "process {} orders an actor {}, which doesn't exist", asked.by.slot, row);
  }
  Actor* made = nullptr;
  const std::uint64_t begin = functions_.begin();
  const CallEvent made_event{.function = ActorFunctionKind::make, .row = row};
  try {
    UnpackedMessage in(process_->node(), std::move(message));
    MessageReader reader(in.body());
    const auto order = MessageCodec<MakeOrder>::get(reader);
    reader.finish();
    const MeshTableRow& mesh = table.mesh(table.row(row).mesh);
    std::shared_ptr<void> before;
    {
      const std::lock_guard lock(mutex_);
      made = &actors_[row];
      before.swap(made->object);
      made->stop = {};
    }
    before.reset();
    made->context.reset();
    made->row = row;
    try {
      made->type = &find_actor_class(order.type);
    } catch (const Error& error) {
      const std::uint32_t self = process_->node()->self().slot;
      return answer_error(asked, unmade_error(table.name(row), self, getpid(), error));
    }
    made->own_thread = order.own_thread;
    const ActorPosition position = table.position(row);
    const std::uint32_t index = table.row(row).index;
    made->context = std::make_unique<ActorContext>(
        ActorContext::Facts{
            .mesh = mesh.name,
            .index = static_cast<int>(index),
            .count = static_cast<int>(mesh.count),
            .incarnation = position.incarnation,
            .seed = actor_seed(order.seed, table.row(row).mesh + turn_of(row) * kMeshCountMax,
                               index, position.incarnation),
            .config = nlohmann::json::parse(order.config),
            .job = order.job},
        made->stop.get_token(), process_->shared_from_this());
    table.row(row).tid.store(gettid(), std::memory_order_relaxed);
    table.row(row).awaited.store(0, std::memory_order_relaxed);  // a killed process may have left a
                                                                 // value
    const RunningFunction running(table.row(row), {.kind = ActorFunctionKind::make});
    const ThreadRoleScope role({.may_block = made->own_thread,
                                .may_wait_for_room = made->own_thread,
                                .port = port_,
                                .actor = row,
                                .host = process_});
    made->object = made->type->parts().make(*made->context);
  } catch (...) {
    answer_error(asked, constructor_error(table.name(row), current_exception_text()));
    return functions_.end(begin, made_event);
  }
  answer(asked, MessageWriter());
  functions_.end(begin, made_event);
  run_kept(*made);
}

void Runner::end(const InMessage& message) {
  const std::uint32_t row = message.heading.target;
  Actor ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = actors_.find(row);
    if (found != actors_.end()) {
      ended = std::move(found->second);
      actors_.erase(found);
    }
  }
  ended.object.reset();
  functions_.pause();
  for (const InMessage& each : ended.kept) refuse(each);
  answer({.by = message.from, .heading = message.heading}, MessageWriter());
  drop_message(*process_->node(), message);
}

/// Destroys a failed actor and tells the keeper, which makes it again or ends its mesh.
void Runner::fail_actor(Actor& actor, const std::string& why) {
  actor.object.reset();
  actor.context.reset();
  process_->report_failure(actor.row, Error(Errc::actor_failed, why));
}

void Runner::answer(const Asked& asked, const MessageWriter& value) {
  process_->answer(asked, ActorOp::answer, value);
}

void Runner::answer_error(const Asked& asked, const Error& error) {
  MessageWriter body;
  put_error(body, error);
  process_->answer(asked, ActorOp::error, body);
}

std::string Runner::endpoint_name(const Actor& actor, std::uint32_t endpoint) const {
  const auto& endpoints = actor.type->parts().endpoints;
  return fmt::format("{}.{}", process_->actors().name(actor.row),
                     endpoint < endpoints.size() ? endpoints[endpoint].name : "?");
}

}  // namespace weft
