/// Measures the compiler: the time to trace a training step of a GPT, to compile it, and to find
/// the compiled program again. No program runs on a chip here.

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include <weft/nn/layers.hpp>
#include <weft/nn/losses.hpp>
#include <weft/nn/multi_head_attention.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/optim/optimizer.hpp>
#include <weft/sharding/presets.hpp>
#include <weft/tensor/compile.hpp>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/plan/settle.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "spmd/tensor/trace.hpp"

namespace {

using namespace weft;

struct NoBuffer : Buffer {
  NoBuffer(const TensorType& type, const Sharding& sharding) : Buffer(type, sharding) {}
};

/// A runtime that compiles new programs but runs none. The results are buffers without bytes.
class CompilingRuntime : public Runtime {
 public:
  explicit CompilingRuntime(const Mesh& mesh)
      : mesh_(mesh), positions_(static_cast<std::size_t>(mesh.size())) {
    std::iota(positions_.begin(), positions_.end(), 0);
  }

  const Mesh* mesh() const override { return &mesh_; }
  std::span<const int> positions() const override { return positions_; }
  RunResult run(const Program& program, const Fingerprint& key, std::span<const Binding> inputs,
                const RunSite& /*site*/) override {
    const CompileCache::Entry* entry = cache_.find(program, key);
    if (entry == nullptr) {
      last_ = program;
      const auto plan = std::make_shared<const Plan>(weft::compile(program, mesh_, kCpuTarget));
      entry = &cache_.add(program, key, {number_++, plan});
    }
    const Program& plan = entry->plan->program;
    RunResult result;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto* bound = std::get_if<BoundBuffer>(&inputs[i]);
      result.input_buffers.push_back(
          bound != nullptr
              ? bound->buffer
              : std::make_shared<NoBuffer>(entry->plan->input_types[i], plan.inputs[i].sharding));
    }
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      result.outputs.push_back(
          std::make_shared<NoBuffer>(entry->plan->output_types[i], plan.outputs[i].sharding));
    }
    ran_ = std::chrono::steady_clock::now();
    return result;
  }
  void warn(const std::string& /*text*/) override {}
  std::vector<std::byte> read(const Buffer& buffer) override {
    return std::vector<std::byte>(static_cast<std::size_t>(buffer.type().bytes()));
  }
  std::uint64_t step() const override { return 0; }
  void end_step() override {}

  const Program& last_compiled() const { return last_; }
  /// Returns the time at which the last run() ended.
  std::chrono::steady_clock::time_point ran() const { return ran_; }

 private:
  Mesh mesh_;
  std::vector<int> positions_;
  CompileCache cache_;
  Program last_;
  std::uint32_t number_ = 0;
  std::chrono::steady_clock::time_point ran_;
};

constexpr std::int64_t kBatch = 64;
constexpr std::int64_t kLength = 64;
constexpr std::int64_t kSize = 128;
constexpr std::int64_t kHeads = 64;
constexpr std::int64_t kVocabulary = 256;

Linear::Options linear_of(std::int64_t in, std::int64_t out) {
  return {.in_features = in, .out_features = out};
}

struct Block : Module {
  Block(Module& parent, const std::string& name) : Module(parent, name) {}
  LayerNorm ln1{*this, "ln1", {.size = kSize}};
  Linear q_proj{*this, "q_proj", linear_of(kSize, kSize)};
  Linear k_proj{*this, "k_proj", linear_of(kSize, kSize)};
  Linear v_proj{*this, "v_proj", linear_of(kSize, kSize)};
  Linear o_proj{*this, "o_proj", linear_of(kSize, kSize)};
  LayerNorm ln2{*this, "ln2", {.size = kSize}};
  Linear up{*this, "up", linear_of(kSize, 4 * kSize)};
  Linear down{*this, "down", linear_of(4 * kSize, kSize)};

  Tensor operator()(const Tensor& x) const {
    const Tensor normed = ln1(x);
    const auto heads = [&](const Linear& project) { return split_heads(project(normed), kHeads); };
    const Tensor y = x + o_proj(merge_heads(attention(heads(q_proj), heads(k_proj), heads(v_proj),
                                                      {.causal = true})));
    return y + down(gelu(up(ln2(y)), Gelu::tanh));
  }
};

/// A GPT that is trained by AdamW, with tensor parallelism over "model" and FSDP over "data".
struct Gpt : Module {
  explicit Gpt(int num_layers) {
    for (int i = 0; i < num_layers; ++i) {
      layers.push_back(std::make_unique<Block>(*this, "layer" + std::to_string(i)));
    }
  }

  void shard(const Mesh& mesh) const {
    using enum TensorParallelStyle;
    tensor_parallel(*this, mesh,
                    {{"q_proj", columns},
                     {"k_proj", columns},
                     {"v_proj", columns},
                     {"o_proj", rows},
                     {"up", columns},
                     {"down", rows},
                     {"wte", columns}});
    fsdp(*this, mesh);
  }
  Tensor loss(const Tensor& tokens, const Tensor& labels) const {
    Tensor x = wte(tokens);
    for (const auto& layer : layers) x = (*layer)(x);
    return cross_entropy(linear(ln_f(x), wte.weight, {}), labels);
  }

  Embedding wte{*this, "wte", {.num_embeddings = kVocabulary, .embedding_dim = kSize}};
  std::vector<std::unique_ptr<Block>> layers;
  LayerNorm ln_f{*this, "ln_f", {.size = kSize}};
};

Tensor make_tokens(const Mesh& mesh) {
  const std::vector<std::int32_t> zeros(static_cast<std::size_t>(kBatch * kLength));
  const Tensor tokens = to_device(zeros, {kBatch, kLength});
  data_parallel({&tokens, 1}, mesh);
  return tokens;
}

/// The objects of a training loop: the runtime, the net and the optimizer.
struct Training {
  explicit Training(const Mesh& mesh, int num_layers)
      : runtime(mesh), scope(runtime), net(num_layers), optimizer(net.parameters(), {}) {
    net.shard(mesh);
  }

  Tensor record() {
    const Tensor loss = net.loss(make_tokens(*runtime.mesh()), make_tokens(*runtime.mesh()));
    optimizer.step(grad(loss, net.parameters()));
    return loss;
  }
  /// Records and compiles a step; after it, the parameters count as being on the chips. Returns the
  /// compiled program.
  const Program& first_step() {
    const Tensor loss = record();
    weft::sync();
    return runtime.last_compiled();
  }

  CompilingRuntime runtime;
  RuntimeScope scope;
  Gpt net;
  AdamW optimizer;
};

const Mesh& small_mesh() {
  static const Mesh mesh({4, 4}, {"data", "model"});
  return mesh;
}

void per_op(benchmark::State& state, double ops) {
  state.counters["ops"] = ops;
  state.counters["per_op"] = benchmark::Counter(
      ops, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Discards the recorded ops, as a sync() does after running them.
void discard() { Trace::current(std::source_location::current()).discard(); }

/// Measures tracing alone: tensor calls on two small tensors.
void trace_add(benchmark::State& state) {
  constexpr int kOps = 1000;
  CompilingRuntime runtime(small_mesh());
  const RuntimeScope scope(runtime);
  const Tensor y = to_device(std::vector<float>(4), {4});
  for (auto _ : state) {
    Tensor x = y;
    for (int i = 0; i < kOps; ++i) x = x + y;
    benchmark::DoNotOptimize(x);
    discard();
  }
  per_op(state, kOps);
}

/// Measures tracing a step of the training, including the gradients and the update.
void trace_step(benchmark::State& state) {
  Training training(small_mesh(), static_cast<int>(state.range(0)));
  const double ops = training.first_step().num_ops();
  for (auto _ : state) {
    benchmark::DoNotOptimize(training.record());
    discard();
  }
  per_op(state, ops);
}

/// Measures compiling the program of the first step, before which no tensor is on the chips.
void compile_cold(benchmark::State& state) {
  const auto side = state.range(1);
  const Mesh mesh({side, side}, {"data", "model"});
  Training training(mesh, static_cast<int>(state.range(0)));
  const Program program = training.first_step();
  for (auto _ : state) benchmark::DoNotOptimize(compile_settled(program, mesh, kCpuTarget));
  per_op(state, program.num_ops());
  state.counters["chips"] = mesh.size();
}

/// Measures a sync() whose program is already compiled, until the runtime's run() ends:
/// fingerprint, lookup, bindings.
void sync_hit(benchmark::State& state) {
  Training training(small_mesh(), static_cast<int>(state.range(0)));
  const double ops = training.first_step().num_ops();
  for (auto _ : state) {
    const Tensor loss = training.record();
    const auto begin = std::chrono::steady_clock::now();
    weft::sync();
    state.SetIterationTime(std::chrono::duration<double>(training.runtime.ran() - begin).count());
  }
  per_op(state, ops);
}

/// Measures the same as sync_hit() for a function that weft::compile() has traced.
void call_hit(benchmark::State& state) {
  Training training(small_mesh(), static_cast<int>(state.range(0)));
  auto step = weft::compile([&](const Tensor& tokens, const Tensor& labels) {
    const Tensor loss = training.net.loss(tokens, labels);
    training.optimizer.step(grad(loss, training.net.parameters()));
    return loss;
  });
  const Mesh& mesh = small_mesh();
  for (int i = 0; i < 2; ++i) step(make_tokens(mesh), make_tokens(mesh));
  for (auto _ : state) {
    const Tensor tokens = make_tokens(mesh);
    const Tensor labels = make_tokens(mesh);
    const auto begin = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(step(tokens, labels));
    state.SetIterationTime(std::chrono::duration<double>(training.runtime.ran() - begin).count());
  }
  per_op(state, training.runtime.last_compiled().num_ops());
}

/// Measures tracing and compiling a recurrent net of `steps` time steps with its gradients. The
/// time doesn't depend on the number of steps.
void compile_scan(benchmark::State& state) {
  const std::int64_t steps = state.range(0);
  constexpr std::int64_t kRows = 32;
  CompilingRuntime runtime(small_mesh());
  const RuntimeScope scope(runtime);
  const Parameter w = make_parameter("w", std::vector<float>(kSize * kSize), {kSize, kSize});
  const Tensor h0 = to_device(std::vector<float>(kRows * kSize), {kRows, kSize});
  const Tensor x = to_device(std::vector<float>(static_cast<std::size_t>(steps * kRows * kSize)),
                             {steps, kRows, kSize});
  const auto cell = [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(matmul(x_t + h, w));
    return std::pair(next, mean(next * next));
  };
  Program program;
  for (auto _ : state) {
    const auto [last, losses] = scan(cell, h0, x);
    const Tensor gradient = grad(sum(losses), std::vector<Tensor>{w})[0];
    program = Trace::current(std::source_location::current()).builder().program();
    program.outputs.clear();
    program.add_output(program.num_values() - 1, "gradient", Sharding::open(2));
    benchmark::DoNotOptimize(compile_settled(program, small_mesh(), kCpuTarget));
    discard();
  }
  per_op(state, program.num_ops());
}

// With these numbers of layers, programs have about 2,500 and 5,000 ops.
constexpr int kLayersOf2500 = 5;
constexpr int kLayersOf5000 = 10;

BENCHMARK(trace_add)->Unit(benchmark::kMicrosecond);
BENCHMARK(trace_step)->Arg(kLayersOf2500)->Unit(benchmark::kMicrosecond);
BENCHMARK(compile_cold)
    ->ArgNames({"layers", "side"})
    ->Args({kLayersOf2500, 4})
    ->Args({kLayersOf5000, 4})
    ->Args({kLayersOf5000, 16})
    ->Args({kLayersOf5000, 64})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(compile_scan)->ArgName("steps")->Arg(10)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(sync_hit)->Arg(kLayersOf2500)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(call_hit)->Arg(kLayersOf2500)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
