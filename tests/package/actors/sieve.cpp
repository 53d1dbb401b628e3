/// The first program of docs/decisions/0099: a mesh of actors that is called and gathered.

#include <weft/actor.hpp>

struct Range {  // an aggregate can be a message
  std::int64_t begin = 0, end = 0;
};

bool is_prime(std::int64_t n) {
  for (std::int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n > 1;
}

struct Sieve {
  std::int64_t primes(const Range& r) const {  // const, so called again after a loss
    std::int64_t n = 0;
    for (auto i = r.begin; i < r.end; ++i) n += is_prime(i);
    return n;
  }
  using endpoints = weft::Endpoints<&Sieve::primes>;
};
static weft::ActorType<Sieve> sieve{"acme.sieve"};

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  weft::ActorSystem system{{.name = "sieves"}};
  const auto sieves =
      system.spawn(sieve, {.count = 8,
                           .place = weft::processes(4),
                           .supervision = {.max_restarts = 3, .then = weft::ActorGivesUp::stop}});
  std::vector<Range> parts;
  for (int i = 0; i < 8; ++i) parts.push_back({i * 1000, (i + 1) * 1000});
  std::stop_source stop;  // request_stop() cancels
  auto counts = sieves.with({.timeout_s = 5, .stop = stop.get_token()})
                    .scatter<&Sieve::primes>(parts);        // one part per actor
  for (int i = 0; const auto& count : counts.outcomes()) {  // value or Error, in mesh order
    const auto name = sieves[i++].name();
    if (count.ok()) {
      fmt::print("{}: {}\n", name, count.value());
    } else {
      fmt::print("{}: {}\n", name, count.error().what());  // code(): timeout, ...
    }
  }
  return sieves.any().call<&Sieve::primes>(Range{0, 99}).get() == 25 ? 0 : 1;  // the least busy
}
