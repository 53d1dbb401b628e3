#pragma once
/// StandIn: represents a process of another host in this host's memory. Processes of this host send
/// to the stand-in and receive from it as if it were that process. It passes their messages to the
/// process over a lane link.

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

/// Describes a process of an actor system, in the same way on all hosts.
struct PeerFacts {
  PeerId peer{};
  std::uint32_t host = 0;
  std::uint32_t ports = 0;
  PeerRole role = PeerRole::started;
};

/// A thread of the object takes messages from all ports of the stand-in. It pauses while
/// kWindow messages of a port, or about kWindowBytes of tensors of all actor ports together, aren't
/// credited by the other host yet.
class StandIn {
 public:
  static constexpr std::uint32_t kWindow = 64;
  static constexpr std::uint64_t kWindowBytes = std::uint64_t{64} << 20;
  using Forward = std::function<void(std::unique_ptr<HostFrame>)>;

  /// Makes the stand-in's memory. Any thread may call `forward`, which sends frames to the
  /// process's host. The tables must outlive the stand-in. Throws no_space, io.
  StandIn(PeerTable& peers, ActorTable& actors, const PeerFacts& facts, std::size_t heap_bytes,
          Forward forward);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  PeerId peer() const { return facts_.peer; }
  std::uint32_t host() const { return facts_.host; }
  const std::shared_ptr<LaneNode>& node() const { return node_; }

  /// Allocates a block of the stand-in for each size. Throws no_space.
  std::vector<BlockId> allocate(const std::vector<std::uint64_t>& sizes) const;
  /// If the arrived frame is a call of the process, notes that the process waits for the answer.
  void note_arrival(const ArrivingFrame& frame);
  /// Delivers a message of the process to its receiver on this host, which gets the frame's blocks.
  /// Returns false if the lane is full. Throws peer_lost, and the errors of LaneSender::send().
  bool deliver(const ArrivingFrame& frame);
  /// Releases the blocks of a frame, which the frame doesn't need any more.
  void drop(const ArrivingFrame& frame) const;
  /// Notes that the other host has taken messages from a port of the process.
  void credit(std::uint32_t port, std::uint32_t messages, std::uint64_t bytes);
  /// Notes that the process doesn't wait for an answer to its call any more, because the call was
  /// cancelled or answered.
  void forget_call(std::uint64_t call);
  /// Tells the other host which of the calls that were sent to it have been cancelled.
  void tell_cancels();
  /// Ends the thread. The messages that wait in the ports are then lost, and the tells among them
  /// are counted as lost.
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
  std::vector<std::deque<ActorOp>> sent_;  // by port: sent messages without credit, oldest first
  std::uint64_t bytes_away_ = 0;           // tensor bytes without credit; guarded by mutex_
  using CallOf = std::pair<std::uint64_t, std::uint64_t>;  ///< caller's word(), number of call
  std::set<CallOf> open_calls_;  // sent calls that may be awaited; guarded by mutex_
  std::atomic<bool> must_stop_{false};
  std::jthread thread_;
};

}  // namespace weft
