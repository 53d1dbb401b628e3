/// Measures published parameters. `pin` makes and destroys a view of the newest version;
/// `pin_again` does so while another view of the version exists. `versions` publishes versions of 1
/// MiB while three processes read them. `step` is a step of a loop that publishes each step: step/0
/// without readers, step/1 while three processes take 5,000 views a second each. Run it with
/// --benchmark_enable_random_interleaving=true --benchmark_repetitions=20 to compare the steps.

#include <benchmark/benchmark.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "transport/published/version_writer.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReaders = 3;
constexpr std::int64_t kElements = std::int64_t{1} << 18;  // 1 MiB of f32
const std::string kJob = fmt::format("{:032x}", ::getpid());

/// Memory that this process shares with the readers.
struct Shared {
  /// The readers' task, modulo 4. 0: none; 1: they read `versions`; 2: they read the job. Each
  /// change also adds a multiple of 4, so that a reader never misses a change.
  std::atomic<int> mode;
  std::atomic<int> ready;  ///< the number of readers that have seen the present mode
  std::atomic<std::uint64_t> reads;
  char job[64];
};

Shared& shared() {
  static auto* const memory =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Shared{};
  return *memory;
}

/// Publishes in place of a job with the id kJob; no such job runs.
struct Source {
  weft::PublishedMemory memory = weft::PublishedMemory::create(
      kJob, "bench", weft::lay_out({{.name = "weight", .type = {weft::DType::f32, {kElements}}}}),
      1);
  weft::VersionWriter writer{memory, 0};
  std::uint64_t version = 0;

  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { weft::PublishedMemory::remove(kJob, "bench"); }

  bool publish() {
    ++version;
    writer.decide(version, version);
    std::byte* const place = writer.destination(version, version);
    if (place == nullptr) return false;
    std::memset(place, static_cast<int>(version), memory.version_bytes());
    writer.copied(version);
    return writer.publish(version, version);
  }
};
std::optional<Source> source;

void run_reader() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    while (shared().mode % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const int mode = shared().mode;
    if (mode % 4 == 0) continue;
    const weft::Parameters parameters(mode % 4 == 1 ? kJob : std::string(shared().job), "bench");
    shared().ready.fetch_add(1);
    while (shared().mode == mode) {
      const weft::ParameterView view = parameters.newest();
      benchmark::DoNotOptimize(view.get<float>("weight")[0]);
      shared().reads.fetch_add(1, std::memory_order_relaxed);
      if (mode % 4 == 2) std::this_thread::sleep_for(std::chrono::microseconds(150));
    }
  }
}

void set_mode(int mode) {
  shared().ready = 0;
  shared().mode = (shared().mode / 4 + 1) * 4 + mode;
  while (mode != 0 && shared().ready < kReaders) std::this_thread::yield();
}

void pin(benchmark::State& state) {
  const weft::Parameters parameters(kJob, "bench");
  for (auto _ : state) benchmark::DoNotOptimize(parameters.newest());
}

void pin_again(benchmark::State& state) {
  const weft::Parameters parameters(kJob, "bench");
  const weft::ParameterView view = parameters.newest();
  for (auto _ : state) benchmark::DoNotOptimize(parameters.newest());
}

void versions(benchmark::State& state) {
  set_mode(1);
  const std::uint64_t reads = shared().reads;
  const auto begin = Clock::now();
  std::int64_t published = 0;
  for (auto _ : state) published += source->publish() ? 1 : 0;
  const std::chrono::duration<double> took = Clock::now() - begin;
  state.SetItemsProcessed(published);
  state.counters["reads/s"] = static_cast<double>(shared().reads - reads) / took.count();
  set_mode(0);
}

std::atomic<bool> must_end = false;
std::atomic<std::uint64_t> steps_ended = 0;

weft::Loop steps{
    "bench.parameters", [](weft::TrainContext& ctx) {
      struct Net : weft::Module {
        weft::Linear a{*this, "a", {.in_features = 256, .out_features = 512}};
        weft::Linear b{*this, "b", {.in_features = 512, .out_features = 256}};
      } net;
      weft::Parameter weight = weft::make_parameter("weight", 0, {kElements});
      weft::SGD sgd(net.parameters(), {.lr = 1e-3});
      weft::Publisher publisher(ctx, "bench", {weight});
      const weft::Tensor x = weft::to_device(std::vector<float>(64 * 256, 0.5F), {64, 256});
      while (!must_end) {
        const auto y = net.b(weft::relu(net.a(x)));
        sgd.step(weft::grad(weft::mean(y * y), net.parameters()));
        weight.assign(weight + 1);
        publisher.publish();
        weft::sync();
        ++steps_ended;
      }
    }};
std::optional<weft::Job> job;

void step(benchmark::State& state) {
  constexpr std::uint64_t kSteps = 100;
  if (!job) {
    job = weft::Trainer(steps, {.scaling = {.num_workers = 0},
                                .run = {.name = "bench", .storage_path = "/tmp/weft_bench"}})
              .start();
    std::strncpy(shared().job, job->info().id.c_str(), sizeof(shared().job) - 1);
    while (steps_ended < kSteps) std::this_thread::yield();
  }
  set_mode(state.range(0) == 0 ? 0 : 2);
  for (auto _ : state) {
    const std::uint64_t last = steps_ended + kSteps;
    while (steps_ended < last) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  set_mode(0);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSteps));
}

BENCHMARK(pin);
BENCHMARK(pin_again);
BENCHMARK(versions)->UseRealTime();
BENCHMARK(step)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  benchmark::Initialize(&argc, argv);
  shared();
  source.emplace();
  source->publish();
  for (int reader = 0; reader < kReaders; ++reader) {
    if (::fork() == 0) run_reader();
  }
  benchmark::RunSpecifiedBenchmarks();
  must_end = true;
  if (job && !job->result().ok()) return 1;
  job.reset();
  source.reset();
}
