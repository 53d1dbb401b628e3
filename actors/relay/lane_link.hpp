#pragma once
/// LaneLink: the connection between two hosts of an actor system, which carries frames in order.

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/relay/host_frame.hpp"
#include "transport/wires/tls_wire.hpp"

namespace weft {

/// A frame that arrives: where its tensors go, and what came.
struct ArrivingFrame {
  FrameHead head{};
  std::vector<std::uint64_t> sizes{};
  std::vector<std::byte> body{};
  std::vector<BlockId> blocks{};        ///< in which the tensors lie; empty if they were dropped
  std::shared_ptr<const void> keeps{};  ///< the owner of the blocks
  std::string why_dropped{};
  bool is_uncredited = false;  ///< this host has made it, in place of an answer
};

/// Any thread may send; one thread takes.
class LaneLink {
 public:
  /// Makes memory for the tensors of a frame: sets `blocks`, and returns their bytes. If it returns
  /// nothing, the tensors are dropped.
  using Allocate = std::function<std::vector<std::span<std::byte>>(ArrivingFrame& frame)>;
  /// Returns whether a frame may be taken now.
  using MayTake = std::function<bool(const FrameHead& head)>;

  /// `host` is the number of the host at the other end, whose greeting has succeeded.
  LaneLink(int host, TlsSession session);

  int host() const { return host_; }
  /// Sends what the connection takes now. Returns false if some is left, which the thread that
  /// takes then sends. Does nothing once the link is lost.
  bool send(std::unique_ptr<HostFrame> frame);

  /// The rest is for the thread that takes. Moves bytes on, and returns the next whole frame. A
  /// frame that may not be taken stops all behind it, before there is memory for its tensors.
  /// Throws corrupt for bytes that can't be a frame.
  std::optional<ArrivingFrame> take(const MayTake& may_take, const Allocate& allocate);
  /// Whether the last take() has found a frame that may not be taken.
  bool is_held() const { return is_held_; }
  /// Whether the last take() has left something that it could have moved.
  bool has_more() const { return has_more_; }
  /// Returns whether any bytes were moved since the last call.
  bool has_moved() { return std::exchange(has_moved_, false); }
  void add_events(std::vector<pollfd>& events);
  bool has_unsent();
  /// Returns why the link is lost; nothing if it is up.
  std::optional<std::string> why_lost();
  /// Delivers nothing more, and forgets the frames that aren't sent yet.
  void end(const std::string& why);

 private:
  enum class Part : std::uint8_t { head, bytes, tensors };

  void post_head();
  void post_bytes();
  void post_tensors(const Allocate& allocate);
  void drop_sent();
  void lose(const std::string& why);

  const int host_;
  std::mutex mutex_;
  TlsWire wire_;  // this and the rest are guarded by mutex_
  struct Sent {
    std::unique_ptr<HostFrame> frame;
    std::size_t posts_left;
  };
  std::deque<Sent> sends_;
  std::size_t posted_ = 0;  ///< posts of all frames in sends_
  Part part_ = Part::head;
  ArrivingFrame arriving_{};
  std::vector<std::byte> bytes_{};
  std::vector<std::byte> dropped_{};  ///< takes tensors that nobody wants
  std::string why_{};
  bool has_more_ = false;   // of the thread that takes
  bool has_moved_ = false;  // of the thread that takes
  bool is_held_ = false;    // of the thread that takes
  bool is_ended_ = false;
};

}  // namespace weft
