#include "actors/trainer/all_hosts_actor.hpp"

#include <algorithm>
#include <utility>

#include <caf/all.hpp>

#include "actors/process/log.hpp"

namespace weft {
AllHosts::AllHosts(HostLink& own, const JobSpec& spec)
    : own_(own), workers_per_host_(spec.workers_per_host()), commits_(spec.place.count) {
  for (int host = 1; host < spec.place.count; ++host) others_[host];
}

void AllHosts::add(int host, const AgentActor& agent, std::optional<std::uint64_t> committed) {
  Other& other = others_.at(host);
  other.agent = agent;
  other.heard = Clock::now();
  if (committed) commits_.returned(host, *committed);
}

std::optional<int> AllHosts::find(const caf::actor_addr& agent) const {
  for (const auto& [host, other] : others_) {
    if (other.agent != nullptr && other.agent.address() == agent) return host;
  }
  return {};
}

std::optional<int> AllHosts::host_of(const caf::strong_actor_ptr& sender) const {
  if (sender == nullptr) return {};
  return find(caf::actor_cast<caf::actor_addr>(sender));
}

void AllHosts::lose(int host, const std::string& why) {
  Other& other = others_.at(host);
  if (other.agent != nullptr) post(other.agent, dropped_a_v, why);
  other = {};
  commits_.lost(host);
}

std::vector<int> AllHosts::beat(Clock::time_point now, Clock::duration longest) {
  tell_all(beat_a_v);
  const bool stood_still = now - std::exchange(beaten_, now) > kStandstill;
  std::vector<int> silent;
  for (auto& [host, other] : others_) {
    if (stood_still) other.heard = now;
    if (other.agent != nullptr && now - other.heard > longest) silent.push_back(host);
  }
  return silent;
}

template <typename... Content>
void AllHosts::tell_all(const Content&... content) const {
  for (const auto& [host, other] : others_) {
    if (other.agent != nullptr) post(other.agent, content...);
  }
}

template <typename... Content>
void AllHosts::tell_host_of(int worker, const Content&... content) const {
  const auto host = others_.find(worker / workers_per_host_);
  if (host != others_.end() && host->second.agent != nullptr) {
    post(host->second.agent, content...);
  }
}

void AllHosts::take(const HostNews& news) {
  Other& other = others_.at(news.host);
  other.heard = Clock::now();
  if (news.generation == generation_) commits_.told(news.host, news.committed);
  other.processes.clear();
  for (const HostProcess& process : news.processes) {
    if (process.worker / workers_per_host_ == news.host) {
      other.processes[process.worker] = process;
    }
  }
  try {
    own_.copy_rows(news);
  } catch (const Error& error) {
    if (std::exchange(other.has_sent_bad_rows, true)) return;
    logger("weft.trainer")->warn("host {}: {}", news.host, error.what());
  }
}

void AllHosts::committed(int worker, std::uint64_t step) {
  commits_.told(worker / workers_per_host_, step);
}

void AllHosts::prepare(const action::Prepare& prepare) {
  generation_ = prepare.generation;
  commits_.prepare(prepare.step);
  tell_all(prepare_a_v, prepare.generation, prepare.step, prepare.number, prepare.seed);
}

void AllHosts::launch(int worker) { tell_host_of(worker, launch_a_v, std::int32_t{worker}); }

void AllHosts::kill(int worker, bool dumps_stack) {
  tell_host_of(worker, kill_a_v, std::int32_t{worker}, dumps_stack);
}

void AllHosts::keep_hang(bool is_kept) const { tell_all(keep_a_v, is_kept); }

void AllHosts::stop() { tell_all(stop_a_v); }

std::uint64_t AllHosts::common_step() const { return commits_.least(own_.common_step()); }

void AllHosts::abort(std::string_view why) {
  own_.abort(why);
  tell_all(abort_a_v, generation_, std::string(why));
}

void AllHosts::remove_arena_names() {
  own_.remove_arena_names();
  tell_all(unlink_a_v);
}

const HostProcess* AllHosts::find(const ProcessId& process) const {
  const auto host = others_.find(process.worker / workers_per_host_);
  if (host == others_.end()) return nullptr;
  const auto known = host->second.processes.find(process.worker);
  return known == host->second.processes.end() ? nullptr : &known->second;
}

std::string AllHosts::describe_process(const ProcessId& process) const {
  if (is_own(process.worker)) return own_.describe_process(process);
  const HostProcess* const known = find(process);
  return known == nullptr ? "was not reported by its host yet" : known->doing;
}

std::uint64_t AllHosts::core_time(const ProcessId& process) const {
  if (is_own(process.worker)) return own_.core_time(process);
  const HostProcess* const known = find(process);
  return known == nullptr ? 0 : known->core_time;
}

void AllHosts::mark_lost(int worker, std::string_view why) {
  own_.mark_lost(worker, why);
  tell_host_of(worker, lost_a_v, std::int32_t{worker});
}

void AllHosts::set_status(JobStatus status) {
  own_.set_status(status);
  tell_all(status_a_v, static_cast<std::uint8_t>(status));
}

}  // namespace weft
