#include "bench/calls/calls.hpp"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

void check(std::uint64_t got, std::size_t words, std::uint64_t begin) {
  const std::uint64_t expected = words * begin + words * (words - 1) / 2;
  if (got != expected) fail(Errc::corrupt, "the server's sum is {}, not {}", got, expected);
}

double percentile(std::vector<double>& times, double part) {
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return times[static_cast<std::size_t>(at)];
}

void measure_calls(CallsClient& client, std::size_t words, std::chrono::milliseconds time) {
  std::vector<double> us;
  std::uint64_t begin = 0;
  const auto once = [&] {
    const auto since = Clock::now();
    const std::uint64_t sum = client.call(words, ++begin);
    const auto took = Clock::now() - since;
    check(sum, words, begin);
    return std::chrono::duration<double, std::micro>(took).count();
  };
  for (int i = 0; i < 3; ++i) once();
  for (const auto until = Clock::now() + time; Clock::now() < until;) us.push_back(once());
  fmt::print("{{\"p50\": {}, \"p99\": {}}}\n", percentile(us, 0.5), percentile(us, 0.99));
}

void measure_stream(CallsClient& client, std::size_t words, std::chrono::milliseconds time) {
  // Makes the burst so long that the time for its one answer is negligible, but limits the amount
  // of data.
  const int burst = static_cast<int>(std::clamp<std::size_t>((8 << 20) / words, 4, 2000));
  check(client.stream(words, burst), words, 0);
  std::int64_t count = 0;
  const auto since = Clock::now();
  while (Clock::now() - since < time) {
    check(client.stream(words, burst), words, 0);
    count += burst;
  }
  const std::chrono::duration<double> took = Clock::now() - since;
  fmt::print("{{\"per_s\": {}}}\n", static_cast<double>(count) / took.count());
}

}  // namespace

void fill_words(std::span<std::uint64_t> words, std::uint64_t begin) {
  std::iota(words.begin(), words.end(), begin);
}

std::uint64_t sum_words(std::span<const std::uint64_t> words) {
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0});
}

int run_calls(int argc, char** argv, const std::function<CallsClient&()>& start) {
  if (argc != 4) {
    fmt::print(stderr, "usage: {} call|stream BYTES MILLISECONDS\n", argv[0]);
    return 2;
  }
  try {
    const std::size_t words = std::max<std::size_t>(std::stoul(argv[2]) / 8, 1);
    const std::chrono::milliseconds time(std::stol(argv[3]));
    CallsClient& client = start();
    (argv[1] == std::string("call") ? measure_calls : measure_stream)(client, words, time);
    std::fflush(stdout);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
}

void fork_server(const std::function<void()>& serve) {
  const pid_t pid = ::fork();
  if (pid < 0) fail(Errc::io, "fork failed");
  if (pid != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    serve();
  } catch (const std::exception& error) {
    fmt::print(stderr, "server: {}\n", error.what());
  }
  ::_exit(1);
}

void poll_again() {
  static const bool has_cores = usable_cores() > 1;
  if (has_cores) {
    __builtin_ia32_pause();
  } else {
    ::sched_yield();
  }
}

}  // namespace weft::bench
