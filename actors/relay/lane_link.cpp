#include "actors/relay/lane_link.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// After this many turns, take() returns, so that other links get their turn.
constexpr int kTurns = 8;

/// The limit for the body of a frame, as a multiple of the limit for the body of a lane.
constexpr std::uint32_t kBodiesMax = 16;

/// Throws corrupt for a head that no host of this build writes.
void require_possible(const FrameHead& head, int host) {
  const bool is_possible =
      head.magic == FrameHead::kMagic && head.kind >= FrameKind::message &&
      head.kind <= FrameKind::beat && head.body_bytes <= kBodyBytesMax * kBodiesMax &&
      head.block_count <= kMessageBlocksMax && head.from.slot < kPeerCountMax &&
      head.to.slot < kPeerCountMax && head.port < kPortCountMax;
  if (is_possible) return;
  fail(Errc::corrupt,
       "host {} sends a frame of kind {} with {} bytes and {} tensors, from process {} to port {} "
       "of process {}",
       host, static_cast<std::uint32_t>(head.kind), head.body_bytes, head.block_count,
       head.from.slot, head.port, head.to.slot);
}

}  // namespace

LaneLink::LaneLink(int host, TlsSession session) : host_(host) {
  wire_.begin(std::move(session));
  post_head();
}

bool LaneLink::send(std::unique_ptr<HostFrame> frame) {
  const std::lock_guard lock(mutex_);
  if (is_ended_ || wire_.status.state != WireState::up) return true;
  frame->head.body_bytes = static_cast<std::uint32_t>(
      frame->bytes.size() - frame->tensors.size() * sizeof(std::uint64_t));
  frame->head.block_count = static_cast<std::uint32_t>(frame->tensors.size());
  std::size_t posts = 1;
  wire_.send(std::as_bytes(std::span(&frame->head, 1)));
  const auto post = [&](std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    wire_.send(bytes);
    ++posts;
  };
  post(frame->bytes);
  for (const auto& tensor : frame->tensors) post(tensor);
  posted_ += posts;
  sends_.push_back({.frame = std::move(frame), .posts_left = posts});
  wire_.progress_sends();
  drop_sent();
  return sends_.empty() && wire_.status.state == WireState::up;
}

/// Forgets the frames whose posts have all been sent.
void LaneLink::drop_sent() {
  std::size_t done = posted_ - wire_.status.sends;
  while (!sends_.empty() && done >= sends_.front().posts_left) {
    done -= sends_.front().posts_left;
    posted_ -= sends_.front().posts_left;
    sends_.pop_front();
  }
}

void LaneLink::post_head() {
  part_ = Part::head;
  arriving_ = {};
  wire_.receive(std::as_writable_bytes(std::span(&arriving_.head, 1)));
}

void LaneLink::post_bytes() {
  require_possible(arriving_.head, host_);
  part_ = Part::bytes;
  bytes_.resize(arriving_.head.block_count * sizeof(std::uint64_t) + arriving_.head.body_bytes);
  wire_.receive(bytes_);
}

void LaneLink::post_tensors(const Allocate& allocate) {
  part_ = Part::tensors;
  arriving_.sizes.resize(arriving_.head.block_count);
  const std::size_t size_bytes = arriving_.sizes.size() * sizeof(std::uint64_t);
  if (size_bytes > 0) std::memcpy(arriving_.sizes.data(), bytes_.data(), size_bytes);
  arriving_.body.assign(bytes_.begin() + static_cast<std::ptrdiff_t>(size_bytes), bytes_.end());
  for (const std::uint64_t size : arriving_.sizes) {
    if (size > kFrameBlockBytesMax) {
      fail(Errc::corrupt, "host {} sends a tensor of {} bytes; expected at most {}", host_, size,
           kFrameBlockBytesMax);
    }
  }
  if (arriving_.sizes.empty()) return;
  std::vector<std::span<std::byte>> into = allocate(arriving_);
  if (into.empty()) {
    constexpr std::size_t kDropBytes = std::size_t{1} << 20;
    dropped_.resize(kDropBytes);
    for (std::uint64_t size : arriving_.sizes) {
      for (; size > 0; size -= std::min<std::uint64_t>(size, dropped_.size())) {
        into.emplace_back(std::span(dropped_).first(std::min<std::uint64_t>(size, kDropBytes)));
      }
    }
  }
  for (const std::span<std::byte> each : into) wire_.receive(each);
}

std::optional<ArrivingFrame> LaneLink::take(const MayTake& may_take, const Allocate& allocate) {
  const std::lock_guard lock(mutex_);
  has_more_ = is_held_ = false;
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool has_moved = !is_ended_ && wire_.progress();
    has_moved_ = has_moved_ || has_moved;
    drop_sent();
    if (wire_.status.state != WireState::up) {
      if (why_.empty()) lose(wire_.status.why);
      return std::nullopt;
    }
    if (wire_.status.receives > 0) {
      if (has_moved) continue;
      return std::nullopt;
    }
    switch (part_) {
      case Part::head: post_bytes(); break;
      case Part::bytes:
        is_held_ = !may_take(arriving_.head);
        if (is_held_) return std::nullopt;
        post_tensors(allocate);
        break;
      case Part::tensors: {
        ArrivingFrame whole = std::move(arriving_);
        post_head();
        return whole;
      }
    }
  }
  has_more_ = true;
  return std::nullopt;
}

void LaneLink::add_events(std::vector<pollfd>& events) {
  const std::lock_guard lock(mutex_);
  if (!is_ended_) wire_.add_events(events);
}

bool LaneLink::has_unsent() {
  const std::lock_guard lock(mutex_);
  return wire_.status.state == WireState::up && !sends_.empty();
}

std::optional<std::string> LaneLink::why_lost() {
  const std::lock_guard lock(mutex_);
  if (why_.empty()) return std::nullopt;
  return why_;
}

void LaneLink::lose(const std::string& why) {
  why_ = why.empty() ? "the connection broke" : why;
  sends_.clear();
  posted_ = 0;
}

void LaneLink::end(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  is_ended_ = true;
  wire_.end();
  if (why_.empty()) lose(why);
}

}  // namespace weft
