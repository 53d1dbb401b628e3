#include "actors/launch/core_shares.hpp"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <tuple>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

int read_number(const std::string& path, int otherwise) {
  std::ifstream in(path);
  int value = 0;
  return in >> value ? value : otherwise;
}

}  // namespace

std::vector<std::vector<int>> deal_cores(std::vector<CpuPlace> cpus, int workers) {
  const auto core_of = [](const CpuPlace& place) { return std::tie(place.package, place.core); };
  std::ranges::sort(cpus, [&](const CpuPlace& a, const CpuPlace& b) {
    return std::tuple(core_of(a), a.cpu) < std::tuple(core_of(b), b.cpu);
  });
  std::vector<std::vector<int>> cores;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    if (i == 0 || core_of(cpus[i]) != core_of(cpus[i - 1])) cores.emplace_back();
    cores.back().push_back(cpus[i].cpu);
  }
  const auto count = static_cast<std::size_t>(workers);
  if (cores.size() < count) {
    fail(Errc::invalid_argument,
         "--bind cores: {} workers on {} cores: expected at most one worker for each core; "
         "give -n {} or fewer, or leave --bind out",
         workers, cores.size(), cores.size());
  }
  std::vector<std::vector<int>> shares(count);
  std::size_t next = 0;
  for (std::size_t worker = 0; worker < count; ++worker) {
    const std::size_t share = cores.size() / count + (worker < cores.size() % count ? 1 : 0);
    for (std::size_t i = 0; i < share; ++i, ++next) {
      shares[worker].insert(shares[worker].end(), cores[next].begin(), cores[next].end());
    }
    std::ranges::sort(shares[worker]);
  }
  return shares;
}

std::vector<CpuPlace> places_of(const std::vector<int>& cpus) {
  std::vector<CpuPlace> places;
  for (const int cpu : cpus) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    places.push_back({.cpu = cpu,
                      .package = read_number(folder + "physical_package_id", 0),
                      .core = read_number(folder + "core_id", cpu)});
  }
  return places;
}

std::vector<int> own_cpus() {
  cpu_set_t usable;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &usable)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string text_of_cpus(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (end - i > 1) text += fmt::format("-{}", cpus[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace weft
