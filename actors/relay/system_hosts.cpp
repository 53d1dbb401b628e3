#include "actors/relay/system_hosts.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "actors/process/log.hpp"
#include "actors/relay/this_build.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

/// If two hosts don't reach each other, one of them may be lost. This is the time to learn that.
constexpr std::chrono::seconds kBetterCause{1};

std::chrono::nanoseconds seconds(double count) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(count));
}

}  // namespace

SystemHosts::SystemHosts(const HostPlace& place, const SystemOptions& options, PeerTable& peers,
                         ActorTable& actors, const PeerFacts& keeper, Hooks hooks)
    : place_(place),
      options_(options),
      peers_(&peers),
      actors_(&actors),
      hooks_(std::move(hooks)),
      members_(static_cast<std::size_t>(place.count)) {
  const ActorHosts& wanted = *options.hosts;
  const auto deadline = Clock::now() + seconds(wanted.timeout_s);
  relay_ = std::make_unique<HostRelay>(
      peers, actors,
      RelayOptions{
          .system = options.name, .host = 0, .host_count = static_cast<std::uint32_t>(place.count)},
      HostRelay::Hooks{
          .on_order = [this](int host, HostOp op, auto body) { on_order(host, op, body); },
          .on_lost = [this](int host, const std::string& why) { on_lost(host, why); },
          .on_tick = [this] { return on_tick(); }});
  relay_->start();
  ActorsMeeting meeting = open_meeting(place, wanted, options.name);
  relay_->open_door(std::move(meeting.door), 0);
  await_all([](const Member& member) { return member.has_joined; }, deadline, "joined",
            "start the program there with this WEFT_HOST_INDEX; if it was "
            "started, its output has the reason");
  relay_->close_door();
  require_fitting();
  WelcomeOrder welcome{.key = actors.head().key,
                       .threads = static_cast<std::uint32_t>(options.threads),
                       .heap_bytes = options.heap_bytes,
                       .call_timeout_s = options.call_timeout_s,
                       .host_timeout_s = wanted.host_timeout_s};
  for (const Member& member : members_) welcome.addresses.push_back(member.joined.address);
  relay_->send_all(HostOp::welcome, written(welcome));
  add_process(keeper);
  set_alive(keeper.peer);
  await_all([](const Member& member) { return member.is_ready; }, deadline,
            "reached the other hosts",
            "open the ports of ActorHosts::ports between all "
            "hosts");
  for (int host = 1; host < place.count; ++host) {
    relay_->set_silence_max(host, seconds(wanted.host_timeout_s));
  }
  actors.set_on_change(
      [this](const TableChange& change) { relay_->send_all(HostOp::change, written(change)); });
}

SystemHosts::~SystemHosts() {
  actors_->set_on_change({});
  is_ending_.store(true);
  relay_->send_all(HostOp::end, MessageWriter());
}

void SystemHosts::await_all(bool (*has)(const Member&), Clock::time_point deadline,
                            const char* what, const char* remedy) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] {
    return !failure_.empty() || std::all_of(members_.begin() + 1, members_.end(), has);
  };
  const bool in_time = changed_.wait_until(lock, deadline, is_over);
  if (!failure_.empty()) fail(Errc::unavailable, "{}", failure_);
  if (in_time) return;
  std::vector<std::size_t> missing;
  for (std::size_t host = 1; host < members_.size(); ++host) {
    if (!has(members_[host])) missing.push_back(host);
  }
  fail(Errc::timeout,
       "actor system \"{}\": of {} hosts, these haven't {} within ActorHosts::timeout_s = {}: {}; "
       "{}",
       options_.name, place_.count, what, options_.hosts->timeout_s, fmt::join(missing, ", "),
       remedy);
}

/// Throws if a host runs another program, or expects another number of hosts.
void SystemHosts::require_fitting() {
  const std::lock_guard lock(mutex_);
  const std::string own = build_of_this_program();
  for (std::size_t host = 1; host < members_.size(); ++host) {
    const JoinNews& joined = members_[host].joined;
    if (joined.host_count != place_.count) {
      fail(Errc::mesh_mismatch,
           "actor system \"{}\": host {} ({}) has WEFT_HOSTS = {}, and host 0 has {}: give all "
           "hosts the same number",
           options_.name, host, joined.machine, joined.host_count, place_.count);
    }
    if (joined.build != own) {
      fail(Errc::version,
           "actor system \"{}\": host {} ({}) runs build {:.12} of the program, and host 0 build "
           "{:.12}: install the same build on all hosts",
           options_.name, host, joined.machine, joined.build, own);
    }
  }
}

bool SystemHosts::is_up(int host) const {
  const std::lock_guard lock(mutex_);
  return host == 0 || !members_.at(static_cast<std::size_t>(host)).is_lost;
}

std::string SystemHosts::name(int host) const {
  if (host == 0) return fmt::format("host 0 ({})", machine_name());
  const std::lock_guard lock(mutex_);
  return fmt::format("host {} ({})", host,
                     members_.at(static_cast<std::size_t>(host)).joined.machine);
}

// --- Processes ---

void SystemHosts::add_process(const PeerFacts& facts) {
  peers_->set_host(facts.peer.slot, facts.host);
  if (facts.host != 0) relay_->add_stand_in(facts, options_.heap_bytes);
  {
    const std::lock_guard lock(mutex_);
    facts_[facts.peer.slot] = facts;
    std::erase_if(buried_, [&](const auto& each) { return each.second >> 32U == facts.peer.slot; });
  }
  tell_state(facts.peer, PeerState::joining);
}

void SystemHosts::tell_state(PeerId peer, PeerState state) {
  PeerFacts facts;
  {
    const std::lock_guard lock(mutex_);
    facts = facts_[peer.slot];
  }
  if (facts.peer != peer) return;  // the process died before the other hosts knew it
  relay_->send_all(HostOp::peer, written(PeerOrder{.slot = peer.slot,
                                                   .incarnation = peer.incarnation,
                                                   .state = static_cast<std::uint8_t>(state),
                                                   .role = static_cast<std::uint8_t>(facts.role),
                                                   .host = facts.host,
                                                   .ports = facts.ports}));
}

void SystemHosts::set_dead(PeerId peer) {
  tell_state(peer, PeerState::dead);
  relay_->end_stand_in(peer);
}

bool SystemHosts::may_free(PeerId peer) {
  if (!relay_->has_forgotten(peer)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = facts_.find(peer.slot);
  if (found == facts_.end() || found->second.peer != peer) return true;
  for (int host = 1; host < place_.count; ++host) {
    const bool is_lost = members_[static_cast<std::size_t>(host)].is_lost;
    if (!is_lost && !buried_.contains({host, peer.word()})) return false;
  }
  return true;
}

// --- News of the hosts ---

void SystemHosts::on_order(int host, HostOp op, std::span<const std::byte> body) {
  switch (op) {
    case HostOp::join: {
      const auto news = read_order<JoinNews>(body);
      logger("weft.trainer")
          ->info("actor system {}: host {} ({}, pid {}) joined", options_.name, host, news.machine,
                 news.pid);
      const std::lock_guard lock(mutex_);
      members_.at(static_cast<std::size_t>(host)).joined = news;
      members_.at(static_cast<std::size_t>(host)).has_joined = true;
      return changed_.notify_all();
    }
    case HostOp::ready: {
      const std::lock_guard lock(mutex_);
      members_.at(static_cast<std::size_t>(host)).is_ready = true;
      return changed_.notify_all();
    }
    case HostOp::ended: return hooks_.on_ended(read_order<EndedNews>(body));
    case HostOp::buried: {
      const auto news = read_order<PeerOrder>(body);
      const std::lock_guard lock(mutex_);
      buried_.emplace(host, PeerId{.slot = news.slot, .incarnation = news.incarnation}.word());
      return;
    }
    case HostOp::cut: {
      const auto news = read_order<LostHost>(body);
      if (news.host < 1 || news.host >= place_.count || news.host == host) {
        fail(Errc::corrupt, "host {} tells that its link to host {} is lost", host, news.host);
      }
      cuts_.push_back({.due = Clock::now() + kBetterCause,
                       .host = std::max(host, news.host),
                       .other = std::min(host, news.host),
                       .why = news.why});
      return;
    }
    case HostOp::counts: {
      const auto news = read_order<CountNews>(body);
      actors_->head().copied_tensors.fetch_add(news.copied_tensors, std::memory_order_relaxed);
      actors_->head().lost_tells.fetch_add(news.lost_tells, std::memory_order_relaxed);
      return;
    }
    case HostOp::hung: return hooks_.on_hung(read_order<HungNews>(body));
    default:
      fail(Errc::corrupt, "host {} sends an order of kind {}", host,
           static_cast<std::uint32_t>(op));
  }
}

/// Drops one host of each two that don't reach each other although both reach host 0: nobody can
/// tell which of the two is at fault.
bool SystemHosts::on_tick() {
  while (!cuts_.empty() && Clock::now() >= cuts_.front().due) {
    const Cut cut = cuts_.front();
    cuts_.erase(cuts_.begin());
    if (!is_up(cut.host) || !is_up(cut.other)) continue;
    relay_->drop(cut.host, "its link to another host is lost");
    on_lost(cut.host, fmt::format("it and host {} don't reach each other: {}", cut.other, cut.why));
  }
  return false;
}

void SystemHosts::on_lost(int host, const std::string& why) {
  if (is_ending_.load()) return;  // the host has ended because the system ends
  const std::string who = name(host);
  {
    const std::lock_guard lock(mutex_);
    Member& member = members_.at(static_cast<std::size_t>(host));
    if (member.is_lost) return;
    member.is_lost = true;
    const bool all_ready =
        std::all_of(members_.begin() + 1, members_.end(), [](auto& each) { return each.is_ready; });
    if (!all_ready) {
      failure_ = fmt::format("actor system \"{}\": {} was lost while the hosts met: {}",
                             options_.name, who, why);
    }
  }
  changed_.notify_all();
  logger("weft.trainer")->error("actor system {}: {} is lost: {}", options_.name, who, why);
  relay_->send_all(HostOp::gone, written(LostHost{.host = host, .why = why}));
  hooks_.on_lost(host, why);
}

}  // namespace weft
