#include "bench/loader/steps.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <weft/weft.hpp>

#include "bench/job.hpp"
#include "bench/machine.hpp"

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

/// An item has 12 KiB, like a picture of 3x32x32 floats.
constexpr std::int64_t kParts = 6;
constexpr std::int64_t kWidth = 512;
constexpr std::int64_t kElements = kParts * kWidth;
constexpr int kWarmup = 10;  // enough steps to use up the batches that were loaded ahead

/// Returns a dataset that repeats the same images, so that an epoch is long enough.
DatasetPtr images_in_memory(std::int64_t num_items) {
  constexpr std::int64_t kImages = 8192;
  static const DatasetPtr images = [] {
    std::vector<float> pixels(kImages * kElements);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i % 255) / 255;
    return tensors({{"x", std::move(pixels), {kParts, kWidth}}});
  }();
  return concat(std::vector<DatasetPtr>(static_cast<std::size_t>(num_items / kImages + 1), images));
}

/// Simulates data from a slow source: reading the first item of a batch takes the time of the whole
/// batch.
class SlowImages : public Dataset {
 public:
  SlowImages(std::int64_t size, std::int64_t batch, double batch_ms)
      : size_(size), batch_(batch), takes_(batch_ms) {}
  std::string name() const override { return "slow images"; }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    if (item.index % batch_ == 0) std::this_thread::sleep_for(takes_);
    std::memset(out[0].data(), 0x3c, out[0].size());  // floats of 0.0115
  }
  const std::int64_t size_;
  const std::int64_t batch_;
  const std::chrono::duration<double, std::milli> takes_;
  const std::vector<Field> fields_{{"x", {DType::f32, {kParts, kWidth}}}};
};

/// A network of `depth` layers, which takes the mean of an item's parts. No gradients are computed,
/// only the network's outputs, because the loader is measured.
struct Net : Module {
  explicit Net(int depth) {
    for (int i = 0; i < depth; ++i) {
      layers.push_back(
          std::make_unique<Linear>(*this, fmt::format("fc{}", i),
                                   Linear::Options{.in_features = kWidth, .out_features = kWidth}));
    }
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = mean(x, {1});
    for (const auto& layer : layers) y = tanh((*layer)(y));
    return y;
  }
  std::vector<std::unique_ptr<Linear>> layers;
};

/// Returns a batch size that gives each chip the same number of rows.
std::int64_t batch_size(const StepsOptions& options, int chips) {
  return std::max(options.batch / chips, 1) * chips;
}

struct StepTime {
  double ms = 0;
  double waited_ms = 0;
};

/// Returns the mean time of a job's steps. If `depth` is 0, the loop only takes the batches and
/// computes nothing.
StepTime time_steps(const StepsOptions& options, const DatasetPtr& dataset, int depth, int chips) {
  StepTime time;
  run_job(chips, [&](TrainContext& context) {
    const Net net(depth);
    DeviceLoader loader(dataset, {.batch_size = batch_size(options, chips)});
    const auto waited = [] { return metric_data("LoaderWait").total * 1e3; };
    auto begin = Clock::now();
    double waited_before = 0;
    for (const Batch& batch : loader) {
      if (depth > 0) {
        const Tensor loss = mean(net(batch["x"]));
        sync();
        (void)loss.item();
      } else {
        sync();
      }
      if (context.step() == kWarmup) {
        begin = Clock::now();
        waited_before = waited();
      }
      if (static_cast<int>(context.step()) == kWarmup + options.steps) break;
    }
    const std::chrono::duration<double, std::milli> took = Clock::now() - begin;
    time = {took.count() / options.steps, (waited() - waited_before) / options.steps};
  });
  return time;
}

std::int64_t items_of(const StepsOptions& options, int chips) {
  return batch_size(options, chips) * (kWarmup + options.steps + 1);
}

/// Returns the depth of a network whose step takes about `ms` milliseconds on data in memory. Uses
/// the shortest of several probes, because other load on the machine only adds to the time.
int depth_for(const StepsOptions& options, double ms, int chips) {
  constexpr int kShallow = 2;
  constexpr int kDeep = 10;
  StepsOptions probe = options;
  probe.steps = std::min(options.steps, 20);
  const DatasetPtr images = images_in_memory(items_of(probe, chips));
  double shallow = std::numeric_limits<double>::infinity();
  double deep = shallow;
  for (int i = 0; i < 3; ++i) {
    shallow = std::min(shallow, time_steps(probe, images, kShallow, chips).ms);
    deep = std::min(deep, time_steps(probe, images, kDeep, chips).ms);
  }
  const double layer = std::max((deep - shallow) / (kDeep - kShallow), 0.05);
  return std::clamp(static_cast<int>(kShallow + (ms - shallow) / layer + 0.5), 1, 200);
}

int num_cores() { return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1U)); }

}  // namespace

std::vector<TableRow> measure_waits(const StepsOptions& options) {
  const DatasetPtr images = images_in_memory(items_of(options, num_cores()));
  std::vector<TableRow> rows;
  std::vector<int> all{std::max(num_cores() - 1, 1), num_cores()};
  std::vector<int> depths;
  for (const int chips : all) depths.push_back(depth_for(options, options.step_ms, chips));
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const StepTime time = time_steps(options, images, depths[i], all[i]);
      const std::string chips = fmt::format("{} chip{}: ", all[i], all[i] == 1 ? "" : "s");
      row_of(rows, chips + "a step", "ms").samples.push_back(time.ms);
      row_of(rows, chips + "waits for data", "% of step")
          .samples.push_back(100 * time.waited_ms / time.ms);
    }
  }
  return rows;
}

std::vector<TableRow> measure_overlap(const StepsOptions& options) {
  const int chips = num_cores();
  const DatasetPtr images = images_in_memory(items_of(options, chips));
  const auto slow = std::make_shared<const SlowImages>(items_of(options, chips),
                                                       batch_size(options, chips), options.data_ms);
  std::vector<int> depths;
  for (const double ms : options.compute_ms) depths.push_back(depth_for(options, ms, chips));
  std::vector<TableRow> rows;
  const auto name_of = [&](std::size_t i, const char* what) {
    return fmt::format("computation of {:g} ms: {}", options.compute_ms[i], what);
  };
  std::vector<std::vector<double>> of_longer(depths.size());
  for (int round = 0; round < options.rounds; ++round) {
    const double data = time_steps(options, slow, 0, chips).ms;
    row_of(rows, "data alone", "ms").samples.push_back(data);
    for (std::size_t i = 0; i < depths.size(); ++i) {
      const double compute = time_steps(options, images, depths[i], chips).ms;
      const double both = time_steps(options, slow, depths[i], chips).ms;
      row_of(rows, name_of(i, "alone"), "ms").samples.push_back(compute);
      row_of(rows, name_of(i, "with data"), "ms").samples.push_back(both);
      row_of(rows, name_of(i, "with data, of the sum"), "ratio")
          .samples.push_back(both / (data + compute));
      of_longer[i].push_back(both / std::max(data, compute));
    }
  }
  for (std::size_t i = 0; i < depths.size(); ++i) {
    row_of(rows, name_of(i, "with data"), "ms").ratio = median(of_longer[i]);
  }
  return rows;
}

}  // namespace weft::bench
