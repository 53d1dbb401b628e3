#include "actors/user/pipe_end.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <weft/message/aggregate.hpp>
#include <weft/tensor/error.hpp>

#include "actors/message/tensor_bytes.hpp"
#include "actors/user/waits.hpp"
#include "transport/actors/actor_words.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

constexpr std::size_t kAlignment = 64;
static_assert(sizeof(PipeFrameHead) <= kAlignment);

constexpr std::size_t aligned(std::size_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

ChannelRole other_role(ChannelRole role) {
  return role == ChannelRole::writer ? ChannelRole::reader : ChannelRole::writer;
}

/// Returns whether this side of the channel is open, or was.
bool was_opened(const Channel& channel, ChannelRole role) {
  return channel.side(role).attached.load(std::memory_order_seq_cst) != 0;
}

std::string channel_name(const detail::PipeEnd::Name& name) {
  return fmt::format("{}{}", pipe_prefix(name.slot, name.incarnation), name.number);
}

void require_valid(const PipeOptions& options) {
  if (options.credits >= 1 && options.credits <= static_cast<int>(kSlotCountMax) &&
      options.value_bytes >= 1 && options.value_bytes <= kSlotBytesMax / 2 &&
      options.join_timeout_s > 0) {
    return;
  }
  fail(Errc::invalid_argument,
       "PipeOptions{{credits = {}, value_bytes = {}, join_timeout_s = {}}}: expected 1 to {} "
       "credits, 1 to {} bytes, and more than 0 seconds",
       options.credits, options.value_bytes, options.join_timeout_s, kSlotCountMax,
       kSlotBytesMax / 2);
}

}  // namespace

detail::PipeValue read_pipe_frame(std::span<const std::byte> frame,
                                  const std::shared_ptr<const void>& owner) {
  const auto part = [&](std::uint64_t offset, std::uint64_t bytes) {
    if (offset > frame.size() || bytes > frame.size() - offset) {
      fail(Errc::corrupt, "a value of a pipe has {} bytes at {}, in a frame of {} bytes", bytes,
           offset, frame.size());
    }
    return frame.subspan(offset, bytes);
  };
  PipeFrameHead head;
  std::memcpy(&head, part(0, sizeof head).data(), sizeof head);
  if (head.body_bytes > kMessageBytesMax || head.payload_count > kMessageTensorsMax) {
    fail(Errc::corrupt, "a value of a pipe has {} bytes and {} tensors", head.body_bytes,
         head.payload_count);
  }
  const std::size_t table_bytes = head.payload_count * sizeof(PipePayload);
  std::vector<PipePayload> table(head.payload_count);
  const auto rest = part(head.body_offset, table_bytes + head.body_bytes);
  if (table_bytes > 0) std::memcpy(table.data(), rest.data(), table_bytes);
  detail::PipeValue value;
  // The bytes are copied, because the writer's process could change them while they are read.
  value.bytes.assign(rest.begin() + static_cast<std::ptrdiff_t>(table_bytes), rest.end());
  for (const PipePayload& payload : table) {
    if (payload.offset % kAlignment != 0) {
      fail(Errc::corrupt, "a value of a pipe has a tensor at {}, not at a multiple of {} bytes",
           payload.offset, kAlignment);
    }
    value.payloads.push_back({.bytes = part(payload.offset, payload.bytes), .owner = owner});
  }
  return value;
}

std::string pipe_prefix(std::uint32_t slot, std::uint32_t incarnation) {
  return fmt::format("pipe.{}.{}.", slot, incarnation);
}

void remove_pipes(std::string_view system, std::uint32_t slot, std::uint32_t incarnation) {
  const std::string all = Channel::segment_name(system, pipe_prefix(slot, incarnation));
  for (const std::string& name : Segment::list(all)) Segment::remove(name);
}

namespace detail {

PipeEnd::PipeEnd(std::shared_ptr<ActorHost> host, const Name& name, ChannelRole role,
                 double join_timeout_s)
    : host_(std::move(host)), name_(name), role_(role), join_timeout_s_(join_timeout_s) {}

PipeEnd::~PipeEnd() {
  if (was_sent_) return;
  try {
    open();  // tells the other end that this one is gone
    // The other end may have been lost with its message, so that nobody would remove the channel.
    // If the other end still opens, it gets an error. A channel with values is kept for it.
    const bool has_values = writer_ && (writer_->count() > 0 || writer_->closed());
    if (!has_values && !was_opened(*channel_, other_role(role_))) {
      host_->remove_channel(channel_name(name_));
    }
  } catch (const Error&) {
    return;
  }
}

void PipeEnd::open() {
  if (was_sent_) {
    fail(Errc::invalid_argument,
         "this end of a pipe was sent in a message; only the actor that took it may use it");
  }
  if (channel_) return;
  try {
    channel_ = host_->open_channel(channel_name(name_));
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    fail(Errc::peer_lost,
         "pipe {}: its other end was destroyed, or the process that made it has ended",
         channel_name(name_));
  }
  const WaitPolicy policy = WaitPolicy::for_threads(2, std::chrono::hours(1));
  try {
    if (role_ == ChannelRole::writer) {
      writer_.emplace(*channel_, policy);
    } else {
      reader_.emplace(*channel_, policy);
    }
  } catch (...) {
    channel_.reset();
    throw;
  }
  channel_->side(role_).user.store(host_->pipe_user(), std::memory_order_relaxed);
  if (was_opened(*channel_, other_role(role_))) host_->remove_channel(channel_name(name_));
}

/// While it lives, shows for which end this one waits.
class PipeEnd::ShownWait {
 public:
  explicit ShownWait(const PipeEnd& end) : end_(end) {}
  ~ShownWait() { end_.host_->show_wait(0); }
  ShownWait(const ShownWait&) = delete;
  ShownWait& operator=(const ShownWait&) = delete;

  /// Updates what is shown, because the other end may have been opened since the last call.
  void show() {
    const std::uint32_t other =
        end_.channel_->side(other_role(end_.role_)).user.load(std::memory_order_relaxed);
    end_.host_->show_wait(AwaitedPipe{.writes = end_.role_ == ChannelRole::writer,
                                      .other = PipeUser::of(other),
                                      .since_ns = since_ns_}
                              .word());
  }

 private:
  const PipeEnd& end_;
  std::int64_t since_ns_ = clock_ns(CLOCK_MONOTONIC);
};

/// Waits until `wait_for` returns true. Throws if the wait must end.
void PipeEnd::wait(const JobHost::WaitFor& wait_for) {
  const JobHost::Clock::time_point deadline =
      SendLimit::deadline_after(join_timeout_s_, host_->now());
  ShownWait shown(*this);
  for (;;) {
    host_->check_wait(channel_->label());
    shown.show();
    const bool is_used = was_opened(*channel_, other_role(role_));
    if (host_->await(wait_for, is_used ? JobHost::Clock::time_point::max() : deadline)) return;
    if (host_->now() >= deadline && !was_opened(*channel_, other_role(role_))) {
      fail(Errc::timeout,
           "{}: its {} wasn't used within {} s (PipeOptions::join_timeout_s); the actor to which "
           "it was sent may have died",
           channel_->label(), role_ == ChannelRole::writer ? "reader" : "writer", join_timeout_s_);
    }
  }
}

/// Gets memory for the next value. Returns false if there is none and `may_wait` is false.
bool PipeEnd::find_room(bool may_wait) {
  open();
  while (next_.empty()) {
    if (const auto room = writer_->try_loan(channel_->slot_bytes())) {
      next_ = *room;
      used_ = kAlignment;
    } else if (!may_wait) {
      if (!writer_->wait_for({})) return false;
    } else {
      wait([&](std::chrono::nanoseconds at_most) { return writer_->wait_for(at_most); });
    }
  }
  return true;
}

void PipeEnd::require_room(std::size_t bytes) const {
  if (bytes <= next_.size()) return;
  fail(Errc::invalid_argument,
       "{}: a value takes {} bytes with its tensors: expected at most PipeOptions::value_bytes = "
       "{}",
       channel_->label(), bytes - kAlignment, next_.size() - kAlignment);
}

LoanedTensor PipeEnd::loan(const TensorType& type) {
  find_room(true);
  const auto bytes = static_cast<std::size_t>(type.bytes());
  const std::size_t offset = aligned(used_);
  require_room(offset + bytes);
  used_ = offset + bytes;
  const std::span<std::byte> elements = next_.subspan(offset, bytes);
  return {elements, HostTensor(ConstElementSpan(type.dtype, elements.data(), type.num_elements()),
                               type.shape, shared_from_this())};
}

bool PipeEnd::write(const MessageWriter& value, bool may_wait) {
  if (!host_->before_sending()) return true;
  if (!find_room(may_wait)) return false;
  std::size_t used = used_;
  std::vector<PipePayload> table;
  for (const HostTensor& tensor : value.tensors()) {
    const std::size_t bytes = bytes_of(tensor);
    const std::byte* const data = tensor.elements.data();
    const bool is_loaned =
        data >= next_.data() + kAlignment && data + bytes <= next_.data() + used_;
    if (is_loaned) {
      table.push_back({.offset = static_cast<std::uint64_t>(data - next_.data()), .bytes = bytes});
      continue;
    }
    used = aligned(used);
    require_room(used + bytes);
    if (bytes > 0) std::memcpy(next_.data() + used, data, bytes);
    table.push_back({.offset = used, .bytes = bytes});
    used += bytes;
  }
  const std::span<const std::byte> body = value.bytes();
  const std::size_t table_bytes = table.size() * sizeof(PipePayload);
  require_room(used + table_bytes + body.size());
  const PipeFrameHead head{.body_offset = used,
                           .body_bytes = static_cast<std::uint32_t>(body.size()),
                           .payload_count = static_cast<std::uint32_t>(table.size())};
  std::memcpy(next_.data(), &head, sizeof head);
  if (table_bytes > 0) std::memcpy(next_.data() + used, table.data(), table_bytes);
  if (!body.empty()) std::memcpy(next_.data() + used + table_bytes, body.data(), body.size());
  writer_->publish();
  next_ = {};
  return true;
}

void PipeEnd::close() {
  if (!host_->before_sending()) return;
  open();
  next_ = {};
  writer_->close();
}

/// A frame that is released when no tensor of its value is used any more.
struct PipeEnd::HeldFrame {
  HeldFrame(std::shared_ptr<PipeEnd> its_end, ChannelFrame its_frame)
      : end(std::move(its_end)), frame(std::move(its_frame)) {}
  ~HeldFrame() {
    const std::lock_guard lock(end->frames_mutex_);
    frame.reset();
  }
  HeldFrame(const HeldFrame&) = delete;
  HeldFrame& operator=(const HeldFrame&) = delete;

  std::shared_ptr<PipeEnd> end;
  std::optional<ChannelFrame> frame;
};

std::optional<PipeValue> PipeEnd::read(bool may_wait) {
  open();
  for (;;) {
    std::optional<ChannelFrame> frame;
    {
      const std::lock_guard lock(frames_mutex_);
      frame = reader_->try_receive();
    }
    if (frame) {
      const auto held = std::make_shared<HeldFrame>(shared_from_this(), std::move(*frame));
      PipeValue value = read_pipe_frame(held->frame->bytes(), held);
      value.process = host_.get();
      return value;
    }
    if (reader_->ended()) return std::nullopt;
    if (!may_wait) {
      if (!reader_->wait_for({})) return std::nullopt;
      continue;
    }
    wait([&](std::chrono::nanoseconds at_most) { return reader_->wait_for(at_most); });
  }
}

bool PipeEnd::has_ended() {
  open();
  return reader_->ended();
}

void PipeEnd::put(MessageWriter& out) {
  if (was_sent_ || channel_) {
    fail(Errc::invalid_argument,
         "this end of a pipe {}; an end may be sent once, before it is used",
         was_sent_ ? "was sent already" : "is in use");
  }
  was_sent_ = true;
  MessageCodec<std::uint64_t>::put(out, host_->system_key());
  MessageCodec<Name>::put(out, name_);
  MessageCodec<double>::put(out, join_timeout_s_);
}

PipeEnds make_pipe(const std::shared_ptr<ActorHost>& process, const PipeOptions& options) {
  require_valid(options);
  const ProcessPlace place = process->place();
  const PipeEnd::Name name{
      .slot = place.slot, .incarnation = place.incarnation, .number = process->next_pipe()};
  process->create_channel({.name = channel_name(name),
                           .slot_count = options.credits,
                           .slot_bytes = kAlignment + options.value_bytes});
  const auto end = [&](ChannelRole role) {
    return std::make_shared<PipeEnd>(process, name, role, options.join_timeout_s);
  };
  return {.writer = end(ChannelRole::writer), .reader = end(ChannelRole::reader)};
}

namespace {

PipeEnd& checked_end(PipeEnd* end) {
  if (end == nullptr) {
    fail(Errc::invalid_argument,
         "this is no end of a pipe; get one from pipe(), or from a message");
  }
  return *end;
}

}  // namespace

bool pipe_write(PipeEnd* end, const MessageWriter& value, bool may_wait) {
  return checked_end(end).write(value, may_wait);
}

LoanedTensor pipe_loan(PipeEnd* end, const TensorType& type) { return checked_end(end).loan(type); }

void pipe_close(PipeEnd* end) { checked_end(end).close(); }

std::optional<PipeValue> pipe_read(PipeEnd* end, bool may_wait) {
  return checked_end(end).read(may_wait);
}

bool pipe_has_ended(PipeEnd* end) { return checked_end(end).has_ended(); }

void put_pipe(MessageWriter& out, PipeEnd* end) { checked_end(end).put(out); }

std::shared_ptr<PipeEnd> get_pipe(MessageReader& in, bool is_writer) {
  const auto key = MessageCodec<std::uint64_t>::get(in);
  const auto name = MessageCodec<PipeEnd::Name>::get(in);
  const auto join_timeout_s = MessageCodec<double>::get(in);
  ActorHost* process = in.process();
  if (process == nullptr || key != process->system_key()) {
    fail(
        Errc::invalid_argument,
        "a message has the end of a pipe of another system; it can only be sent within its system");
  }
  return std::make_shared<PipeEnd>(process->shared_from_this(), name,
                                   is_writer ? ChannelRole::writer : ChannelRole::reader,
                                   join_timeout_s);
}

}  // namespace detail
}  // namespace weft
