#include "bench/collectives/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <random>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "transport/job/job_memory.hpp"

namespace weft::bench {
namespace {

constexpr std::chrono::milliseconds kStartTimeout{60'000};

/// Returns a random job id of 32 hex digits.
std::string make_job() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

Team::Team(const Launch& launch, int ranks, Meeting& meeting)
    : name_(launch.name), setting_(launch.setting), ops_(launch.ops), num_ranks_(ranks) {
  ranks_.resize(static_cast<std::size_t>(ranks));
  try {
    launch_ranks(launch, meeting);
  } catch (...) {
    stop();
    throw;
  }
}

Team::~Team() { stop(); }

void Team::stop() {
  ranks_.clear();
  for (Process& process : processes_) process.stop(std::chrono::seconds(2));
  processes_.clear();
  daemon_.reset();
  if (!job_.empty()) JobMemory::remove(job_);
}

void Team::launch_ranks(const Launch& launch, Meeting& meeting) {
  Process::Environment environment = launch.environment;
  environment.emplace_back(kSocketVariable, meeting.socket_path());
  environment.emplace_back(kRanksVariable, fmt::to_string(num_ranks_));
  environment.emplace_back(kFolderVariable, meeting.make_folder());
  if (launch.arena_capacity != 0) {
    job_ = make_job();
    JobMemory::create(
        {.job = job_, .num_chips = num_ranks_, .arena_capacity = launch.arena_capacity});
    environment.emplace_back(kJobVariable, job_);
  }
  if (!launch.daemon.empty()) daemon_.emplace(launch.daemon, environment);
  environment.emplace_back(kRankVariable, "");
  for (int rank = 0; rank < (launch.rank_each ? num_ranks_ : 1); ++rank) {
    environment.back().second = fmt::to_string(rank);
    std::vector<std::string> command;
    if (!launch.prefixes.empty()) command = launch.prefixes.at(static_cast<std::size_t>(rank));
    command.insert(command.end(), launch.command.begin(), launch.command.end());
    processes_.emplace_back(command, environment);
  }
  const auto deadline = std::chrono::steady_clock::now() + kStartTimeout;
  for (int i = 0; i < num_ranks_; ++i) {
    Connection connection = await_rank(meeting, deadline);
    const auto hello = connection.receive();
    if (!hello) fail(Errc::io, "{}: a rank ended right after its start", label());
    ranks_.at(static_cast<std::size_t>(hello->get<Hello>().rank)).emplace(std::move(connection));
  }
}

Connection Team::await_rank(Meeting& meeting, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    auto connection = meeting.accept(std::chrono::milliseconds(100));
    if (connection) return std::move(*connection);
    if (std::ranges::any_of(processes_, &Process::ended)) {
      fail(Errc::unavailable, "{}: a process ended before all {} ranks had connected", label(),
           num_ranks_);
    }
    if (std::chrono::steady_clock::now() > deadline) {
      fail(Errc::timeout, "{}: the {} ranks didn't connect within {} s", label(), num_ranks_,
           kStartTimeout.count() / 1000);
    }
  }
}

std::string Team::label() const {
  return setting_.empty() ? name_ : fmt::format("{} ({})", name_, setting_);
}

bool Team::offers(Op op) const { return std::ranges::find(ops_, op) != ops_.end(); }

Reply Team::reply_of(std::size_t rank) {
  try {
    const auto message = ranks_[rank]->receive();
    if (!message) fail(Errc::io, "it is gone");
    const auto reply = message->get<Reply>();
    if (!reply.error.empty()) fail(Errc::unavailable, "{}", reply.error);
    return reply;
  } catch (const Error& error) {
    fail(error.code(), "{}: rank {}: {}", label(), rank, error.what());
  }
}

Reply Team::run(const Request& request) {
  for (auto& rank : ranks_) rank->send(request);
  Reply slowest;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Reply reply = reply_of(i);
    slowest.call_seconds = std::max(slowest.call_seconds, reply.call_seconds);
    slowest.baseline_seconds = std::max(slowest.baseline_seconds, reply.baseline_seconds);
    if (reply.verified) slowest.verified = slowest.verified.value_or(true) && *reply.verified;
  }
  return slowest;
}

}  // namespace weft::bench
