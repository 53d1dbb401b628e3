#include "actors/relay/host_relay.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"
#include "actors/protocol/host_messages.hpp"
#include "actors/relay/meeting.hpp"
#include "actors/table/actor_protocol.hpp"

namespace weft {
namespace {

constexpr std::chrono::seconds kBeatInterval{1};
constexpr std::chrono::milliseconds kLookInterval{100};
constexpr std::chrono::milliseconds kBusyInterval{20};
/// The time after which a message whose lane was full is tried again.
constexpr std::chrono::milliseconds kRetryAfter{1};
/// Credits for this many messages or bytes are sent at once, the others every kLookInterval.
constexpr std::uint32_t kCreditMessages = StandIn::kWindow / 4;
constexpr std::uint64_t kCreditBytes = StandIn::kWindowBytes / 4;
constexpr std::chrono::seconds kLinger{2};

}  // namespace

HostRelay::HostRelay(PeerTable& peers, ActorTable& actors, RelayOptions options, Hooks hooks)
    : peers_(&peers), actors_(&actors), options_(std::move(options)), hooks_(std::move(hooks)) {}

HostRelay::~HostRelay() {
  const Clock::time_point deadline = Clock::now() + kLinger;
  const auto has_unsent = [&] {
    return std::ranges::any_of(links(), [](const auto& each) { return each->link->has_unsent(); });
  };
  while (thread_.joinable() && has_unsent() && Clock::now() < deadline) {
    ::poll(nullptr, 0, 1);  // meanwhile, the thread sends
  }
  must_stop_.store(true);
  wake_.wake();
  if (thread_.joinable()) thread_.join();
  for (const auto& each : links()) each->link->end("this host has ended");
  std::map<std::uint32_t, std::shared_ptr<StandIn>> stand_ins;
  {
    const std::lock_guard lock(mutex_);
    stand_ins.swap(stand_ins_);
  }
}

void HostRelay::start() {
  last_turn_ = Clock::now();
  thread_ = start_job_thread("weft.hosts", [this] { run(); });
}

// --- Links ---

void HostRelay::add_link(int host, TlsSession session) {
  auto linked = std::make_shared<Linked>();
  linked->link = std::make_shared<LaneLink>(host, std::move(session));
  linked->heard = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    links_.insert_or_assign(host, std::move(linked));
  }
  wake_.wake();
}

void HostRelay::open_door(std::unique_ptr<WireDoor> door, std::uint64_t generation) {
  {
    const std::lock_guard lock(mutex_);
    door_ = std::move(door);
    generation_ = generation;
  }
  wake_.wake();
}

void HostRelay::close_door() {
  const std::lock_guard lock(mutex_);
  door_.reset();
}

bool HostRelay::has_link(int host) const {
  const std::lock_guard lock(mutex_);
  return links_.contains(host);
}

void HostRelay::drop(int host, const std::string& why) {
  std::shared_ptr<Linked> dropped;
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(host);
    if (found == links_.end()) return;
    dropped = std::move(found->second);
    links_.erase(found);
  }
  dropped->link->end(why);
  wake_.wake();
}

void HostRelay::set_silence_max(int host, std::chrono::nanoseconds silence_max) {
  const std::lock_guard lock(mutex_);
  const auto found = links_.find(host);
  if (found != links_.end()) found->second->silence_max = silence_max;
}

std::vector<std::shared_ptr<HostRelay::Linked>> HostRelay::links() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Linked>> all;
  for (const auto& [host, linked] : links_) all.push_back(linked);
  return all;
}

/// Adds links to the hosts whose greeting has succeeded.
void HostRelay::admit() {
  std::vector<std::pair<int, TlsSession>> admitted;
  {
    const std::lock_guard lock(mutex_);
    if (door_ == nullptr) return;
    const auto check = [&](const WirePreamble& received) {
      return answer_to_host(received, options_.system, generation_, options_.host,
                            options_.host_count, [&](int host) { return links_.contains(host); });
    };
    door_->progress(check, [&](const WirePreamble& received, TlsSession session) {
      admitted.emplace_back(static_cast<int>(received.from.host), std::move(session));
    });
  }
  for (auto& [host, session] : admitted) {
    if (!has_link(host)) add_link(host, std::move(session));
  }
}

void HostRelay::send_frame(int host, std::unique_ptr<HostFrame> frame) {
  std::shared_ptr<LaneLink> link;
  {
    const std::lock_guard lock(mutex_);
    const auto found = links_.find(host);
    if (found != links_.end()) link = found->second->link;
  }
  if (link == nullptr) return;  // the host is lost, as the keeper will report
  frame->head.obeyed = obeyed_.load();
  if (!link->send(std::move(frame))) wake_.wake();
}

void HostRelay::send(int host, HostOp op, const MessageWriter& body) {
  auto frame = std::make_unique<HostFrame>();
  frame->head = {.kind = FrameKind::order, .heading = {.kind = static_cast<std::uint32_t>(op)}};
  frame->bytes.assign(body.bytes().begin(), body.bytes().end());
  send_frame(host, std::move(frame));
}

void HostRelay::send_all(HostOp op, const MessageWriter& body) {
  const std::lock_guard lock(order_mutex_);
  for (const auto& each : links()) send(each->link->host(), op, body);
}

// --- The thread ---

void HostRelay::run() {
  while (!must_stop_.load()) {
    wake_.clear();
    const Clock::time_point now = Clock::now();
    admit();
    bool has_more = false;
    for (const auto& linked : links()) has_more |= take_from(*linked);
    deliver_waiting();
    look_at_links(now);
    const bool is_busy = hooks_.on_tick && hooks_.on_tick();
    if (now >= next_look_) {
      next_look_ = now + kLookInterval;
      std::vector<std::shared_ptr<StandIn>> all;
      {
        const std::lock_guard lock(mutex_);
        for (const auto& [slot, each] : stand_ins_) all.push_back(each);
      }
      for (const auto& each : all) {
        try {
          each->tell_cancels();
        } catch (const Error&) {
          continue;  // memory can't be mapped now; the next check tries again
        }
      }
      tell_credits();
    }
    if (now >= next_beat_) beat();
    if (has_more) continue;
    wait(!waiting_.empty() ? kRetryAfter : is_busy ? kBusyInterval : kLookInterval);
  }
}

void HostRelay::wait(std::chrono::milliseconds longest) {
  events_.assign(1, {.fd = wake_.fd(), .events = POLLIN, .revents = 0});
  {
    const std::lock_guard lock(mutex_);
    if (door_ != nullptr) door_->add_events(events_);
  }
  for (const auto& linked : links()) {
    if (linked->link->is_held()) {
      longest = std::min(longest, kRetryAfter);  // its unread bytes would end the wait at once
    } else {
      linked->link->add_events(events_);
    }
  }
  ::poll(events_.data(), events_.size(), static_cast<int>(longest.count()));
}

/// Takes the frames that have arrived over a link. Returns whether more may be ready.
bool HostRelay::take_from(Linked& linked) {
  LaneLink& link = *linked.link;
  const auto may_take = [&](const FrameHead& head) {
    return options_.host == 0 || link.host() == 0 || head.obeyed <= obeyed_.load();
  };
  const auto allocate = [&](ArrivingFrame& frame) { return this->allocate(link.host(), frame); };
  try {
    for (int count = 0; count < static_cast<int>(StandIn::kWindow); ++count) {
      auto frame = link.take(may_take, allocate);
      if (!frame) return link.has_more();
      handle(link.host(), std::move(*frame));
    }
    return true;
  } catch (const std::exception& error) {  // bytes of another host must not end this host
    link.end(error.what());
    return false;
  }
}

void HostRelay::handle(int host, ArrivingFrame&& frame) {
  const FrameHead& head = frame.head;
  switch (head.kind) {
    case FrameKind::beat: return;
    case FrameKind::order:
      return hooks_.on_order(host, static_cast<HostOp>(head.heading.kind), frame.body);
    case FrameKind::credit:
      if (const auto to = stand_in_of(host, head.to)) {
        to->credit(head.port, head.heading.target, head.heading.call);
      }
      return;
    case FrameKind::cancel:
      if (const auto from = stand_in_of(host, head.from)) from->forget_call(head.heading.call);
      return;
    case FrameKind::message: return handle_message(host, std::move(frame));
  }
}

// --- Messages to processes of this host ---

void HostRelay::handle_message(int host, ArrivingFrame&& frame) {
  if (const auto from = stand_in_of(host, frame.head.from)) from->note_arrival(frame);
  if (!frame.why_dropped.empty()) {
    note_taken(host, frame);
    return refuse(host, frame, Error(Errc::no_space, frame.why_dropped));
  }
  const Place place{frame.head.to.word(), frame.head.port};
  const auto waiting = waiting_.find(place);
  if (waiting != waiting_.end()) {
    waiting->second.emplace_back(host, std::move(frame));
  } else if (!deliver(host, frame)) {
    waiting_[place].emplace_back(host, std::move(frame));
  }
}

/// Delivers a frame to its receiver. Returns false if the frame must wait for room.
bool HostRelay::deliver(int host, const ArrivingFrame& frame) {
  const std::shared_ptr<StandIn> from = stand_in(frame.head.from);
  if (from == nullptr) {  // the sender has died, but all senders of its host share the credits
    note_lost_tell(frame);
    note_taken(host, frame);
    return true;
  }
  try {
    if (!from->deliver(frame)) return false;
  } catch (const Error& error) {
    from->drop(frame);
    // No refusal is sent, because the caller will learn that the process is lost. A lost process
    // needs no credits.
    if (error.code() == Errc::peer_lost) return true;
    refuse(host, frame, error);
  }
  note_taken(host, frame);
  return true;
}

/// Reports that a message can't be delivered. If it is a call, its caller gets the error; if it
/// is an answer, the process of this host that waits for it does.
void HostRelay::refuse(int host, const ArrivingFrame& frame, const Error& error) {
  const FrameHead& head = frame.head;
  note_lost_tell(frame);
  const std::string why =
      fmt::format("host {} can't deliver a message: {}", options_.host, error.what());
  logger("weft.worker")->warn("{}", why);
  MessageWriter body;
  put_error(body, Error(error.code(), why));
  const ActorOp op = op_of(head.heading);
  FrameHead answer{.kind = FrameKind::message,
                   .heading = heading_of(ActorOp::error, head.heading.call, head.heading.target)};
  if (op == ActorOp::call) {
    answer.from = head.to;
    answer.to = head.from;
    answer.port = kReplyPort;
    auto sent = std::make_unique<HostFrame>();
    sent->head = answer;
    sent->bytes.assign(body.bytes().begin(), body.bytes().end());
    send_frame(host, std::move(sent));
  } else if (op == ActorOp::answer) {
    answer.from = head.from;
    answer.to = head.to;
    answer.port = head.port;
    ArrivingFrame instead{.head = answer};
    instead.body.assign(body.bytes().begin(), body.bytes().end());
    instead.is_uncredited = true;
    waiting_[{head.to.word(), head.port}].emplace_back(host, std::move(instead));
  }
}

void HostRelay::note_lost_tell(const ArrivingFrame& frame) {
  if (op_of(frame.head.heading) != ActorOp::tell) return;
  actors_->head().lost_tells.fetch_add(1, std::memory_order_relaxed);
}

void HostRelay::deliver_waiting() {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    auto& frames = waiting->second;
    while (!frames.empty() && deliver(frames.front().first, frames.front().second)) {
      frames.pop_front();
    }
    waiting = frames.empty() ? waiting_.erase(waiting) : std::next(waiting);
  }
}

void HostRelay::note_taken(int host, const ArrivingFrame& frame) {
  if (frame.is_uncredited) return;
  Credit& credit = credits_[{host, {frame.head.to.word(), frame.head.port}}];
  ++credit.messages;
  for (const std::uint64_t size : frame.sizes) credit.bytes += size;
  if (credit.messages >= kCreditMessages || credit.bytes >= kCreditBytes) tell_credits();
}

void HostRelay::tell_credits() {
  for (const auto& [from, credit] : credits_) {
    const auto& [host, place] = from;
    auto frame = std::make_unique<HostFrame>();
    frame->head = {.kind = FrameKind::credit,
                   .to = PeerId::of(place.first),
                   .heading = {.call = credit.bytes, .target = credit.messages},
                   .port = place.second};
    send_frame(host, std::move(frame));
  }
  credits_.clear();
}

// --- Life ---

void HostRelay::look_at_links(Clock::time_point now) {
  const bool stood_still = now - std::exchange(last_turn_, now) > kStandstill;
  for (const auto& linked : links()) {
    // Nothing is read from a held link, so its silence doesn't count.
    if (linked->link->has_moved() || linked->link->is_held() || stood_still) linked->heard = now;
    const auto silent = now - linked->heard;
    const std::chrono::nanoseconds limit = linked->silence_max.load();
    if (limit.count() > 0 && silent > limit) {
      linked->link->end(fmt::format("it has been silent for {:.1f} s",
                                    std::chrono::duration<double>(silent).count()));
    }
    const auto why = linked->link->why_lost();
    if (!why) continue;
    const int host = linked->link->host();
    {
      const std::lock_guard lock(mutex_);
      const auto found = links_.find(host);
      if (found == links_.end() || found->second != linked) continue;  // it was dropped
      links_.erase(found);
    }
    linked->link->end(*why);
    hooks_.on_lost(host, *why);
  }
}

void HostRelay::beat() {
  next_beat_ = Clock::now() + kBeatInterval;
  for (const auto& each : links()) {
    auto frame = std::make_unique<HostFrame>();
    frame->head.kind = FrameKind::beat;
    send_frame(each->link->host(), std::move(frame));
  }
}

}  // namespace weft
