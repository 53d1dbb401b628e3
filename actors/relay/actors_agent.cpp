#include "actors/relay/actors_agent.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "actors/host/job_place.hpp"
#include "actors/join/child_process.hpp"
#include "actors/launch/worker_command.hpp"
#include "actors/launch/worker_processes.hpp"
#include "actors/process/log.hpp"
#include "actors/process/wake_queue.hpp"
#include "actors/relay/host_relay.hpp"
#include "actors/relay/meeting.hpp"
#include "actors/relay/this_build.hpp"
#include "actors/table/actor_protocol.hpp"
#include "transport/lanes/burial.hpp"
#include "transport/memory/namespaces.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCountInterval{1};
constexpr std::chrono::milliseconds kLinkInterval{5};
/// The longest time of one attempt to dial another agent. The end of host 0 is noticed between two
/// attempts.
constexpr std::chrono::milliseconds kDialPatience{5000};
/// Host 0 counts a host as lost after a silence of host_timeout_s. An agent counts host 0 as lost
/// after this share of that time, so that the agent's processes have ended before others replace
/// them.
constexpr double kAgentsShare = 0.8;

class ActorsAgent {
 public:
  ActorsAgent(const SystemOptions& options, const HostPlace& wanted)
      : options_(options),
        deadline_(Clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::duration<double>(options.hosts->timeout_s))),
        reached_(reach_host_0(wanted, *options.hosts, options.name)),
        host_(static_cast<std::uint32_t>(reached_.place.index)),
        place_(false),
        peers_(PeerTable::create(place_.id())),
        actors_(ActorTable::create(
            place_.id(), {.name = options.name,
                          .threads = static_cast<std::uint32_t>(options.threads),
                          .heap_bytes = options.heap_bytes,
                          .call_timeout_s = options.call_timeout_s,
                          .host = host_,
                          .host_count = static_cast<std::uint32_t>(reached_.place.count)})),
        command_(ScalingConfig{}, true),
        processes_(
            {}, [](int) {}, options.name),
        relay_(peers_, actors_,
               RelayOptions{.system = options.name,
                            .host = host_,
                            .host_count = static_cast<std::uint32_t>(reached_.place.count)},
               HostRelay::Hooks{
                   .on_order = [this](int from, HostOp op, auto body) { on_order(from, op, body); },
                   .on_lost = [this](int lost, const std::string& why) { on_lost(lost, why); },
                   .on_tick = [this] { return on_tick(); }}) {}

  int run() {
    join();
    std::vector<pollfd> waits;
    while (!must_end()) {
      waits.assign(1, {.fd = commands_.fd(), .events = POLLIN, .revents = 0});
      processes_.add_to(waits);
      ::poll(waits.data(), waits.size(), -1);
      processes_.serve(waits.data() + 1, [this](const ProcessEnded& ended) {
        tell_counts();
        relay_.send(0, HostOp::ended, written(EndedNews{.ended = ended}));
      });
    }
    processes_.clear();
    return *exit_code_;
  }

 private:
  // --- The main thread ---

  /// Runs what the thread weft.hosts has queued for this thread. Returns whether this host's part
  /// of the system has to end.
  bool must_end() {
    while (const auto what = commands_.pop()) (*what)();
    return exit_code_.has_value();
  }

  /// Connects this host with all others. Returns early if the system ends meanwhile.
  void join() {
    const int index = reached_.place.index;
    std::unique_ptr<WireDoor> door = open_agents_door(reached_);
    const JoinNews news{.build = build_of_this_program(),
                        .machine = machine_name(),
                        .pid = ::getpid(),
                        .host_count = reached_.place.count,
                        .address = door->address()};
    relay_.start();
    relay_.add_link(0, std::move(reached_.session));
    relay_.send(0, HostOp::join, written(news));
    std::future<WelcomeOrder> welcomed = welcome_.get_future();
    if (welcomed.wait_until(deadline_) != std::future_status::ready) {
      fail(
          Errc::timeout,
          "host {} has waited ActorHosts::timeout_s for the other hosts of actor system \"{}\", {} "
          "s: start those that the output of host 0 names as missing, or raise timeout_s",
          index, options_.name, options_.hosts->timeout_s);
    }
    const WelcomeOrder welcome = welcomed.get();
    relay_.open_door(std::move(door), welcome.key);
    for (int other = 1; other < reached_.place.count; ++other) {
      if (other != index && !connect(other, welcome)) return;
    }
    relay_.close_door();
    for (int other = 0; other < reached_.place.count; ++other) {
      const double silence_s = welcome.host_timeout_s * (other == 0 ? kAgentsShare : 1);
      relay_.set_silence_max(other, std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::duration<double>(silence_s)));
    }
    logger("weft.trainer")
        ->info("host {} takes part in actor system {} of host 0", index, options_.name);
    relay_.send(0, HostOp::ready, MessageWriter());
  }

  /// Connects with another agent: dials one of a lower number, and waits for one of a higher number
  /// to dial. Returns false if this host's part has to end.
  bool connect(int other, const WelcomeOrder& welcome) {
    std::string why = "it hasn't dialled this host";
    while (!relay_.has_link(other)) {
      if (must_end()) return false;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      if (left.count() <= 0) {
        fail(Errc::timeout,
             "host {} and host {} of actor system \"{}\" haven't reached each other within "
             "ActorHosts::timeout_s = {}: {}; open the ports of ActorHosts::ports between them, or "
             "raise timeout_s",
             host_, other, options_.name, options_.hosts->timeout_s, why);
      }
      if (other > reached_.place.index) {
        ::poll(nullptr, 0, static_cast<int>(kLinkInterval.count()));
        continue;
      }
      try {
        relay_.add_link(other, reach_agent(reached_, options_.name, welcome.key, other,
                                           welcome.addresses.at(static_cast<std::size_t>(other)),
                                           std::min(left, kDialPatience)));
      } catch (const Error& error) {
        if (error.code() == Errc::invalid_argument) throw;
        why = error.what();
        ::poll(nullptr, 0, static_cast<int>(kLinkInterval.count()));
      }
    }
    return true;
  }

  void start(const StartOrder& order) {
    try {
      processes_.start(order.number, command_,
                       to_variables(ChildVariables{
                           .system = place_.id(),
                           .peer = {.slot = order.slot, .incarnation = order.incarnation},
                           .port_count = order.ports}));
    } catch (const std::exception& error) {
      relay_.send(0, HostOp::ended,
                  written(EndedNews{.ended = {.worker = order.number},
                                    .why = fmt::format("can't be started: {}", error.what())}));
    }
  }

  void end(int code, const std::string& why) {
    if (exit_code_) return;
    if (code != 0) {
      logger("weft.trainer")
          ->error("actor system {}: {}; the processes of this host end", options_.name, why);
    }
    exit_code_ = code;
  }

  // --- The thread weft.hosts ---

  void on_order(int from, HostOp op, std::span<const std::byte> body) {
    if (from != 0) {
      fail(Errc::corrupt, "host {} sends an order of kind {}, which only host 0 may send", from,
           static_cast<std::uint32_t>(op));
    }
    switch (op) {
      case HostOp::welcome: return welcome(read_order<WelcomeOrder>(body));
      case HostOp::peer: obey(read_order<PeerOrder>(body)); break;
      case HostOp::change: change(read_order<TableChange>(body)); break;
      case HostOp::kick: kick(); break;
      case HostOp::gone: {
        const auto gone = read_order<LostHost>(body);
        relay_.drop(gone.host, gone.why);
        break;
      }
      case HostOp::start:
        return commands_.push([this, order = read_order<StartOrder>(body)] { start(order); });
      case HostOp::kill:
        return commands_.push(
            [this, order = read_order<KillOrder>(body)] { processes_.kill(order.number, false); });
      case HostOp::end: has_ended_ = true; return commands_.push([this] { end(0, ""); });
      default:
        fail(Errc::corrupt, "host 0 sends an order of kind {}", static_cast<std::uint32_t>(op));
    }
    relay_.count_obeyed();
  }

  void welcome(const WelcomeOrder& order) {
    actors_.head().key = order.key;
    actors_.head().threads = order.threads;
    actors_.head().heap_bytes = order.heap_bytes;
    actors_.head().call_timeout_s = order.call_timeout_s;
    is_welcome_ = true;
    welcome_.set_value(order);
  }

  void on_lost(int host, const std::string& why) {
    if (has_ended_) return;
    if (host == 0 && !is_welcome_) {
      return welcome_.set_exception(std::make_exception_ptr(Error(
          Errc::unavailable,
          fmt::format("actor system \"{}\": host 0 has ended while the hosts met: {}; its log or "
                      "output says why",
                      options_.name, why))));
    }
    if (host == 0) {
      return commands_.push([this, why] { end(1, "host 0 is lost: " + why); });
    }
    relay_.send(0, HostOp::cut, written(LostHost{.host = host, .why = why}));
  }

  void change(const TableChange& change) {
    actors_.apply(change);
    if (change.kind == TableChange::end) hang_limits_.erase(change.number);
    if (change.kind != TableChange::add || change.facts.hang_timeout_s <= 0) return;
    if (const auto mesh = actors_.find(change.facts.name)) {
      hang_limits_[*mesh] = change.facts.hang_timeout_s;
    }
  }

  /// Tells host 0 once about each function of an actor that has run for too long on this host. In
  /// this host's table, only functions of this host's processes have a begin time.
  void look_for_hangs() {
    const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
    for (const auto& [mesh, limit_s] : hang_limits_) {
      for (std::uint32_t i = 0; i < actors_.mesh(mesh).count; ++i) {
        const ActorNumber actor = actors_.number(mesh, i);
        const std::uint64_t since_ns = actors_.row(actor).since_ns.load();
        if (since_ns == 0 || now - 1e-9 * static_cast<double>(since_ns) < limit_s) continue;
        if (std::exchange(told_hangs_[actor], since_ns) == since_ns) continue;
        const PeerId process = actors_.position(actor).process;
        relay_.send(0, HostOp::hung,
                    written(HungNews{
                        .actor = actor, .slot = process.slot, .incarnation = process.incarnation}));
      }
    }
  }

  void tell_counts() {
    const CountNews news{.copied_tensors = actors_.head().copied_tensors.exchange(0),
                         .lost_tells = actors_.head().lost_tells.exchange(0)};
    if (news.copied_tensors + news.lost_tells > 0) relay_.send(0, HostOp::counts, written(news));
  }

  void obey(const PeerOrder& order) {
    if (order.slot >= kPeerCountMax || order.ports < 1 || order.ports > kPortCountMax) {
      fail(Errc::corrupt, "host 0 tells of process {} with {} ports", order.slot, order.ports);
    }
    const PeerId peer{.slot = order.slot, .incarnation = order.incarnation};
    const auto state = static_cast<PeerState>(order.state);
    const bool was_alive = peers_.is_alive(peer);
    const auto role = static_cast<PeerRole>(order.role);
    if (state != PeerState::dead) peers_.put(peer, state, role, order.host);
    if (state == PeerState::joining && order.host != host_) {
      relay_.add_stand_in({.peer = peer, .host = order.host, .ports = order.ports, .role = role},
                          actors_.head().heap_bytes);
    } else if (state == PeerState::alive && order.host == host_) {
      actors_.head().processes.fetch_add(1);
    } else if (state == PeerState::dead) {
      if (was_alive && order.host == host_) actors_.head().processes.fetch_sub(1);
      relay_.end_stand_in(peer);
      burials_.push_back(std::make_unique<Burial>(peers_, keepers().peers(), peer));
    }
    actors_.head().changes.fetch_add(1);
    kick();
  }

  /// Returns the memory of the keeper's stand-in, which gives access to that of all processes.
  LaneNode& keepers() {
    if (keepers_ == nullptr) {
      const PeerLife life = peers_.life(kKeeperSlot);
      const auto stand_in = relay_.stand_in({.slot = kKeeperSlot, .incarnation = life.incarnation});
      WEFT_CHECK(stand_in != nullptr, life.incarnation);
      keepers_ = stand_in->node();
    }
    return *keepers_;
  }

  /// Wakes the processes of this host, so that they read the table of actors again.
  void kick() {
    wake_all(actors_.head().changes);
    for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
      if (peers_.life(slot).state != PeerState::alive || peers_.host(slot) != host_) continue;
      try {
        PortHead& port = keepers().peers().current(slot).port(kReplyPort);
        port.rung.fetch_add(1, std::memory_order_seq_cst);
        wake_all(port.rung);
      } catch (const Error&) {
        continue;  // it has just died
      }
    }
  }

  /// Does what is due from time to time. Returns whether it must be called again soon.
  bool on_tick() {
    std::erase_if(burials_, [this](const std::unique_ptr<Burial>& burial) {
      try {
        const PeerId dead = burial->dead();
        if (!relay_.has_forgotten(dead) || !burial->finish()) return false;
        relay_.send(0, HostOp::buried,
                    written(PeerOrder{.slot = dead.slot, .incarnation = dead.incarnation}));
        return true;
      } catch (const Error&) {
        return false;  // memory can't be mapped now
      }
    });
    look_for_hangs();
    if (Clock::now() >= next_counts_) {
      next_counts_ = Clock::now() + kCountInterval;
      tell_counts();
    }
    return !burials_.empty();
  }

  const SystemOptions options_;
  const Clock::time_point deadline_;
  ReachedHost reached_;
  const std::uint32_t host_;
  JobPlace place_;  ///< owns the memory of this host's part of the system
  PeerTable peers_;
  ActorTable actors_;
  WorkerCommand command_;
  WorkerProcesses processes_;
  WakeQueue<std::function<void()>> commands_;  ///< functions that the main thread shall call
  std::optional<int> exit_code_;
  std::promise<WelcomeOrder> welcome_;
  // Only the thread weft.hosts uses the next seven members.
  bool is_welcome_ = false;
  bool has_ended_ = false;
  std::shared_ptr<LaneNode> keepers_;
  std::vector<std::unique_ptr<Burial>> burials_;
  Clock::time_point next_counts_{};
  std::map<std::uint32_t, double> hang_limits_;      ///< by mesh, in seconds
  std::map<ActorNumber, std::uint64_t> told_hangs_;  ///< by actor: begin of the reported function
  HostRelay relay_;
};

}  // namespace

int run_actors_agent(const SystemOptions& options, const HostPlace& place) {
  return ActorsAgent(options, place).run();
}

}  // namespace weft
