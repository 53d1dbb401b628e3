#pragma once
/// StandIn: has the place of a process of another host in this host's memory. Other processes send
/// to it and take from it as if it were that process; it passes on what it gets over a lane link.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "actors/relay/lane_link.hpp"
#include "actors/table/actor_table.hpp"
#include "transport/actors/actor_op.hpp"
#include "transport/lanes/lane_node.hpp"

namespace weft {

/// The facts of a process of an actor system, as all hosts know them.
struct PeerFacts {
  PeerId peer{};
  std::uint32_t host = 0;
  std::uint32_t ports = 0;
  PeerRole role = PeerRole::started;
};

/// Its thread takes from all of its ports. From each port it takes at most kWindow messages, and
/// from those of actors together about kWindowBytes of tensors, before the other host has credited
/// them.
class StandIn {
 public:
  static constexpr std::uint32_t kWindow = 64;
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{64} << 20;
  using Forward = std::function<void(std::unique_ptr<HostFrame>)>;

  /// Makes the memory of the process. `forward` may be called by any thread. The tables must
  /// outlive it. Throws no_space, io.
  StandIn(PeerTable& peers, ActorTable& actors, const PeerFacts& facts, std::size_t heap_bytes,
          Forward forward);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  PeerId peer() const { return facts_.peer; }
  std::uint32_t host() const { return facts_.host; }
  const std::shared_ptr<LaneNode>& node() const { return node_; }

  /// Makes a block of the process for each size. Throws no_space.
  std::vector<BlockId> allocate(const std::vector<std::uint64_t>& sizes) const;
  /// A call of the process has arrived, and is awaited from now on.
  void note_arrival(const ArrivingFrame& frame);
  /// Sends a message of the process to one of this host, which gets the frame's blocks. Returns
  /// false if the lane is full. Throws peer_lost, and the errors of LaneSender::send().
  bool deliver(const ArrivingFrame& frame);
  /// Gives up the blocks of a frame that nobody gets.
  void drop(const ArrivingFrame& frame) const;
  /// The other host has taken messages from a port.
  void credit(std::uint32_t port, std::uint32_t messages, std::uint64_t bytes);
  /// The process doesn't wait for its call any more: it was cancelled, or answered.
  void forget_call(std::uint64_t call);
  /// Tells the other host which calls that were sent to it are awaited no more.
  void tell_cancels();
  /// Ends its thread. What waits in its ports then is lost, and the messages that were told are
  /// counted.
  void stop();

 private:
  void run();
  bool take_some();
  bool may_take(std::uint32_t port);
  void forward(std::uint32_t port, InMessage&& message);
  void lose(const InMessage& message);
  void note_call(const InMessage& message);
  std::atomic<std::uint64_t>& call_word(std::uint64_t call) const;

  PeerTable* peers_;
  ActorTable* actors_;
  const PeerFacts facts_;
  std::shared_ptr<LaneNode> node_;
  Forward forward_;
  std::mutex mutex_;
  std::vector<std::deque<ActorOp>> sent_;                  // by port: not credited, oldest first
  std::uint64_t bytes_away_ = 0;                           // not credited yet; guarded by mutex_
  using CallOf = std::pair<std::uint64_t, std::uint64_t>;  ///< a caller's PeerId as words, a number
  std::set<CallOf> open_calls_;  // sent and perhaps awaited; guarded by mutex_
  std::atomic<bool> must_stop_{false};
  std::jthread thread_;
};

}  // namespace weft
