#include "actors/relay/stand_in.hpp"

#include <algorithm>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/table/actor_protocol.hpp"
#include "actors/user/tensor_blocks.hpp"

namespace weft {
namespace {

constexpr std::chrono::milliseconds kLookAgain{100};

}  // namespace

StandIn::StandIn(PeerTable& peers, ActorTable& actors, const PeerFacts& facts,
                 std::size_t heap_bytes, Forward forward)
    : peers_(&peers), actors_(&actors), facts_(facts), forward_(std::move(forward)) {
  node_ = std::make_shared<LaneNode>(
      peers, facts.peer,
      PeerMemoryOptions{.port_count = facts.ports, .heap_bytes = heap_bytes, .has_one_bell = true});
  peers.set_pid(facts.peer.slot, 0);  // the pid of the process is valid only on its own host
  node_->set_on_lost([actors = actors_](const LaneHeading& heading) {
    if (op_of(heading) == ActorOp::tell) actors->head().lost_tells.fetch_add(1);
  });
  sent_.resize(facts.ports);
  thread_ =
      start_job_thread(fmt::format("weft.relay.{}", facts.peer.slot).c_str(), [this] { run(); });
}

StandIn::~StandIn() { stop(); }

void StandIn::stop() {
  if (must_stop_.exchange(true)) return;
  node_->port(kReplyPort).wake();
  if (thread_.joinable()) thread_.join();
  std::uint64_t lost = 0;
  const std::lock_guard lock(mutex_);
  for (std::deque<ActorOp>& sent : sent_) {
    lost += static_cast<std::uint64_t>(std::ranges::count(sent, ActorOp::tell));
    sent.clear();
  }
  actors_->head().lost_tells.fetch_add(lost, std::memory_order_relaxed);
}

// --- From this host's processes to the process ---

void StandIn::run() {
  LanePort& bell = node_->port(kReplyPort);
  while (!must_stop_.load()) {
    if (take_some()) continue;
    const std::uint32_t seen = bell.rings();
    bell.listen();
    if (!must_stop_.load() && !take_some()) bell.sleep(seen, kLookAgain);
    bell.attend();
  }
}

/// Forwards the messages that may be forwarded now. Returns whether there was any.
bool StandIn::take_some() {
  bool has_taken = false;
  for (std::uint32_t port = 0; port < node_->port_count(); ++port) {
    node_->settle(port, [this](const InMessage& message) { lose(message); });
    while (!must_stop_.load() && node_->port(port).has_news() && may_take(port)) {
      try {
        std::optional<InMessage> message = node_->port(port).take();
        if (!message) break;
        has_taken = true;
        forward(port, std::move(*message));
      } catch (const Error& error) {
        logger("weft.worker")
            ->warn("actors: a message to host {} was dropped: {}", facts_.host, error.what());
      }
    }
  }
  return has_taken;
}

bool StandIn::may_take(std::uint32_t port) {
  const std::lock_guard lock(mutex_);
  // The bytes of answers aren't limited: a caller may be a process for which others wait, so all
  // could stop if a full window held its answer back.
  return sent_[port].size() < kWindow && (port == kReplyPort || bytes_away_ < kWindowBytes);
}

/// Drops a message whose sender has died: nobody waits for an answer, and the other host no longer
/// delivers messages in the sender's name.
void StandIn::lose(const InMessage& message) {
  if (op_of(message.heading) == ActorOp::tell) {
    actors_->head().lost_tells.fetch_add(1, std::memory_order_relaxed);
  }
  drop_message(*node_, message);
}

void StandIn::forward(std::uint32_t port, InMessage&& message) {
  const ActorOp op = op_of(message.heading);
  auto frame = std::make_unique<HostFrame>();
  frame->head = {.kind = FrameKind::message,
                 .from = message.from,
                 .to = facts_.peer,
                 .heading = message.heading,
                 .port = port};
  if (op == ActorOp::call) note_call(message);
  if (op == ActorOp::answer || op == ActorOp::error) forget_call(message.heading.call);
  const auto unpacked = std::make_shared<UnpackedMessage>(node_, std::move(message));
  for (const MessagePayload& payload : unpacked->payloads())
    frame->tensors.push_back(payload.bytes);
  const std::size_t size_bytes = frame->tensors.size() * sizeof(std::uint64_t);
  frame->bytes.resize(size_bytes);
  for (std::size_t i = 0; i < frame->tensors.size(); ++i) {
    const std::uint64_t size = frame->tensors[i].size();
    std::memcpy(frame->bytes.data() + i * sizeof(size), &size, sizeof(size));
  }
  frame->bytes.insert(frame->bytes.end(), unpacked->body().begin(), unpacked->body().end());
  if (!frame->tensors.empty()) frame->keeps = unpacked;
  {
    const std::lock_guard lock(mutex_);
    sent_[port].push_back(op);
    if (port != kReplyPort) bytes_away_ += frame->tensor_bytes();
  }
  forward_(std::move(frame));
}

void StandIn::credit(std::uint32_t port, std::uint32_t messages, std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (port >= sent_.size()) return;
    std::deque<ActorOp>& sent = sent_[port];
    sent.erase(sent.begin(), sent.begin() + static_cast<std::ptrdiff_t>(
                                                std::min<std::size_t>(messages, sent.size())));
    if (port != kReplyPort) bytes_away_ -= std::min(bytes_away_, bytes);
  }
  node_->port(kReplyPort).wake();
}

void StandIn::note_call(const InMessage& message) {
  const std::lock_guard lock(mutex_);
  open_calls_.emplace(message.from.word(), message.heading.call);
}

void StandIn::tell_cancels() {
  std::vector<CallOf> cancelled;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(open_calls_, [&](const CallOf& open) {
      const PeerId caller = PeerId::of(open.first);
      if (!peers_->is_alive(caller)) return true;
      const auto index = static_cast<std::uint32_t>(open.second % kCallCountMax);
      if (node_->peers().current(caller.slot).call(index).load() == open.second) return false;
      cancelled.push_back(open);
      return true;
    });
  }
  for (const CallOf& each : cancelled) {
    auto frame = std::make_unique<HostFrame>();
    frame->head = {.kind = FrameKind::cancel,
                   .from = PeerId::of(each.first),
                   .to = facts_.peer,
                   .heading = {.call = each.second}};
    forward_(std::move(frame));
  }
}

// --- From the process to this host's processes ---

std::vector<BlockId> StandIn::allocate(const std::vector<std::uint64_t>& sizes) const {
  std::vector<BlockId> blocks;
  try {
    for (const std::uint64_t size : sizes) {
      blocks.push_back(node_->blocks().allocate(std::max<std::size_t>(size, 1)));
    }
  } catch (...) {
    for (const BlockId block : blocks) node_->blocks().release(block);
    throw;
  }
  return blocks;
}

std::atomic<std::uint64_t>& StandIn::call_word(std::uint64_t call) const {
  return node_->peers().own().call(static_cast<std::uint32_t>(call % kCallCountMax));
}

/// Stores a call only when it arrives: later, when the frame is tried again, a newer call may use
/// the same word.
void StandIn::note_arrival(const ArrivingFrame& frame) {
  const std::uint64_t call = frame.head.heading.call;
  const ActorOp op = op_of(frame.head.heading);
  const bool is_call = op == ActorOp::call || op == ActorOp::make || op == ActorOp::end;
  if (is_call) call_word(call).store(call, std::memory_order_seq_cst);
}

bool StandIn::deliver(const ArrivingFrame& frame) {
  const FrameHead& head = frame.head;
  const std::vector<std::byte> body = body_with_places(frame.body, frame.sizes);
  const std::shared_ptr<LaneSender> sender = node_->sender(head.to, head.port);
  const ActorOp op = op_of(head.heading);
  if (op == ActorOp::answer || op == ActorOp::error) {
    const std::lock_guard lock(mutex_);
    open_calls_.erase({head.to.word(), head.heading.call});
  }
  const bool is_news =
      op == ActorOp::joined || op == ActorOp::failed || op == ActorOp::leave || op == ActorOp::run;
  const OutMessage message{.heading = head.heading, .body = body, .blocks = frame.blocks};
  if (!sender->send(message, is_news ? Ring::always : Ring::if_asleep)) {
    sender->wait_for_room(0, std::chrono::nanoseconds(0));  // rings the receiver
    return false;
  }
  drop(frame);
  return true;
}

void StandIn::drop(const ArrivingFrame& frame) const {
  for (const BlockId block : frame.blocks) node_->blocks().release(block);
}

void StandIn::forget_call(std::uint64_t call) {
  std::uint64_t expected = call;
  call_word(call).compare_exchange_strong(expected, 0, std::memory_order_seq_cst);
}

}  // namespace weft
