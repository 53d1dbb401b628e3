#pragma once
/// SystemHosts: connects the keeper, on host 0, with the other hosts of an actor system. What the
/// keeper decides about processes and actors is told to all hosts, in the same order.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <weft/actor/actor_options.hpp>

#include "actors/relay/host_relay.hpp"
#include "actors/relay/meeting.hpp"

namespace weft {

/// Thread-safe.
class SystemHosts {
 public:
  /// The thread weft.hosts calls these functions.
  struct Hooks {
    std::function<void(const EndedNews& news)> on_ended{};
    std::function<void(int host, const std::string& why)> on_lost{};
    std::function<void(const HungNews& news)> on_hung{};
  };

  /// Waits, as host 0 of `place`, until all other hosts have joined. The tables contain only the
  /// keeper's process, and must outlive the object. Throws timeout, naming the missing hosts;
  /// mesh_mismatch, version, io.
  SystemHosts(const HostPlace& place, const SystemOptions& options, PeerTable& peers,
              ActorTable& actors, const PeerFacts& keeper, Hooks hooks);
  /// Tells the other hosts that the system has ended.
  ~SystemHosts();
  SystemHosts(const SystemHosts&) = delete;
  SystemHosts& operator=(const SystemHosts&) = delete;

  int count() const { return place_.count; }
  /// Returns whether the host isn't lost; true for host 0.
  bool is_up(int host) const;
  /// Returns a text such as "host 1 (node2)".
  std::string name(int host) const;

  /// Tells all hosts that the keeper has added a process, which is `joining`. A process on another
  /// host gets a stand-in. Throws no_space, io.
  void add_process(const PeerFacts& facts);
  void set_alive(PeerId peer) { tell_state(peer, PeerState::alive); }
  /// Tells all hosts that the process has died. Must be called before its burial.
  void set_dead(PeerId peer);
  /// Returns whether no host keeps anything of the dead process, so that its slot may be reused.
  bool may_free(PeerId peer);
  void start(int host, const StartOrder& order) {
    relay_->send(host, HostOp::start, written(order));
  }
  void kill(int host, int number) {
    relay_->send(host, HostOp::kill, written(KillOrder{.number = number}));
  }
  void kick() { relay_->send_all(HostOp::kick, MessageWriter()); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    JoinNews joined{};
    bool has_joined = false;
    bool is_ready = false;
    bool is_lost = false;
  };

  void on_order(int host, HostOp op, std::span<const std::byte> body);
  void on_lost(int host, const std::string& why);
  bool on_tick();
  void await_all(bool (*has)(const Member&), Clock::time_point deadline, const char* what,
                 const char* remedy);
  void require_fitting();
  void tell_state(PeerId peer, PeerState state);

  const HostPlace place_;
  const SystemOptions options_;
  PeerTable* peers_;
  ActorTable* actors_;
  Hooks hooks_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;  // by host; guarded by mutex_
  std::string failure_{};        // failure before all hosts are ready; guarded by mutex_
  std::set<std::pair<int, std::uint64_t>> buried_;  // by host and peer; guarded by mutex_
  std::map<std::uint32_t, PeerFacts> facts_;        // by slot; guarded by mutex_
  /// Two hosts that don't reach each other. At `due`, `host` is dropped, if neither is lost by
  /// then.
  struct Cut {
    Clock::time_point due{};
    int host = 0;
    int other = 0;
    std::string why{};
  };
  std::atomic<bool> is_ending_{false};
  std::vector<Cut> cuts_;  ///< only the thread weft.hosts uses it
  std::unique_ptr<HostRelay> relay_;
};

}  // namespace weft
