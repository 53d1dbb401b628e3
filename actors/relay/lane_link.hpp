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

/// A frame that arrives, and the memory for its tensors.
struct ArrivingFrame {
  FrameHead head{};
  std::vector<std::uint64_t> sizes{};
  std::vector<std::byte> body{};
  std::vector<BlockId> blocks{};  ///< blocks that hold the tensors; empty if they were dropped
  std::shared_ptr<const void> keeps{};  ///< the owner of the blocks
  std::string why_dropped{};
  bool is_uncredited = false;  ///< made by this host in place of a lost answer: no credit is due
};

/// Any thread may call send(), but only one thread take().
class LaneLink {
 public:
  /// Allocates memory for the tensors of a frame: sets `blocks`, and returns the blocks' bytes. If
  /// it returns no memory, the tensors are dropped.
  using Allocate = std::function<std::vector<std::span<std::byte>>(ArrivingFrame& frame)>;
  /// Returns whether a frame may be taken now.
  using MayTake = std::function<bool(const FrameHead& head)>;

  /// `session` leads to the host with the number `host`; its greeting has succeeded.
  LaneLink(int host, TlsSession session);

  int host() const { return host_; }
  /// Sends as many bytes as the connection accepts now. Returns false if bytes are left, which the
  /// thread that calls take() sends later. Does nothing once the link is lost.
  bool send(std::unique_ptr<HostFrame> frame);

  /// Only the thread that calls take() may use this and the functions below. Moves bytes on, and
  /// returns the next complete frame. A frame that may not be taken holds up all behind it, before
  /// memory is allocated for its tensors. Throws corrupt for bytes that can't be a frame.
  std::optional<ArrivingFrame> take(const MayTake& may_take, const Allocate& allocate);
  /// Returns whether the last take() was held up by a frame that may not be taken yet.
  bool is_held() const { return is_held_; }
  /// Returns whether the last take() stopped early, although it could have moved more bytes.
  bool has_more() const { return has_more_; }
  /// Returns whether any bytes were moved since the last call.
  bool has_moved() { return std::exchange(has_moved_, false); }
  void add_events(std::vector<pollfd>& events);
  bool has_unsent();
  /// Returns why the link is lost; nothing if it is up.
  std::optional<std::string> why_lost();
  /// Ends the link: delivers nothing more, and drops the frames that aren't sent yet.
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
  TlsWire wire_;  // guarded by mutex_, like all below if not noted
  struct Sent {
    std::unique_ptr<HostFrame> frame;
    std::size_t posts_left;
  };
  std::deque<Sent> sends_;
  std::size_t posted_ = 0;  ///< posts of all frames in sends_
  Part part_ = Part::head;
  ArrivingFrame arriving_{};
  std::vector<std::byte> bytes_{};
  std::vector<std::byte> dropped_{};  ///< receives tensors that are dropped
  std::string why_{};
  bool has_more_ = false;   // only the thread that calls take() uses it
  bool has_moved_ = false;  // only the thread that calls take() uses it
  bool is_held_ = false;    // only the thread that calls take() uses it
  bool is_ended_ = false;
};

}  // namespace weft
