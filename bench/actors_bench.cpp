/// Measures calls of an actor in another process. `call` waits for each answer. `tell` sends 256
/// messages and then waits for the answer of a call. `tensor` sends loaned tensors, which the actor
/// reads.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include <weft/actor.hpp>

namespace {

struct Numbers {
  std::int64_t a = 0, b = 0, c = 0, d = 0;  // 32 bytes
};

struct Adder {
  std::int64_t add(const Numbers& n) const { return n.a + n.b + n.c + n.d; }
  void count(const Numbers& n) { total_ += n.a; }
  std::int64_t total() const { return total_; }
  std::uint64_t sum(const weft::HostTensor& tensor) const {
    const auto words = tensor.get<std::int64_t>();
    return static_cast<std::uint64_t>(std::accumulate(words.begin(), words.end(), std::int64_t{0}));
  }
  using endpoints = weft::Endpoints<&Adder::add, &Adder::count, &Adder::total, &Adder::sum>;

 private:
  std::int64_t total_ = 0;
};
weft::ActorType<Adder> adder{"bench.adder"};

/// The actors of all benchmarks, in one system, so that no benchmark measures the start of
/// processes.
struct Actors {
  weft::ActorSystem system{};
  weft::ActorMesh<Adder> adders =
      system.spawn(adder, {.place = weft::processes(1), .own_thread = true});
};
std::optional<Actors> actors;

void call(benchmark::State& state) {
  std::int64_t sum = 0;
  for (auto _ : state) sum += actors->adders[0].call<&Adder::add>(Numbers{1, 2, 3, 4}).get();
  benchmark::DoNotOptimize(sum);
}

void tell(benchmark::State& state) {
  constexpr int kMessages = 256;
  for (auto _ : state) {
    for (int i = 0; i < kMessages; ++i) actors->adders[0].tell<&Adder::count>(Numbers{1, 2, 3, 4});
    benchmark::DoNotOptimize(actors->adders[0].call<&Adder::total>().get());
  }
  state.SetItemsProcessed(state.iterations() * kMessages);
}

void tensor(benchmark::State& state) {
  const std::int64_t words = state.range(0) / 8;
  for (auto _ : state) {
    weft::LoanedTensor loaned = actors->system.loan({weft::DType::i64, {words}});
    std::span<std::int64_t> all = loaned.get<std::int64_t>();
    std::fill(all.begin(), all.end(), 1);
    benchmark::DoNotOptimize(actors->adders[0].call<&Adder::sum>(std::move(loaned).finish()).get());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void spawn(benchmark::State& state) {
  for (auto _ : state) {
    actors->system.spawn(adder, {.name = "more", .place = weft::processes(1)});
    state.PauseTiming();
    actors->system.stop("more");
    state.ResumeTiming();
  }
}

BENCHMARK(call)->UseRealTime();
BENCHMARK(tell)->UseRealTime();
BENCHMARK(tensor)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20)->UseRealTime();
BENCHMARK(spawn)->Iterations(20)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  benchmark::Initialize(&argc, argv);
  actors.emplace();
  benchmark::RunSpecifiedBenchmarks();
  actors.reset();
}
