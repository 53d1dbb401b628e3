// The part of JobState that handles the other hosts: host 0 is the trainer's own.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "actors/supervision/job_state.hpp"

namespace weft {

int JobState::host_of(int worker) const {
  return worker / (terms_.num_workers / terms_.num_hosts);
}

bool JobState::has_joined(int host) const {
  return host == 0 || !hosts_[static_cast<std::size_t>(host)].machine.empty();
}

/// Returns a text such as "host 1 (node7, workers 2 to 3)".
std::string JobState::host_name(int host) const {
  const int workers = terms_.num_workers / terms_.num_hosts;
  const std::string& machine = hosts_[static_cast<std::size_t>(host)].machine;
  const int first = host * workers;
  return fmt::format("host {} ({}{})", host, machine.empty() ? "" : machine + ", ",
                     workers == 1 ? fmt::format("worker {}", first)
                                  : fmt::format("workers {} to {}", first, first + workers - 1));
}

std::optional<std::string> JobState::refuse_host(int host, int num_hosts) const {
  const int count = terms_.num_hosts;
  if (num_hosts != count) {
    return fmt::format(
        "a host joined with the number of hosts {}, but host 0 has {}: start all hosts with the "
        "same WEFT_HOSTS",
        num_hosts, count);
  }
  if (host < 1 || host >= count) {
    return fmt::format("a host joined with WEFT_HOST_INDEX = {}: expected 1 to {}", host,
                       count - 1);
  }
  if (has_joined(host)) {
    return fmt::format(
        "two hosts have WEFT_HOST_INDEX = {}: {} has joined already; give each host its own index, "
        "from 0 to {}",
        host, hosts_[static_cast<std::size_t>(host)].machine, count - 1);
  }
  if (over()) return "the job is over";
  return {};
}

void JobState::host_joined(int host, std::string machine) {
  hosts_.at(static_cast<std::size_t>(host)).machine = std::move(machine);
}

Actions JobState::host_lost(int host, const std::string& why) {
  if (over()) return {};
  return fail_with({.code = Errc::peer_lost,
                    .message = fmt::format("{} is lost: {}", host_name(host), why),
                    .worker = host * (terms_.num_workers / terms_.num_hosts)});
}

Actions JobState::prepared(int host, std::uint64_t number) {
  if (phase_ != JobPhase::preparing || number != preparations_) return {};
  hosts_.at(static_cast<std::size_t>(host)).is_prepared = true;
  return start_if_prepared();
}

std::vector<std::string> JobState::missing_hosts() const {
  std::vector<std::string> missing;
  for (int host = 1; host < terms_.num_hosts; ++host) {
    if (!has_joined(host)) missing.push_back(host_name(host) + " has not joined");
  }
  return missing;
}

Actions JobState::fail_unprepared() {
  std::vector<std::string> late;
  for (int host = 1; host < terms_.num_hosts; ++host) {
    if (!hosts_[static_cast<std::size_t>(host)].is_prepared) late.push_back(host_name(host));
  }
  return fail_with({.code = Errc::timeout,
                    .message = fmt::format("the memory of {} was not ready within "
                                           "backend.timeout_s = {}",
                                           fmt::join(late, ", "), terms_.timeout_s)});
}

}  // namespace weft
