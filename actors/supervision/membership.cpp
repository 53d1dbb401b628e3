#include "actors/supervision/membership.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {

std::string JobHosts::name(int host) const {
  const std::string& machine = at(host).machine;
  const int first = first_worker(host);
  const int last = first + workers_per_host_ - 1;
  return fmt::format("host {} ({}{})", host, machine.empty() ? "" : machine + ", ",
                     first == last ? fmt::format("worker {}", first)
                                   : fmt::format("workers {} to {}", first, last));
}

std::optional<std::string> JobHosts::refuse(int host, int num_hosts) const {
  if (num_hosts != count()) {
    return fmt::format(
        "host {} has WEFT_HOSTS = {}, but host 0 has {}: start all hosts with the same WEFT_HOSTS",
        host, num_hosts, count());
  }
  if (host < 1 || host >= count()) {
    return fmt::format(
        "a host has WEFT_HOST_INDEX = {}: expected 1 to {}; give each host its own index", host,
        count() - 1);
  }
  if (!has_joined(host)) return {};
  return fmt::format(
      "two hosts have WEFT_HOST_INDEX = {}: {} has joined with it already; give each host its own "
      "index, from 0 to {}",
      host, at(host).machine, count() - 1);
}

void JobHosts::joined(const HostArrival& arrival) {
  Host& host = at(arrival.host);
  const bool has_memory = arrival.was_here && arrival.memory_id == host.memory_id;
  if (has_memory && host.had_state) host.is_empty = false;
  host.machine = arrival.machine;
  host.memory_id = arrival.memory_id;
}

bool JobHosts::holds(int host, const std::string& memory_id) const {
  return host >= 1 && host < count() && has_joined(host) && at(host).memory_id == memory_id;
}

void JobHosts::lost(int host, bool is_copied) {
  is_copied_ = is_copied && have_state();
  at(host).machine.clear();
  at(host).had_state = !at(host).is_empty;
  at(host).is_empty = true;
}

std::vector<std::string> JobHosts::missing() const {
  std::vector<std::string> missing;
  for (int host = 1; host < count(); ++host) {
    if (!has_joined(host)) missing.push_back(name(host) + " has not joined");
  }
  return missing;
}

std::uint64_t JobHosts::prepare() {
  for (int host = 1; host < count(); ++host) at(host).is_prepared = false;
  return ++preparations_;
}

void JobHosts::prepared(int host, std::uint64_t number) {
  if (number == preparations_) at(host).is_prepared = true;
}

bool JobHosts::are_prepared() const { return std::ranges::all_of(hosts_, &Host::is_prepared); }

void JobHosts::all_have_state() {
  for (Host& host : hosts_) host.is_empty = false;
}

std::vector<std::int32_t> JobHosts::donors() const {
  std::vector<std::int32_t> full;
  for (int host = 0; host < count(); ++host) {
    if (!at(host).is_empty) full.push_back(host);
  }
  if (full.size() == hosts_.size()) return {};
  std::vector<std::int32_t> donors(hosts_.size(), -1);
  std::size_t given = 0;
  for (int host = 1; host < count(); ++host) {
    if (!at(host).is_empty) continue;
    donors[static_cast<std::size_t>(host)] = full[given++ % full.size()];
  }
  return donors;
}

std::string JobHosts::unprepared() const {
  std::vector<std::string> names;
  for (int host = 1; host < count(); ++host) {
    if (!at(host).is_prepared) names.push_back(name(host));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace weft
