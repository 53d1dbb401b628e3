#include "bench/collectives/rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/collectives/pattern.hpp"
#include "bench/cores.hpp"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the seconds per repetition, as the median over the request's parts.
template <typename Body>
double time_repetitions(const Request& request, Body&& repetition) {
  const std::int64_t parts = std::min<std::int64_t>(request.parts, request.repetitions);
  std::vector<double> seconds;
  seconds.reserve(static_cast<std::size_t>(parts));
  Clock::time_point start = Clock::now();
  for (std::int64_t part = 0, i = 0; part < parts; ++part) {
    const std::int64_t begin = i;
    for (const std::int64_t end = request.repetitions * (part + 1) / parts; i < end; ++i) {
      repetition(static_cast<int>(i % 2));
    }
    const Clock::time_point end = Clock::now();
    seconds.push_back(std::chrono::duration<double>(end - start).count() /
                      static_cast<double>(i - begin));
    start = end;
  }
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

/// Prevents the compiler from removing a computation whose result isn't used.
void keep(std::uint32_t value) { asm volatile("" : : "r"(value) : "memory"); }

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Times the repetitions of one request for a collective.
class Batch {
 public:
  Batch(int rank, int ranks, Collectives& collectives, const Request& request)
      : rank_(rank),
        ranks_(ranks),
        collectives_(collectives),
        request_(request),
        buffers_(collectives.prepare(request.op, request.bytes, request.metric)) {}

  Reply run() {
    Reply reply;
    verify(request_.round);
    if (request_.metric == Metric::loop) {
      reply.call_seconds = time_loop();
    } else if (request_.round % 2 == 0) {
      reply.call_seconds = time_cycle();
      reply.baseline_seconds = time_baseline();
    } else {
      reply.baseline_seconds = time_baseline();
      reply.call_seconds = time_cycle();
    }
    if (!buffers_.destination.empty()) reply.verified = correct_;
    return reply;
  }

 private:
  Expected expected(int seed) const {
    return {request_.op, rank_, ranks_, buffers_.destination.size(), seed};
  }

  /// Makes one call with fresh values and verifies its result. The call also brings the memory that
  /// it uses into the caches.
  void verify(int seed) {
    fill(buffers_.source, rank_, seed);
    collectives_.barrier();
    collectives_.run();
    collectives_.barrier();
    correct_ = expected(seed).equals(buffers_.destination);
  }

  template <typename Body>
  double time(Body&& repetition) {
    collectives_.barrier();
    const double seconds = time_repetitions(request_, repetition);
    // A reply wakes the bench, which would disturb ranks that aren't finished, so the barrier comes
    // before the reply.
    collectives_.barrier();
    return seconds;
  }

  double time_loop() {
    return time([this](int) { collectives_.run(); });
  }

  double time_cycle() {
    const std::uint32_t sums[2] = {expected(0).checksum(), expected(1).checksum()};
    return time([&](int seed) {
      fill(buffers_.source, rank_, seed);
      collectives_.run();
      if (checksum(buffers_.destination) != sums[seed]) correct_ = false;
    });
  }

  double time_baseline() {
    return time([this](int seed) {
      fill(buffers_.source, rank_, seed);
      collectives_.barrier();
      keep(checksum(buffers_.destination));
    });
  }

  int rank_;
  int ranks_;
  Collectives& collectives_;
  const Request& request_;
  Buffers buffers_;
  bool correct_ = true;
};

/// Times the repetitions of one request for a channel.
class ChannelBatch {
 public:
  ChannelBatch(int rank, Collectives& collectives, const Request& request)
      : rank_(rank), collectives_(collectives), request_(request) {
    collectives.open_channel(request.bytes);
    const std::size_t count = request.bytes / sizeof(float);
    for (int seed = 0; seed < 2; ++seed) {
      sums_[seed] = Expected(Op::broadcast, rank_, 2, count, seed).checksum();
    }
  }

  Reply run() {
    Reply reply;
    const bool stream = request_.metric == Metric::loop;
    collectives_.barrier();
    reply.call_seconds = time_repetitions(request_, [&](int seed) {
      if (rank_ == 0) send(seed);
      if (rank_ == 1 || !stream) receive(seed);
      if (rank_ == 1 && !stream) send(seed);
    });
    collectives_.barrier();
    reply.verified = correct_;
    return reply;
  }

 private:
  void send(int seed) {
    fill(collectives_.loan(), 0, seed);
    collectives_.send();
  }
  void receive(int seed) {
    if (checksum(collectives_.receive()) != sums_[seed]) correct_ = false;
    collectives_.release();
  }

  int rank_;
  Collectives& collectives_;
  const Request& request_;
  std::uint32_t sums_[2] = {};
  bool correct_ = true;
};

[[noreturn]] void fail_unavailable(std::string_view what) {
  fail(Errc::unavailable, "this implementation has no {}", what);
}

}  // namespace

Counts counts_of(Op op, std::size_t count, int ranks) {
  const std::size_t part = count / static_cast<std::size_t>(ranks);
  switch (op) {
    case Op::all_reduce:
    case Op::all_to_all:
    case Op::broadcast: return {count, count};
    case Op::reduce_scatter: return {count, part};
    case Op::all_gather: return {part, count};
    case Op::barrier:
    case Op::channel:
    case Op::probe: break;
  }
  return {};
}

Buffers Collectives::prepare(Op op, std::size_t, Metric) { fail_unavailable(to_string(op)); }
void Collectives::run() { fail_unavailable("collectives"); }
void Collectives::open_channel(std::size_t) { fail_unavailable("channel"); }
std::span<float> Collectives::loan() { fail_unavailable("channel"); }
void Collectives::send() { fail_unavailable("channel"); }
std::span<const float> Collectives::receive() { fail_unavailable("channel"); }
void Collectives::release() { fail_unavailable("channel"); }

Place Place::from_environment() {
  return {.rank = std::atoi(variable(kRankVariable).c_str()),
          .ranks = std::atoi(variable(kRanksVariable).c_str()),
          .job = variable(kJobVariable),
          .folder = variable(kFolderVariable)};
}

bool core_each(int ranks) {
  const cpu_set_t cores = allowed_cores();
  return ranks <= CPU_COUNT(&cores);
}

void pin(int rank, int ranks) {
  if (core_each(ranks)) bind_to_core(allowed_cores(), rank);
}

void serve(int rank, int ranks, Collectives& collectives) {
  Connection connection = Connection::open(variable(kSocketVariable));
  connection.send(Hello{rank});
  while (const auto message = connection.receive()) {
    const auto request = message->get<Request>();
    Reply reply;
    try {
      reply = request.op == Op::channel ? ChannelBatch(rank, collectives, request).run()
                                        : Batch(rank, ranks, collectives, request).run();
    } catch (const std::exception& error) {
      reply.error = error.what();
    }
    connection.send(reply);
  }
}

int run_rank(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace weft::bench
