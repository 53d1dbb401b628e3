#include "actors/user/actor_process.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "actors/user/tensor_blocks.hpp"
#include "actors/user/waits.hpp"
#include "transport/memory/wait.hpp"

namespace weft::detail {
namespace {

/// The number of times that a thread looks for a message before it sleeps, together about 50 us;
/// see WaitPolicy.
constexpr int kSpins = 2000;
/// The time after which a call is tried again because its lane was full.
constexpr std::chrono::milliseconds kRetryAfter{1};

/// Throws corrupt unless the order is from the keeper and for a port at which actors may run.
void require_order(bool is_keepers, std::uint32_t port, std::uint32_t ports) {
  if (is_keepers && port != kReplyPort && port < ports) return;
  fail(Errc::corrupt, "{} orders a thread for port {} of {}",
       is_keepers ? "the keeper" : "another process", port, ports);
}

/// While it lives, the table shows for which call an actor waits.
class AwaitingActor {
 public:
  AwaitingActor(ActorTableRow& row, const AwaitedCall& call) : row_(row) {
    row_.awaited.store(call.word(), std::memory_order_seq_cst);
  }
  ~AwaitingActor() { row_.awaited.store(0, std::memory_order_relaxed); }
  AwaitingActor(const AwaitingActor&) = delete;
  AwaitingActor& operator=(const AwaitingActor&) = delete;

 private:
  ActorTableRow& row_;
};

}  // namespace

std::shared_ptr<ActorProcess> ActorProcess::join(PeerTable peers, ActorTable actors, PeerId self,
                                                 const ActorProcessOptions& options,
                                                 OnNews on_news) {
  auto members = std::make_shared<ActorMemory>(
      std::move(peers), std::move(actors), self,
      PeerMemoryOptions{.port_count = options.port_count, .heap_bytes = options.heap_bytes});
  std::shared_ptr<ActorProcess> process(
      new ActorProcess(std::move(members), options, std::move(on_news)));
  process->node_->set_on_lost([process = process.get()](const LaneHeading& heading) {
    if (op_of(heading) == ActorOp::tell) process->count_lost_tell();
  });
  process->actors().pipe_wait(self.slot).store(0);  // a killed process may have left a value
  process->replies_->start();
  for (std::uint32_t port = 1; port <= options.runners; ++port) process->start_runner(port);
  return process;
}

ActorProcess::ActorProcess(std::shared_ptr<ActorMemory> members, const ActorProcessOptions& options,
                           OnNews on_news)
    : members_(std::move(members)),
      node_(members_, &members_->node),
      tracer_(members_->actors, node_->self()),
      options_(options),
      system_key_(members_->actors.head().key),
      on_news_(std::move(on_news)),
      cores_(usable_cores()),
      calls_(node_->peers().own()),
      open_calls_(new std::atomic<std::uint32_t>[kActorCountMax]()),
      replies_(std::make_unique<Replies>(
          members_->peers, *node_,
          Replies::Hooks{
              .on_message = [this](InMessage message) { on_message(std::move(message)); },
              .on_deaths = [this] { on_deaths(); },
              .on_time = [this] { return on_time(); },
              .spins = [this] { return spins(); }})) {}

ActorProcess::~ActorProcess() { stop(); }

int ActorProcess::spins() const {
  const auto processes = members_->actors.head().processes.load(std::memory_order_relaxed);
  return static_cast<int>(processes) <= cores_ && cores_ > 1 ? kSpins : 0;
}

void ActorProcess::start_runner(std::uint32_t port) {
  const std::lock_guard lock(runners_mutex_);
  if (is_stopped_.load() || runners_.contains(port)) return;
  runners_.emplace(port, std::make_unique<Runner>(*this, port));
}

void ActorProcess::stop(const Error& why) {
  if (is_stopped_.exchange(true)) return;
  for (const auto& call : calls_.take_if([](const ActorCall&) { return true; })) {
    finish(*call, {.error = why});
  }
  std::map<std::uint32_t, std::vector<std::shared_ptr<ActorCall>>> parked;
  {
    const std::lock_guard lock(mutex_);
    parked.swap(parked_);
  }
  for (const auto& [row, calls] : parked) {
    for (const auto& call : calls) finish(*call, {.error = why});
  }
  replies_->kick();
  std::map<std::uint32_t, std::unique_ptr<Runner>> runners;
  {
    const std::lock_guard lock(runners_mutex_);
    runners.swap(runners_);
  }
  runners.clear();
  replies_->stop();
}

std::size_t ActorProcess::least_busy(const std::vector<ActorHandle>& actors) {
  static thread_local std::size_t last = 0;  // idle actors get calls in turn, because each search
                                             // begins at another one
  std::size_t best = ++last % actors.size();
  if (!is_stopped_.load()) replies_->look();  // updates open_calls_
  const auto open = [&](std::size_t i) {
    return open_calls_[row_of(actors[i].row)].load(std::memory_order_relaxed);
  };
  for (std::size_t step = 0; step < actors.size(); ++step) {
    const std::size_t i = (last + step) % actors.size();
    if (open(i) < open(best)) best = i;
  }
  return best;
}

// --- Meshes, for references to actors ---

ProcessPlace ActorProcess::place() const {
  const PeerId self = node_->self();
  const ActorTableHead& head = members_->actors.head();
  return {.system = members_->peers.system(),
          .slot = self.slot,
          .incarnation = self.incarnation,
          .host = head.host,
          .host_count = head.host_count};
}

bool ActorProcess::must_end(std::optional<std::uint32_t> row) const {
  return row ? members_->actors.position(*row).phase == ActorPhase::ended : is_stopped_.load();
}

MeshOfActors ActorProcess::mesh_of(std::uint32_t row) const {
  const ActorTable& table = members_->actors;
  if (row_of(row) >= table.row_count()) throw no_such_actor_error(row_of(row), table.row_count());
  const ActorTableRow& actor = table.row(row);
  const MeshTableRow& mesh = table.mesh(actor.mesh);
  MeshOfActors found{
      .name = mesh.name, .type = mesh.type, .first_row = row - actor.index, .count = mesh.count};
  std::atomic_thread_fence(std::memory_order_acquire);  // has() reads the turn after the texts
  if (!table.has(row)) throw ended_error(row);
  return found;
}

std::vector<MeshOfActors> ActorProcess::meshes() const {
  const ActorTable& table = members_->actors;
  std::vector<MeshOfActors> all;
  for (std::uint32_t m = 0; m < table.mesh_count(); ++m) {
    if (table.mesh(m).is_ended.load() != 0) continue;
    try {
      all.push_back(mesh_of(table.number(m, 0)));
    } catch (const Error&) {
      continue;  // the mesh has ended since, and a later one has its row
    }
  }
  return all;
}

LoanedTensor ActorProcess::loan(const TensorType& type) { return loan_tensor(node_, type); }

// --- Calls that wait for their actor ---

void ActorProcess::park(const std::shared_ptr<ActorCall>& call) {
  {
    const std::lock_guard lock(mutex_);
    parked_[call->what.row].push_back(call);
    has_parked_.store(true, std::memory_order_relaxed);
  }
  replies_->kick();
}

bool ActorProcess::is_parked(std::uint32_t row) {
  if (!has_parked_.load(std::memory_order_relaxed)) return false;
  const std::lock_guard lock(mutex_);
  return parked_.contains(row);
}

/// Returns whether a message can be sent to the actor without a wait.
bool ActorProcess::has_room(const ActorPosition& at) {
  try {
    return node_->sender(at.process, at.port)->waiting() < kLaneEntryCount;
  } catch (const Error&) {
    return false;  // its process has died, which the keeper will notice
  }
}

/// Sends the parked calls whose actors have been made. Ends those whose actors will never be made.
void ActorProcess::send_parked() {
  std::vector<std::uint32_t> rows;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [row, calls] : parked_) rows.push_back(row);
  }
  for (const std::uint32_t row : rows) {
    for (;;) {
      const ActorPosition at = actors().position(row);
      if (at.phase == ActorPhase::starting) break;
      std::shared_ptr<ActorCall> call;
      {
        const std::lock_guard lock(mutex_);
        const auto found = parked_.find(row);
        if (found == parked_.end()) break;
        if (found->second.empty()) {
          parked_.erase(found);
          has_parked_.store(!parked_.empty(), std::memory_order_relaxed);
          break;
        }
        call = found->second.front();
      }
      if (!call->is_done()) {
        if (at.phase != ActorPhase::alive) {
          finish(*call, {.error = ended_error(row)});
        } else if (!has_room(at) || !send_call(call, at.process, at.port, false)) {
          break;
        }
      }
      // If the process died while the call was being sent, the call has been parked again, at the
      // end. Only its first place is removed.
      const std::lock_guard lock(mutex_);
      auto& calls = parked_[row];
      if (!calls.empty() && calls.front() == call) calls.erase(calls.begin());
    }
  }
}

void ActorProcess::lose(const std::shared_ptr<ActorCall>& call) {
  if (call->what.op == ActorOp::call && call->what.endpoint.is_const && !call->was_lost) {
    call->was_lost = true;
    return park(call);
  }
  finish(*call, {.error = lost_call_error(name_of(*call), name_of(call->sent_to))});
}

// --- Ends of calls ---

bool ActorProcess::is_awaited(const Asked& asked) {
  const std::uint64_t number = asked.heading.call;
  return peers().is_alive(asked.by) &&
         node_->peers()
                 .current(asked.by.slot)
                 .call(static_cast<std::uint32_t>(number % kCallCountMax))
                 .load(std::memory_order_seq_cst) == number;
}

void ActorProcess::finish(ActorCall& call, Answer answer) {
  const auto code = static_cast<std::uint8_t>(answer.error ? answer.error->code() : Errc{});
  if (!call.finish(std::move(answer))) return;
  open_calls_[row_of(call.what.row)].fetch_sub(1, std::memory_order_relaxed);
  const std::uint64_t number = call.sent_as.load(std::memory_order_relaxed);
  if (number != 0 && call.what.op == ActorOp::call) {
    tracer_.answered(call.what.row, call.what.endpoint.index, number, call.what.from, code);
  }
}

void ActorProcess::end(ActorCall& call, Answer answer) {
  calls_.take(call);
  finish(call, std::move(answer));
  replies_->kick();
}

bool ActorProcess::wait(ActorCall& call, Clock::time_point time) {
  const ThreadRole& role = ThreadRole::current();
  if (!role.may_block) {  // refused even if the answer is already there
    throw may_not_wait_error(name_of(call),
                             role.actor ? role.host->name(*role.actor) : "a callback of then()");
  }
  const std::optional<ActorNumber> waiter = role.actor_in(*this);
  if (!waiter || call.is_done()) return replies_->wait(call, time);
  const bool waits_for_end = time == Clock::time_point::max();
  const AwaitedCall awaited{.row = row_of(call.what.row),
                            .endpoint = call.what.endpoint.index,
                            .number = waits_for_end ? calls_.number_of(call) : 0};
  const AwaitingActor awaiting(actors().row(*waiter), awaited);
  if (const std::string circle = circle_of_waits(*this, *waiter, awaited); !circle.empty()) {
    end(call, {.error = circle_error(circle)});
  }
  return replies_->wait(call, time);
}

void ActorProcess::on_message(InMessage message) {
  const ActorOp op = op_of(message.heading);
  const PeerId from = message.from;
  const LaneHeading heading = message.heading;
  std::shared_ptr<ActorCall> call;
  Answer answer;
  try {
    if (op == ActorOp::answer || op == ActorOp::error) {
      call = calls_.take(heading.call);
      if (call == nullptr) return drop_message(*node_, message);  // the call ended before
    }
    // While this process stops, the receiver of such news may be gone.
    if (call == nullptr && is_stopped_.load()) return drop_message(*node_, message);
    UnpackedMessage in(node_, std::move(message));
    MessageReader reader(in.body());
    switch (op) {
      case ActorOp::answer:
        answer.bytes.assign(in.body().begin(), in.body().end());
        answer.payloads = std::move(in.payloads());
        answer.process = this;
        break;
      case ActorOp::error: answer.error = get_error(reader); break;
      case ActorOp::joined:
      case ActorOp::leave:
        return on_news_(op, from, heading.target, heading.call, Error(Errc::io, ""));
      case ActorOp::run:
        require_order(from == keeper(), heading.target, options_.port_count);
        return start_runner(heading.target);
      case ActorOp::failed:
        return on_news_(op, from, heading.target, heading.call, get_error(reader));
      default: fail(Errc::corrupt, "process {} answers with kind {}", from.slot, heading.kind);
    }
  } catch (const Error& error) {
    if (call == nullptr) {
      logger("weft.worker")->warn("actors: a message was dropped: {}", error.what());
      return;
    }
    answer.error = error;
  } catch (const std::exception& error) {  // for example, a thread can't be started
    logger("weft.worker")->warn("actors: a message was dropped: {}", error.what());
    if (call == nullptr) return;
    answer.error = Error(Errc::io, error.what());
  }
  finish(*call, std::move(answer));
}

void ActorProcess::on_deaths() {
  const auto is_lost = [this](const ActorCall& call) { return !peers().is_alive(call.sent_to); };
  for (const auto& call : calls_.take_if(is_lost)) lose(call);
  const std::lock_guard lock(runners_mutex_);
  if (is_stopped_.load()) return;  // runners that are ending still read their ports
  for (std::uint32_t port = 1; port < options_.port_count; ++port) {
    if (runners_.contains(port)) continue;
    node_->settle(port, [this](const InMessage& message) { drop_message(*node_, message); });
  }
}

ActorProcess::Clock::time_point ActorProcess::on_time() {
  const std::uint32_t changes = actors().head().changes.load(std::memory_order_seq_cst);
  if (changes != seen_changes_) {
    seen_changes_ = changes;
    const std::lock_guard lock(runners_mutex_);
    for (const auto& [port, runner] : runners_) runner->request_stops();
  }
  send_parked();
  const Clock::time_point now = Clock::now();
  std::vector<std::shared_ptr<ActorCall>> expired = calls_.take_expired(now);
  Clock::time_point next = calls_.earliest();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [row, calls] : parked_) {
      std::erase_if(calls, [&](const std::shared_ptr<ActorCall>& call) {
        if (call->deadline > now) return false;
        expired.push_back(call);
        return true;
      });
      if (calls.empty()) continue;
      next = std::min(next, actors().position(row).phase == ActorPhase::alive
                                ? now + kRetryAfter
                                : calls.front()->deadline);
    }
  }
  for (const auto& call : expired) {
    finish(*call, {.error = timeout_error(*call)});
    replies_->kick();
  }
  return next;
}

}  // namespace weft::detail
