#pragma once
/// SystemHosts: the other hosts of an actor system, for the keeper on host 0. What the keeper
/// decides about processes and actors is told to all of them, in one order.

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
  /// They are called by the thread weft.hosts.
  struct Hooks {
    std::function<void(const EndedNews& news)> on_ended{};
    std::function<void(int host, const std::string& why)> on_lost{};
    std::function<void(const HungNews& news)> on_hung{};
  };

  /// Waits for all hosts, as host 0 of `place`. The tables, which must outlive it, have the process
  /// of the keeper alone. Throws timeout with the missing hosts; mesh_mismatch, version, io.
  SystemHosts(const HostPlace& place, const SystemOptions& options, PeerTable& peers,
              ActorTable& actors, const PeerFacts& keeper, Hooks hooks);
  /// Tells the other hosts that the system has ended.
  ~SystemHosts();
  SystemHosts(const SystemHosts&) = delete;
  SystemHosts& operator=(const SystemHosts&) = delete;

  int count() const { return place_.count; }
  /// Host 0 is always up.
  bool is_up(int host) const;
  /// Returns a text such as "host 1 (node2)".
  std::string name(int host) const;

  /// Tells of a process that the keeper has added, which is `joining`. It gets a stand-in if it is
  /// on another host. Throws no_space, io.
  void add_process(const PeerFacts& facts);
  void set_alive(PeerId peer) { tell_state(peer, PeerState::alive); }
  /// The process has died. Call it before its burial.
  void set_dead(PeerId peer);
  /// Returns whether no host has anything of the dead process, so that its slot may be free.
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
  std::string failure_{};        // of a host before all are ready; guarded by mutex_
  std::set<std::pair<int, std::uint64_t>> buried_;  // by host and peer; guarded by mutex_
  std::map<std::uint32_t, PeerFacts> facts_;        // by slot; guarded by mutex_
  /// A host that is lost at `due`, unless a better cause is known by then.
  struct Cut {
    Clock::time_point due{};
    int host = 0;
    int other = 0;
    std::string why{};
  };
  std::atomic<bool> is_ending_{false};
  std::vector<Cut> cuts_;  ///< of the thread weft.hosts
  std::unique_ptr<HostRelay> relay_;
};

}  // namespace weft
