/// Counts primes with eight actors in four processes, and shows what callers see if actors fail.
///
///   sieve [PRIMES_BELOW]

#include <weft/actor.hpp>

#include <cstdint>
#include <cstdlib>
#include <stop_token>
#include <vector>

#include <fmt/format.h>

namespace {

struct Range {  // a plain aggregate is a message
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

struct Sieve {
  std::int64_t primes(const Range& range) const {  // const: called again if a process is lost
    std::int64_t count = 0;
    for (std::int64_t n = range.begin; n < range.end; ++n) count += is_prime(n) ? 1 : 0;
    return count;
  }
  using endpoints = weft::Endpoints<&Sieve::primes>;
};
weft::ActorType<Sieve> sieve{"sieve"};

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  const std::int64_t below = argc > 1 ? std::atoll(argv[1]) : 8000;
  weft::ActorSystem system{{.name = "sieves"}};
  const auto sieves =
      system.spawn(sieve, {.count = 8,
                           .place = weft::processes(4),
                           .supervision = {.max_restarts = 3, .then = weft::ActorGivesUp::stop}});
  std::vector<Range> parts;
  for (std::int64_t i = 0; i < 8; ++i) parts.push_back({i * below / 8, (i + 1) * below / 8});

  std::stop_source stop;  // request_stop() cancels the calls
  auto counts =
      sieves.with({.timeout_s = 60, .stop = stop.get_token()}).scatter<&Sieve::primes>(parts);
  std::int64_t total = 0;
  for (int i = 0; const auto& count : counts.outcomes()) {
    const auto name = sieves[i++].name();
    if (count.ok()) {
      fmt::print("{}: {}\n", name, count.value());
      total += count.value();
    } else {
      fmt::print("{}: {}\n", name, count.error().what());
    }
  }
  fmt::print("{} primes below {}\n", total, below);
  return sieves.any().call<&Sieve::primes>(Range{0, 100}).get() == 25 ? 0 : 1;
}
