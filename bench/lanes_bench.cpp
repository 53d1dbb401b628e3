/// Measures lanes between two nodes, each driven by a thread on its own core. `call` sends a
/// message with a body, and waits for a message in return. `call_asleep` does the same with
/// receivers that sleep instead of spinning, and `futex_asleep` does nothing but the sleeping and
/// waking of such a call, without a lane. `tensor` also fills a block, which the other side
/// reads. `stream` keeps as many messages on their way as the lane takes.

#include <benchmark/benchmark.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/cores.hpp"
#include "transport/lanes/lane_node.hpp"
#include "transport/memory/wait.hpp"

namespace {

using namespace weft;

constexpr std::uint32_t kStop = 1;  ///< the kind of message that ends the other side

/// Binds the thread to the n-th core that this process may use.
void bind_to_core(int n) {
  static const cpu_set_t allowed = bench::allowed_cores();
  bench::bind_to_core(allowed, n);
}

int spins() {
  static const int chosen = WaitPolicy::for_threads(2, std::chrono::seconds(60)).spins;
  return chosen;
}

/// Two nodes of a system, and the memory between them, which is removed at the end.
class Pair {
 public:
  explicit Pair(int spin_count) : spins_(spin_count) {}
  ~Pair() { PeerTable::remove(system_); }

  LaneNode& node(int side) { return side == 0 ? *first_ : *second_; }

  void send(int from, const OutMessage& message) {
    LaneNode& to = node(1 - from);
    while (!node(from).sender(to.self(), 0)->send(message)) pause_cpu();
  }
  InMessage take(int side) {
    LanePort& port = node(side).port(0);
    for (;;) {
      if (auto message = port.take()) return std::move(*message);
      port.wait(spins_, std::chrono::milliseconds(20));
    }
  }
  /// Calls `answer(message)` on another core for each message to the second node, until the first
  /// node sends kStop.
  template <typename Answer>
  std::thread serve(Answer answer) {
    return std::thread([this, answer] {
      bind_to_core(1);
      for (;;) {
        const InMessage message = take(1);
        if (message.heading.kind == kStop) return;
        answer(message);
      }
    });
  }
  void stop(std::thread& server) {
    send(0, {.heading = {.kind = kStop}});
    server.join();
  }

 private:
  std::unique_ptr<LaneNode> join() {
    const PeerId peer = table_.add();
    auto node = std::make_unique<LaneNode>(table_, peer, PeerMemoryOptions{.port_count = 1});
    table_.mark(peer.slot, PeerState::alive);
    return node;
  }

  int spins_;
  std::string system_ = fmt::format("{:024x}{:08x}", getpid(), 1);
  PeerTable table_ = PeerTable::create(system_);
  std::unique_ptr<LaneNode> first_ = join();
  std::unique_ptr<LaneNode> second_ = join();
};

std::uint64_t sum(std::span<const std::byte> bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  return std::accumulate(words, words + bytes.size() / sizeof *words, std::uint64_t{0});
}

void run_call(benchmark::State& state, int spin_count) {
  Pair pair(spin_count);
  std::thread server =
      pair.serve([&](const InMessage& message) { pair.send(1, {.body = message.body()}); });
  const std::vector<std::byte> body(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) {
    pair.send(0, {.body = body});
    benchmark::DoNotOptimize(pair.take(0).body().data());
  }
  pair.stop(server);
}

void call(benchmark::State& state) { run_call(state, spins()); }
void call_asleep(benchmark::State& state) { run_call(state, 0); }

void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load(std::memory_order_acquire) != value) {
    sleep_on(word, value - 1, std::chrono::milliseconds(20));
  }
}
void set(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value, std::memory_order_release);
  wake_all(word);
}

void futex_asleep(benchmark::State& state) {
  std::atomic<std::uint32_t> asked = 0;
  std::atomic<std::uint32_t> answered = 0;
  std::atomic<bool> must_stop = false;
  std::thread server([&] {
    bind_to_core(1);
    for (std::uint32_t call = 1;; ++call) {
      wait_for(asked, call);
      if (must_stop) return;
      set(answered, call);
    }
  });
  std::uint32_t call = 0;
  for (auto _ : state) {
    set(asked, ++call);
    wait_for(answered, call);
  }
  must_stop = true;
  set(asked, ++call);
  server.join();
}

void tensor(benchmark::State& state) {
  Pair pair(spins());
  std::thread server = pair.serve([&](const InMessage& message) {
    const BlockId block = message.blocks()[0];
    const std::uint64_t total = sum(pair.node(1).blocks().bytes(block));
    pair.node(1).blocks().release(block);
    pair.send(1, {.body = std::as_bytes(std::span(&total, 1))});
  });
  const auto bytes = static_cast<std::size_t>(state.range(0));
  Blocks& blocks = pair.node(0).blocks();
  for (auto _ : state) {
    const BlockId block = blocks.allocate(bytes);
    std::memset(blocks.writable(block).data(), static_cast<int>(state.iterations()), bytes);
    pair.send(0, {.blocks = std::span(&block, 1)});
    blocks.release(block);
    benchmark::DoNotOptimize(pair.take(0).body().data());
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
  pair.stop(server);
}

void stream(benchmark::State& state) {
  Pair pair(spins());
  std::uint64_t taken = 0;
  std::thread server = pair.serve([&](const InMessage&) { ++taken; });
  const std::vector<std::byte> body(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) pair.send(0, {.body = body});
  pair.stop(server);
  state.SetItemsProcessed(static_cast<std::int64_t>(taken));
}

BENCHMARK(call)->Arg(32)->Arg(4096)->UseRealTime();
BENCHMARK(call_asleep)->Arg(32)->UseRealTime();
BENCHMARK(futex_asleep)->UseRealTime();
BENCHMARK(tensor)->Arg(4096)->Arg(1 << 20)->Arg(64 << 20)->UseRealTime();
BENCHMARK(stream)->Arg(64)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  spins();
  bind_to_core(0);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
