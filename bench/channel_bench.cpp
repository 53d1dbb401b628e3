/// Measures one channel between two threads, each on its own core. `stream` fills and reads every
/// frame in place. `round_trip` sends a frame and waits for one in return. `sealed` uses shard
/// frames that the reader views in place. `checked` also verifies the checksums of such frames.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include <weft/tensor/error.hpp>

#include "bench/cores.hpp"
#include "transport/channel/channel.hpp"
#include "transport/format/shard_frame.hpp"

namespace {

using namespace weft;

constexpr int kSlotCount = 3;

/// Returns the policy for waits. Call it before binding this thread to a core, because the policy
/// depends on the number of cores that the thread may use.
WaitPolicy policy() {
  static const WaitPolicy chosen = WaitPolicy::for_threads(2, std::chrono::seconds(60));
  return chosen;
}

/// Binds the thread to the n-th core that this process may use.
void bind_to_core(int n) {
  static const cpu_set_t allowed = bench::allowed_cores();
  bench::bind_to_core(allowed, n);
}

/// Runs the body on another core, until the benchmark closes its ends of the channels.
template <typename Body>
std::thread on_other_core(Body body) {
  return std::thread([body] {
    bind_to_core(1);
    try {
      body();
    } catch (const Error& error) {
      WEFT_CHECK(error.code() == Errc::peer_lost, error.what());
    }
  });
}

void fill(std::span<std::byte> bytes, std::uint64_t number) {
  std::memset(bytes.data(), static_cast<int>(number & 0xff), bytes.size());
}
std::uint64_t sum(std::span<const std::byte> bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes.data());
  return std::accumulate(words, words + bytes.size() / sizeof *words, std::uint64_t{0});
}

template <typename Fill, typename Read>
void run_stream(benchmark::State& state, std::size_t frame_bytes, Fill fill_frame,
                Read read_frame) {
  Channel channel = Channel::anonymous(
      {.job = "bench", .name = "stream", .slot_count = kSlotCount, .slot_bytes = frame_bytes});
  std::thread writer_thread = on_other_core([&] {
    ChannelWriter writer(channel, policy());
    for (;;) {
      fill_frame(writer.loan(frame_bytes), writer.count());
      writer.publish();
    }
  });
  {
    ChannelReader reader(channel, policy());
    for (auto _ : state) {
      const auto frame = reader.receive();
      benchmark::DoNotOptimize(read_frame(frame->bytes()));
    }
  }
  writer_thread.join();
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(frame_bytes));
}

void stream(benchmark::State& state) {
  run_stream(state, static_cast<std::size_t>(state.range(0)), fill, sum);
}

ShardHeader header_of(std::int64_t payload_bytes) {
  const Shape dims{payload_bytes / 4};
  return {.name = "x", .type = {DType::f32, dims}, .offsets = {0}, .dims = dims};
}

template <typename Read>
void run_sealed(benchmark::State& state, Read read) {
  const ShardHeader header = header_of(state.range(0));
  const ShardLayout layout = shard_layout(header);
  const auto fill_frame = [&](std::span<std::byte> frame, std::uint64_t number) {
    fill(frame.subspan(layout.payload_offset), number);
    seal_shard_frame(header, frame);
  };
  run_stream(state, layout.frame_bytes, fill_frame, read);
}

void sealed(benchmark::State& state) {
  run_sealed(state, [](auto bytes) { return sum(view_shard_frame(bytes).payload); });
}
void checked(benchmark::State& state) {
  run_sealed(state, [](auto bytes) { return sum(read_shard_frame(bytes).payload); });
}

void round_trip(benchmark::State& state) {
  const auto frame_bytes = static_cast<std::size_t>(state.range(0));
  const auto make = [&](const char* name) {
    return Channel::anonymous(
        {.job = "bench", .name = name, .slot_count = kSlotCount, .slot_bytes = frame_bytes});
  };
  Channel there = make("there");
  Channel back = make("back");
  std::thread echo = on_other_core([&] {
    ChannelReader reader(there, policy());
    ChannelWriter writer(back, policy());
    for (;;) {
      const std::uint64_t total = sum(reader.receive()->bytes());
      fill(writer.loan(frame_bytes), total);
      writer.publish();
    }
  });
  {
    ChannelWriter writer(there, policy());
    ChannelReader reader(back, policy());
    for (auto _ : state) {
      fill(writer.loan(frame_bytes), writer.count());
      writer.publish();
      benchmark::DoNotOptimize(sum(reader.receive()->bytes()));
    }
  }
  echo.join();
}

BENCHMARK(round_trip)->Arg(64)->Arg(16 << 20)->UseRealTime();
BENCHMARK(stream)->Arg(64)->Arg(4096)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime();
BENCHMARK(sealed)->Arg(64)->Arg(16 << 20)->UseRealTime();
BENCHMARK(checked)->Arg(64)->Arg(16 << 20)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  policy();
  bind_to_core(0);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
