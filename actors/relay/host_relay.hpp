#pragma once
/// HostRelay: connects this host's part of an actor system with the other hosts. It has a link to
/// each host, and a StandIn for each process of another host.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/message/bytes.hpp>

#include "actors/process/wake_queue.hpp"
#include "actors/relay/host_orders.hpp"
#include "actors/relay/lane_link.hpp"
#include "actors/relay/stand_in.hpp"
#include "transport/wires/wire_door.hpp"

namespace weft {

struct RelayOptions {
  std::string system{};  ///< the system's name
  std::uint32_t host = 0;
  std::uint32_t host_count = 1;
};

/// The thread `weft.hosts` takes the frames that arrive over all links, and calls the hooks. The
/// public functions are thread-safe.
class HostRelay {
 public:
  using Clock = std::chrono::steady_clock;
  struct Hooks {
    /// Throws corrupt if the order is malformed or not allowed; the relay then ends the link.
    std::function<void(int host, HostOp op, std::span<const std::byte> body)> on_order{};
    std::function<void(int host, const std::string& why)> on_lost{};
    /// Called at least every 100 ms; at least every 20 ms after a call that returned true.
    std::function<bool()> on_tick{};
  };

  /// `peers` and `actors` must outlive the relay.
  HostRelay(PeerTable& peers, ActorTable& actors, RelayOptions options, Hooks hooks);
  ~HostRelay();
  HostRelay(const HostRelay&) = delete;
  HostRelay& operator=(const HostRelay&) = delete;

  /// Starts the thread, which takes the frames of all links.
  void start();
  void add_link(int host, TlsSession session);
  /// Accepts connections of hosts with higher numbers. `generation` is that of their preambles.
  void open_door(std::unique_ptr<WireDoor> door, std::uint64_t generation);
  void close_door();
  bool has_link(int host) const;
  /// Ends the link to a host without calling on_lost.
  void drop(int host, const std::string& why);
  /// Sets how long a host may be silent before it counts as lost; 0: without limit.
  void set_silence_max(int host, std::chrono::nanoseconds silence_max);

  void send(int host, HostOp op, const MessageWriter& body);
  /// Sends an order to all other hosts. If several threads call it, all hosts get the orders in the
  /// same sequence.
  void send_all(HostOp op, const MessageWriter& body);
  /// Counts one more order of host 0 as obeyed.
  void count_obeyed() { obeyed_.fetch_add(1); }

  /// Adds a StandIn for the process. Throws no_space, io.
  void add_stand_in(const PeerFacts& facts, std::size_t heap_bytes);
  std::shared_ptr<StandIn> stand_in(PeerId peer) const;
  /// Ends the stand-in of a process that has died, if there is one.
  void end_stand_in(PeerId peer);
  /// Returns whether nothing uses the ended stand-in of the process any more.
  bool has_forgotten(PeerId peer);

 private:
  struct Linked {
    std::shared_ptr<LaneLink> link;
    Clock::time_point heard{};
    std::atomic<std::chrono::nanoseconds> silence_max{};  ///< 0: no limit
  };
  struct Credit {
    std::uint32_t messages = 0;
    std::uint64_t bytes = 0;
  };
  using Place = std::pair<std::uint64_t, std::uint32_t>;  ///< receiver's word(), and port

  void run();
  void wait(std::chrono::milliseconds longest);
  bool take_from(Linked& linked);
  void handle(int host, ArrivingFrame&& frame);
  void handle_message(int host, ArrivingFrame&& frame);
  bool deliver(int host, const ArrivingFrame& frame);
  void refuse(int host, const ArrivingFrame& frame, const Error& error);
  void note_lost_tell(const ArrivingFrame& frame);
  void deliver_waiting();
  void note_taken(int host, const ArrivingFrame& frame);
  void tell_credits();
  std::shared_ptr<StandIn> stand_in_of(int host, PeerId peer) const;
  std::vector<std::span<std::byte>> allocate(int host, ArrivingFrame& frame);
  void look_at_links(Clock::time_point now);
  void admit();
  void beat();
  void send_frame(int host, std::unique_ptr<HostFrame> frame);
  std::vector<std::shared_ptr<Linked>> links() const;

  PeerTable* peers_;
  ActorTable* actors_;
  const RelayOptions options_;
  Hooks hooks_;
  WakeFd wake_;
  std::atomic<bool> must_stop_{false};
  std::atomic<std::uint64_t> obeyed_{0};
  std::mutex order_mutex_;  ///< held while an order is sent to all
  mutable std::mutex mutex_;
  std::map<int, std::shared_ptr<Linked>> links_;                 // guarded by mutex_
  std::map<std::uint32_t, std::shared_ptr<StandIn>> stand_ins_;  // by slot; guarded by mutex_
  std::vector<std::shared_ptr<StandIn>> ending_;                 // guarded by mutex_
  std::unique_ptr<WireDoor> door_;                               // guarded by mutex_
  std::uint64_t generation_ = 0;                                 // guarded by mutex_
  // Only the thread uses the members below.
  std::map<Place, std::deque<std::pair<int, ArrivingFrame>>> waiting_;
  std::map<std::pair<int, Place>, Credit> credits_;  ///< by host and place
  std::vector<pollfd> events_;
  Clock::time_point last_turn_{};
  Clock::time_point next_beat_{};
  Clock::time_point next_look_{};
  std::jthread thread_;
};

}  // namespace weft
