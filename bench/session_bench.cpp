/// Measures a call of a Session: `policy/B` runs a 4-64-2 policy with tanh on B rows, and `mlp/B` a
/// 784-512-512-10 network with relu. A call takes a vector of inputs and returns a vector of
/// outputs; it also binds a version, which is bound already. `compiled/B` is the policy with
/// weft::compile(), and `by_hand/B` the policy in plain loops. `bind` is the bind() alone, and
/// `copy` a bind() of another version of the larger network.

#include <benchmark/benchmark.h>

#include <unistd.h>

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/session.hpp>

#include "transport/published/version_writer.hpp"

namespace {

struct Policy : weft::Module {
  weft::Linear a{*this, "a", {4, 64}}, b{*this, "b", {64, 2}};
  weft::Tensor operator()(const weft::Tensor& x) const { return b(weft::tanh(a(x))); }
};

struct Mlp : weft::Module {
  weft::Linear a{*this, "a", {784, 512}}, b{*this, "b", {512, 512}}, c{*this, "c", {512, 10}};
  weft::Tensor operator()(const weft::Tensor& x) const {
    return c(weft::relu(b(weft::relu(a(x)))));
  }
};

/// Publishes the values of a module as a job would.
class Source {
 public:
  explicit Source(const weft::Module& module)
      : job_(fmt::format("{:032x}", ::getpid())), memory_(make(job_, module)) {
    for (const weft::Parameter& parameter : module.parameters())
      values_.push_back(parameter.to_bytes());
    publish();
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { weft::PublishedMemory::remove(job_, "bench"); }

  void publish() {
    ++version_;
    writer_.decide(version_, version_);
    std::byte* const place = writer_.destination(version_, version_);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::ranges::copy(values_[i], place + memory_.tensors()[i].offset);
    }
    writer_.copied(version_);
    writer_.publish(version_, version_);
  }
  weft::Parameters reader() const { return {job_, "bench"}; }

 private:
  static weft::PublishedMemory make(const std::string& job, const weft::Module& module) {
    std::vector<weft::PublishedTensor> tensors;
    for (const weft::Parameter& each : module.parameters()) {
      tensors.push_back({.name = each.name(), .type = each.type()});
    }
    return weft::PublishedMemory::create(job, "bench", weft::lay_out(tensors), 1);
  }

  std::string job_;
  weft::PublishedMemory memory_;
  weft::VersionWriter writer_{memory_, 0};
  std::uint64_t version_ = 0;
  std::vector<std::vector<std::byte>> values_;
};

template <typename Net>
void run_net(benchmark::State& state, std::int64_t inputs) {
  const Net net;
  const Source source(net);
  const weft::Parameters parameters = source.reader();
  weft::Session session;
  const std::int64_t rows = state.range(0);
  const std::vector<float> x(static_cast<std::size_t>(rows * inputs), 0.5F);
  for (auto _ : state) {
    session.bind(net, parameters.newest());
    benchmark::DoNotOptimize(net(weft::to_device(x, {rows, inputs})).to_vector());
  }
  state.counters["programs"] = static_cast<double>(session.counts().programs);
}

void policy(benchmark::State& state) { run_net<Policy>(state, 4); }
BENCHMARK(policy)->Arg(1)->Arg(64);

void compiled(benchmark::State& state) {
  const Policy net;
  const Source source(net);
  const weft::Parameters parameters = source.reader();
  weft::Session session;
  const std::int64_t rows = state.range(0);
  const std::vector<float> x(static_cast<std::size_t>(rows) * 4, 0.5F);
  auto forward = weft::compile([&](const weft::Tensor& in) { return net(in); });
  for (auto _ : state) {
    session.bind(net, parameters.newest());
    benchmark::DoNotOptimize(forward(weft::to_device(x, {rows, 4})).to_vector());
  }
}
BENCHMARK(compiled)->Arg(1)->Arg(64);

void mlp(benchmark::State& state) { run_net<Mlp>(state, 784); }
BENCHMARK(mlp)->Arg(1)->Arg(64);

std::vector<float> linear(const weft::ParameterView& view, const std::string& name,
                          const std::vector<float>& x, std::int64_t inputs, std::int64_t outputs) {
  const std::span<const float> weight = view.get<float>(name + ".weight", {outputs, inputs});
  const std::span<const float> bias = view.get<float>(name + ".bias", {outputs});
  const std::int64_t rows = static_cast<std::int64_t>(x.size()) / inputs;
  std::vector<float> y(static_cast<std::size_t>(rows * outputs));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t to = 0; to < outputs; ++to) {
      float sum = bias[static_cast<std::size_t>(to)];
      for (std::int64_t from = 0; from < inputs; ++from) {
        sum += weight[static_cast<std::size_t>(to * inputs + from)] *
               x[static_cast<std::size_t>(row * inputs + from)];
      }
      y[static_cast<std::size_t>(row * outputs + to)] = sum;
    }
  }
  return y;
}

void by_hand(benchmark::State& state) {
  const Policy net;
  const Source source(net);
  const weft::Parameters parameters = source.reader();
  const std::vector<float> x(static_cast<std::size_t>(state.range(0)) * 4, 0.5F);
  for (auto _ : state) {
    const weft::ParameterView view = parameters.newest();
    std::vector<float> hidden = linear(view, "a", x, 4, 64);
    for (float& value : hidden) value = std::tanh(value);
    benchmark::DoNotOptimize(linear(view, "b", hidden, 64, 2));
  }
}
BENCHMARK(by_hand)->Arg(1)->Arg(64);

void bind(benchmark::State& state) {
  const Policy net;
  const Source source(net);
  const weft::Parameters parameters = source.reader();
  weft::Session session;
  for (auto _ : state) session.bind(net, parameters.newest());
}
BENCHMARK(bind);

void copy(benchmark::State& state) {
  const Mlp net;
  Source source(net);
  const weft::Parameters parameters = source.reader();
  weft::Session session;
  for (auto _ : state) {
    state.PauseTiming();
    source.publish();
    state.ResumeTiming();
    session.bind(net, parameters.newest());
  }
}
BENCHMARK(copy);

}  // namespace

BENCHMARK_MAIN();
