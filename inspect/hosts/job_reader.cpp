#include "inspect/hosts/job_reader.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/job/job_record.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// The longest wait for a host's first answer, for which a connection must be made.
constexpr std::chrono::milliseconds kFirstPatience{3000};
/// The longest wait for each further answer.
constexpr std::chrono::milliseconds kPatience{1000};
/// After this time, a host that couldn't be reached is tried again.
constexpr std::chrono::seconds kRetryAfter{5};

/// The shortest time between two requests for a host's events, which are megabytes.
constexpr std::chrono::milliseconds kBetweenEvents{900};

/// Returns the path of this program. It is expected at the same path on the other hosts.
std::string path_of_weft() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? "weft" : path.string();
}

std::vector<std::string> words_before(const HostEntry& entry) {
  if (std::getenv(kInspectViaVariable) == nullptr) return entry.via;
  return via_of(entry.where.machine, [](const char* name) { return std::getenv(name); });
}

std::optional<SnapshotReader> open_here(const std::string& memory_id) {
  try {
    return SnapshotReader::of_job(memory_id);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
    return {};
  }
}

/// Returns the age of the host's newest row, in seconds.
double age_of(const Snapshot& job, int host) {
  std::int64_t last = 0;
  for (const ActorRow& row : job.rows) {
    const bool is_own = row.worker >= 0 && job.header.host_of(row.worker) == host;
    if (is_own) last = std::max({last, row.updated_ns, row.since_ns});
  }
  return last == 0 ? 0 : std::max(0.0, job.seconds_since(last));
}

/// Adds to `job` the copies that a host other than host 0 has kept of its part.
void add_record(Snapshot& job, Snapshot part, int host) {
  if (part.header.host != host || part.header.num_hosts != job.header.num_hosts) return;
  // After a host is gone, its times can be compared only by the time of day.
  shift_times(part, {.boottime_ns = job.header.boottime_minus_realtime_ns -
                                    part.header.boottime_minus_realtime_ns,
                     .monotonic_ns = part.unix_minus_monotonic_ns - job.unix_minus_monotonic_ns});
  merge_host(job, std::move(part));
}

/// Adds to a job that has ended the copies that all other hosts than host 0 have kept.
void add_records(Snapshot& job, const std::string& run_dir, const SnapshotParts& parts) {
  for (int host = 1; host < job.header.num_hosts; ++host) {
    const std::string folder = record_folder(run_dir, host);
    if (!SnapshotReader::is_run_folder(folder)) continue;
    Snapshot part = SnapshotReader::of_folder(folder).read(parts);
    add_record(job, std::move(part), host);
  }
}

}  // namespace

std::optional<Snapshot> JobReader::read_hang(const std::string& run_dir) {
  std::optional<Snapshot> hang = SnapshotReader::read_hang(run_dir);
  for (int host = 1; hang && host < hang->header.num_hosts; ++host) {
    auto part = SnapshotReader::read_hang(record_folder(run_dir, host));
    if (part) add_record(*hang, *std::move(part), host);
  }
  return hang;
}

JobReader JobReader::of_job(const std::string& memory_id) {
  return {SnapshotReader::of_job(memory_id), ""};
}

JobReader JobReader::of_folder(const std::string& run_dir) {
  if (!SnapshotReader::is_run_folder(run_dir) && HostList::read(run_dir)) {
    return {std::nullopt, run_dir};
  }
  return {SnapshotReader::of_folder(run_dir), run_dir};
}

bool JobReader::is_run_folder(const std::string& path) {
  std::error_code error;
  return SnapshotReader::is_run_folder(path) || fs::exists(path + "/hosts.json", error);
}

/// Finds out where the hosts are. A host that was started again has moved.
void JobReader::find_hosts() {
  const std::optional<HostList> list = HostList::read(run_dir_);
  has_list_ = list.has_value();
  if (!list) return;
  for (std::size_t i = 0; i < list->hosts.size(); ++i) {
    const HostEntry& entry = list->hosts[i];
    const auto number = static_cast<int>(i);
    if (entry.where.memory_id.empty() || number == own_host_) continue;
    Host& host = hosts_[number];
    if (host.entry.where.memory_id == entry.where.memory_id) continue;
    host = Host{.entry = entry};
  }
}

/// Opens a host's part: its memory if the host is on this machine, and otherwise a pipe.
void JobReader::reach(Host& host) {
  if (host.local || host.remote || Clock::now() < host.retry_at) return;
  const HostEntry& entry = host.entry;
  try {
    host.local = open_here(entry.where.memory_id);
    if (host.local) return;
    if (entry.is_here() && std::getenv(kInspectViaVariable) == nullptr) {
      fail(Errc::not_found,
           "its part of the job, on this machine, has ended, or isn't in the "
           "/dev/shm of this process");
    }
    std::vector<std::string> words = words_before(entry);
    words.insert(words.end(), {path_of_weft(), "inspect", "--raw", entry.where.memory_id});
    host.remote = std::make_unique<HostPipe>(words);
  } catch (const Error& error) {
    give_up(host, error.what());
  }
}

void JobReader::give_up(Host& host, const std::string& why) {
  host.silence = why;
  host.remote.reset();
  host.retry_at = Clock::now() + kRetryAfter;
}

void JobReader::take(int number, Answers& answers) {
  Host& host = hosts_.at(number);
  try {
    std::optional<Snapshot> answer = host.remote->take();
    if (!answer) return;
    if (answer->header.host != number) {
      fail(Errc::corrupt, "the command for this host has reached host {}: correct {}",
           answer->header.host, kInspectViaVariable);
    }
    for (ProcessState& process : answer->processes) process.host = number;
    for (ProcessSight& sight : answer->sights) sight.host = number;
    host.silence.clear();
    keep_events(host, *answer);
    answers.insert_or_assign(number, std::move(*answer));
  } catch (const Error& error) {
    give_up(host, error.what());
  }
}

/// Keeps the events of an answer. If the answer has none, adds the events of the last answer that
/// had some.
void JobReader::keep_events(Host& host, Snapshot& answer) {
  const bool has_own = !answer.rings.empty() || !answer.waits.empty();
  Snapshot& to = has_own ? host.events : answer;
  const Snapshot& from = has_own ? answer : host.events;
  to.rings = from.rings;
  to.waits = from.waits;
  to.texts = from.texts;
  if (has_own) host.events_at = Clock::now();
}

/// Sends the request to hosts that are reached through a command, to all at the same time, and
/// takes their answers.
JobReader::Answers JobReader::ask(const RawRequest& request, std::span<const int> hosts) {
  Answers answers;
  auto patience = kPatience;
  for (const int number : hosts) {
    const Host& host = hosts_.at(number);
    if (!host.remote) continue;
    if (!host.remote->has_answered() && !host.remote->is_asked()) patience = kFirstPatience;
    RawRequest now = request;
    if (Clock::now() - host.events_at < kBetweenEvents) {
      now.parts.events = now.parts.steps = now.parts.waits = false;
    }
    host.remote->ask(now);
  }
  const auto deadline = Clock::now() + patience;
  for (;;) {
    std::vector<pollfd> waits;
    std::vector<int> waiting;
    for (const int number : hosts) {
      const Host& host = hosts_.at(number);
      if (!host.remote || !host.remote->is_asked()) continue;
      waits.push_back({.fd = host.remote->fd(), .events = POLLIN, .revents = 0});
      waiting.push_back(number);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (waits.empty() || left.count() <= 0) break;
    if (::poll(waits.data(), waits.size(), static_cast<int>(left.count())) <= 0) continue;
    for (std::size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0) take(waiting[i], answers);
    }
  }
  for (const int number : hosts) {
    Host& host = hosts_.at(number);
    if (!host.remote || !host.remote->is_asked()) continue;
    host.silence =
        fmt::format("no answer within {:.0f} s", std::chrono::duration<double>(patience).count());
  }
  return answers;
}

Snapshot JobReader::read(const SnapshotParts& parts) {
  std::optional<Snapshot> own;
  if (own_) {
    own = own_->read(parts);
    if (own->header.num_hosts == 1) return std::move(*own);
    if (!own->live) {
      add_records(*own, run_dir_, parts);
      return std::move(*own);
    }
    run_dir_ = own->header.run_dir;
    own_host_ = own->header.host;
    local_.insert_or_assign(*own_host_, *own);
  }
  find_hosts();
  std::vector<int> numbers;
  for (auto& [number, host] : hosts_) {
    reach(host);
    numbers.push_back(number);
  }
  Answers answers = ask({.parts = parts}, numbers);
  read_local(parts, answers);
  if (own) answers.insert_or_assign(own->header.host, std::move(*own));
  return merged(std::move(answers), parts);
}

/// Reads the parts of other hosts that are on this machine.
void JobReader::read_local(const SnapshotParts& parts, Answers& answers) {
  for (auto& [number, host] : hosts_) {
    if (!host.local) continue;
    try {
      local_.insert_or_assign(number, host.local->read(parts));
      answers.insert_or_assign(number, local_.at(number));
      host.silence.clear();
    } catch (const Error& error) {
      host.local.reset();
      give_up(host, error.what());
    }
  }
}

Snapshot JobReader::merged(Answers answers, const SnapshotParts& parts) {
  if (answers.empty()) {
    std::string why;
    for (const auto& [number, host] : hosts_) {
      why += fmt::format("{}host {} ({}): {}", why.empty() ? "" : "; ", number,
                         host.entry.where.machine, host.silence);
    }
    fail(Errc::unavailable, "no host of the job in {} answers: {}", run_dir_, why);
  }
  // The answer of host 0, if it has answered; otherwise of the next host.
  Snapshot job = answers.begin()->second;
  const int first = answers.begin()->first;
  const bool is_remote = hosts_.contains(first) && hosts_.at(first).remote != nullptr;
  if (is_remote && parts.metrics) job.metrics = read_last_metrics(run_dir_);
  if (is_remote && job.over()) job.end = read_job_end(run_dir_);
  add_host_sights(job, answers);
  for (auto& [number, part] : answers) {
    if (number != first) merge_host(job, std::move(part));
  }
  return job;
}

void JobReader::add_host_sights(Snapshot& job, const Answers& answers) const {
  for (int number = 0; number < job.header.num_hosts; ++number) {
    HostSight sight{.host = number};
    const auto known = hosts_.find(number);
    if (known != hosts_.end()) {
      const Host& host = known->second;
      sight.machine = host.entry.where.machine;
      if (!host.local) sight.via = words_before(host.entry);
      if (host.remote) sight.clock_error_s = host.remote->clock_error_s();
      sight.silence = host.silence;
    }
    if (!answers.contains(number)) {
      if (!has_list_) {
        sight.silence = fmt::format(
            "{}/hosts.json is missing here, so its machine is unknown: run weft inspect where the "
            "run folder is",
            run_dir_);
      } else if (sight.silence.empty()) {
        sight.silence = "it hasn't joined";
      }
      sight.silent_s = age_of(job, number);
    }
    job.hosts.push_back(std::move(sight));
  }
}

void JobReader::add_sights(Snapshot& snapshot, std::span<const HostPid> processes) {
  if (snapshot.header.num_hosts == 1) return ::weft::add_sights(snapshot, processes);
  std::map<int, std::vector<HostPid>> wanted;
  for (const HostPid& id : processes) {
    if (snapshot.sight(id) == nullptr) wanted[id.host].push_back(id);
  }
  for (const auto& [number, ids] : wanted) {
    std::vector<ProcessSight> sights;
    if (const auto local = local_.find(number); local != local_.end()) {
      local->second.sights.clear();
      ::weft::add_sights(local->second, ids);
      sights = local->second.sights;
    } else if (hosts_.contains(number)) {
      RawRequest request{.parts = {.control = false}};
      for (const HostPid& id : ids) request.sights.push_back(id.pid);
      Answers answers = ask(request, std::array{number});
      if (answers.contains(number)) sights = std::move(answers.at(number).sights);
    }
    std::ranges::move(sights, std::back_inserter(snapshot.sights));
  }
}

}  // namespace weft
