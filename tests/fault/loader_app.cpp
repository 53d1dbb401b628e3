/// Loops that iterate over their data in the ways that are usual with torch. In a test worker 1 is
/// killed at a chosen batch, or the job ends there and another job resumes from its checkpoint. The
/// final result has to equal that of an undisturbed job.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <weft/weft.hpp>

namespace {

using weft::Batch;
using weft::DeviceLoader;
using weft::Tensor;

/// Returns a dataset of `count` f32 numbers: first, first + 1, and so on.
weft::DatasetPtr numbers(int first, int count) {
  std::vector<float> x(static_cast<std::size_t>(count));
  std::iota(x.begin(), x.end(), static_cast<float>(first));
  return weft::tensors({{"x", std::move(x)}});
}

/// Trains a model that is one number, which depends on the order of the batches.
class Training {
 public:
  Training(weft::TrainContext& ctx, const weft::Config& config) : ctx_(ctx), config_(config) {}

  /// Runs the body of the loop for one batch. If worker 1 is killed, it dies before the update.
  void record(const Tensor& x) {
    ++bodies_;
    if (checkpoints_.should_save()) checkpoints_.save(state_);
    if (bodies_ == config_["stop_at"].get<int>()) throw std::runtime_error("stopped on purpose");
    const std::string once = config_["once"];
    if (bodies_ == config_["kill_at"].get<int>() && ctx_.world_rank() == 1 &&
        !std::filesystem::exists(once)) {
      std::ofstream(once) << "killed";
      std::raise(SIGKILL);
    }
    number_.assign(number_ * 0.75 + weft::mean(x));
    count_.assign(count_ + 1.0);
  }
  void record(const Batch& batch) { record(batch["x"]); }
  /// Adds the result for an evaluation's batch to `sum`.
  void evaluate(double& sum, const Batch& batch) const {
    sum += (weft::sum(batch["x"]) * number_).item();
  }
  void report(double sum) { ctx_.report({{"evaluation", sum}}); }
  void end() {
    ctx_.report({{"number", number_.to_vector()[0]}, {"count", count_.to_vector()[0]}});
  }
  weft::TrainContext& ctx() { return ctx_; }
  void save_too(const weft::HostNumber& number) { state_.push_back(number.state()[0]); }

 private:
  weft::TrainContext& ctx_;
  const weft::Config& config_;
  weft::Parameter number_ = weft::make_parameter("number", std::vector<float>{0}, {});
  weft::Parameter count_ = weft::make_parameter("count", std::vector<float>{0}, {});
  std::vector<weft::Parameter> state_{number_, count_};
  weft::CheckpointManager checkpoints_;
  int bodies_ = 0;
};

const weft::DeviceLoaderOptions kShuffled{.batch_size = 4, .shuffle = true};

DeviceLoader training_data() { return {numbers(0, 24), kShuffled}; }

void epochs(Training& training) {
  DeviceLoader train = training_data();
  while (train.epoch() < 3) {
    for (const Batch& batch : train) training.record(batch);
  }
}

/// Scales batches by a number that is a constant of the first step's program and an input from the
/// second step on.
void epochs_with_a_number_of_the_step(Training& training) {
  DeviceLoader train = training_data();
  while (train.epoch() < 3) {
    for (const Batch& batch : train) {
      const double share = 1.0 / (1.0 + static_cast<double>(training.ctx().step()));
      training.record(batch["x"] * share + 0.3);
    }
  }
}

void counted_epochs(Training& training) {
  DeviceLoader train = training_data();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : train) training.record(batch);
  }
}

void limited_by_a_counter(Training& training) {
  DeviceLoader train = training_data();
  for (int epoch = 0; epoch < 4; ++epoch) {
    int count = 0;
    for (const Batch& batch : train) {
      training.record(batch);
      if (++count == 3) break;
    }
  }
}

void limited_by_the_index(Training& training) {
  DeviceLoader train = training_data();
  while (train.epoch() < 4) {
    for (const Batch& batch : train) {
      training.record(batch);
      if (batch.index() == 2) break;
    }
  }
}

void limited_by_first(Training& training) {
  DeviceLoader train = training_data();
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (const Batch& batch : train.first(3)) training.record(batch);
  }
}

void by_step(Training& training) {
  DeviceLoader train = training_data();
  while (training.ctx().step() < 10) {
    for (const Batch& batch : train) {
      if (training.ctx().step() == 10) break;
      training.record(batch);
    }
  }
}

void sync_between_epochs(Training& training) {
  DeviceLoader train = training_data();
  while (train.epoch() < 3) {
    for (const Batch& batch : train) training.record(batch);
    weft::sync();
  }
}

void phases(Training& training) {
  DeviceLoader first = training_data();
  while (first.epoch() < 1) {
    for (const Batch& batch : first) training.record(batch);
  }
  DeviceLoader second(numbers(100, 16), kShuffled);
  while (second.epoch() < 2) {
    for (const Batch& batch : second) training.record(batch);
  }
}

void counted_phases(Training& training) {
  for (int phase = 0; phase < 2; ++phase) {
    DeviceLoader data(numbers(100 * phase, 12), kShuffled);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const Batch& batch : data) training.record(batch);
    }
  }
}

void nested_evaluation(Training& training) {
  DeviceLoader train = training_data();
  DeviceLoader test(numbers(50, 8), {.batch_size = 4});
  while (train.epoch() < 2) {
    for (const Batch& batch : train) {
      training.record(batch);
      if (batch.index() % 2 == 0) continue;
      double sum = 0;
      for (const Batch& other : test) training.evaluate(sum, other);
      training.report(sum);
    }
  }
}

void evaluation_after_each_epoch(Training& training) {
  DeviceLoader train = training_data();
  while (train.epoch() < 3) {
    for (const Batch& batch : train) training.record(batch);
    DeviceLoader test(numbers(50, 8), {.batch_size = 4});
    double sum = 0;
    for (const Batch& batch : test.all()) training.evaluate(sum, batch);
    training.report(sum);
  }
}

void evaluation_that_ends_steps(Training& training) {
  DeviceLoader train = training_data();
  DeviceLoader test(numbers(50, 8), {.batch_size = 4});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : train) training.record(batch);
    double sum = 0;
    for (const Batch& batch : test) training.evaluate(sum, batch);
  }
}

void side_by_side(Training& training, int other_items) {
  DeviceLoader left = training_data();
  DeviceLoader right(numbers(100, other_items), kShuffled);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto one = left.begin();
    auto other = right.begin();
    for (; one != left.end() && other != right.end(); ++one, ++other) {
      training.record((*one)["x"] + (*other)["x"] * 2.0);
    }
  }
}

void two_side_by_side(Training& training) { side_by_side(training, 24); }
void two_of_unequal_length(Training& training) { side_by_side(training, 16); }

/// Reads the step for a schedule, but counts its epochs itself.
void counted_epochs_with_a_rate(Training& training) {
  DeviceLoader train = training_data();
  for (int epoch = 0; epoch < 3; ++epoch) {
    const double rate = training.ctx().step() < 1000 ? 1 : 0.5;
    for (const Batch& batch : train) training.record(batch["x"] * rate);
  }
}

void counted_epochs_that_set_a_number(Training& training) {
  DeviceLoader train = training_data();
  weft::HostNumber rate("rate", 1);
  training.save_too(rate);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : train)
      training.record(batch["x"] * weft::cast(rate.state()[0], weft::DType::f32));
    rate.set(rate.value() / 2);
  }
}

void epochs_that_set_a_number(Training& training) {
  DeviceLoader train = training_data();
  weft::HostNumber rate("rate", 1);
  training.save_too(rate);
  while (train.epoch() < 3) {
    for (const Batch& batch : train) {
      training.record(batch["x"] * weft::cast(rate.state()[0], weft::DType::f32));
    }
    rate.set(rate.value() / 2);
  }
}

void counted_epochs_that_assign(Training& training) {
  DeviceLoader train = training_data();
  weft::Parameter rate = weft::make_buffer("rate", std::vector<float>{1}, {});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& batch : train) training.record(batch["x"] * rate);
    rate.assign(rate / 2.0);
  }
}

/// Goes through two loaders. The second begins again at its end.
void beside_a_cycle(Training& training, int other_items, std::uint64_t epochs) {
  DeviceLoader train = training_data();
  DeviceLoader other(numbers(100, other_items), kShuffled);
  auto next = other.begin();
  while (train.epoch() < epochs) {
    for (const Batch& batch : train) {
      if (next == other.end()) next = other.begin();
      training.record(batch["x"] + (*next)["x"] * 2.0);
      ++next;
    }
  }
}

void one_in_a_cycle(Training& training) { beside_a_cycle(training, 16, 2); }
void longer_one_in_a_cycle(Training& training) { beside_a_cycle(training, 40, 3); }

/// Like beside_a_cycle(), but the second loader begins in the body of the first one's loop.
void one_in_a_cycle_from_a_body_on(Training& training) {
  DeviceLoader train = training_data();
  DeviceLoader other(numbers(100, 16), kShuffled);
  std::optional<DeviceLoader::Iterator> next;
  while (train.epoch() < 3) {
    for (const Batch& batch : train) {
      if (!next || *next == other.end()) next.emplace(other.begin());
      training.record(batch["x"] + (**next)["x"] * 2.0);
      ++*next;
    }
  }
}

/// Returns batches without end: the loader begins again at its end.
class Cycle {
 public:
  explicit Cycle(int first, int items) : loader_(numbers(first, items), kShuffled) {}

  Tensor next() {
    if (!at_) {
      at_.emplace(loader_.begin());
    } else {
      ++*at_;
      if (*at_ == loader_.end()) at_.emplace(loader_.begin());
    }
    return (**at_)["x"];
  }

 private:
  DeviceLoader loader_;
  std::optional<DeviceLoader::Iterator> at_;
};

void three_in_cycles_by_step(Training& training) {
  Cycle a(0, 12), b(100, 16), c(200, 20);
  while (training.ctx().step() < 18) {
    training.record(a.next() + b.next() * 2.0 + c.next() * 4.0);
    weft::sync();
  }
}

void three_in_cycles_by_a_counter(Training& training) {
  Cycle a(0, 12), b(100, 16), c(200, 20);
  for (int i = 0; i < 18; ++i) {
    training.record(a.next() + b.next() * 2.0 + c.next() * 4.0);
    weft::sync();
  }
}

/// Calls no sync(): the next batch ends the step.
void two_in_cycles_by_step(Training& training) {
  DeviceLoader left(numbers(0, 12), kShuffled), right(numbers(100, 16), kShuffled);
  auto one = left.begin();
  auto other = right.begin();
  while (training.ctx().step() < 18) {
    if (one == left.end()) one = left.begin();
    if (other == right.end()) other = right.begin();
    training.record((*one)["x"] + (*other)["x"] * 2.0);
    ++one;
    ++other;
  }
}

void step_ended_in_the_body(Training& training) {
  DeviceLoader train = training_data();
  while (train.epoch() < 3) {
    for (const Batch& batch : train) {
      training.record(batch);
      weft::sync();
    }
  }
}

void two_batches_a_step(Training& training) {
  DeviceLoader train(numbers(0, 24),
                     {.batch_size = 4, .shuffle = true, .batches_per_execution = 2});
  while (train.epoch() < 3) {
    for (const Batch& batch : train) training.record(batch);
  }
}

/// A stream of 40 sequences, which have 1 to 9 numbers each.
class Sequences : public weft::Stream {
 public:
  std::string name() const override { return "sequences"; }
  const std::vector<weft::Field>& fields() const override { return fields_; }

 private:
  bool next_item(weft::ItemMemory out) override {
    if (!skip_item()) return false;
    const weft::ItemWriter writer(fields_, out);
    const auto number = static_cast<std::int32_t>(index());
    writer.get<std::int32_t>("n")[0] = 1 + number * 5 % 9;
    std::iota(writer.get<float>("x").begin(), writer.get<float>("x").end(),
              static_cast<float>(10 * number) + static_cast<float>(epoch()));
    return true;
  }
  bool skip_item() override { return index() < 40; }
  void rewind_items() override {}

  const std::vector<weft::Field> fields_{{"x", {weft::DType::f32, {9}}},
                                         {"n", {weft::DType::i32, {}}}};
};

/// Weights each position of a row differently, so that no row can replace another.
Tensor of_rows(const Batch& batch) {
  const Tensor weight = weft::cast(batch["segment_ids"], weft::DType::f32) +
                        weft::cast(batch["positions"], weft::DType::f32) * 0.25;
  return batch["x"] * weight;
}

const weft::PackOptions kPacked{.length = 16, .length_field = "n", .window = 3};

void packed_epochs(Training& training) {
  std::vector<float> x(360);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<std::int32_t> lengths;
  for (int i = 0; i < 40; ++i) lengths.push_back(1 + i * 5 % 9);
  DeviceLoader train(
      weft::pack_sequences(weft::tensors({{"x", std::move(x), {9}}, {"n", std::move(lengths)}}),
                           kPacked),
      kShuffled);
  while (train.epoch() < 4) {
    for (const Batch& batch : train) training.record(of_rows(batch));
  }
}

void packed_stream(Training& training) {
  DeviceLoader train(
      weft::stream_items(
          weft::pack_sequences(weft::shuffle_buffer(std::make_unique<Sequences>(), 8), kPacked),
          12),
      {.batch_size = 4});
  while (train.epoch() < 4) {
    for (const Batch& batch : train) training.record(of_rows(batch));
  }
}

const std::map<std::string, std::function<void(Training&)>> kLoops{
    {"epochs", epochs},
    {"epochs_with_a_number_of_the_step", epochs_with_a_number_of_the_step},
    {"counted_epochs", counted_epochs},
    {"limited_by_a_counter", limited_by_a_counter},
    {"limited_by_the_index", limited_by_the_index},
    {"limited_by_first", limited_by_first},
    {"by_step", by_step},
    {"sync_between_epochs", sync_between_epochs},
    {"phases", phases},
    {"counted_phases", counted_phases},
    {"nested_evaluation", nested_evaluation},
    {"evaluation_after_each_epoch", evaluation_after_each_epoch},
    {"evaluation_that_ends_steps", evaluation_that_ends_steps},
    {"two_side_by_side", two_side_by_side},
    {"two_of_unequal_length", two_of_unequal_length},
    {"counted_epochs_with_a_rate", counted_epochs_with_a_rate},
    {"epochs_that_set_a_number", epochs_that_set_a_number},
    {"counted_epochs_that_set_a_number", counted_epochs_that_set_a_number},
    {"counted_epochs_that_assign", counted_epochs_that_assign},
    {"one_in_a_cycle", one_in_a_cycle},
    {"three_in_cycles_by_step", three_in_cycles_by_step},
    {"three_in_cycles_by_a_counter", three_in_cycles_by_a_counter},
    {"two_in_cycles_by_step", two_in_cycles_by_step},
    {"longer_one_in_a_cycle", longer_one_in_a_cycle},
    {"one_in_a_cycle_from_a_body_on", one_in_a_cycle_from_a_body_on},
    {"step_ended_in_the_body", step_ended_in_the_body},
    {"two_batches_a_step", two_batches_a_step},
    {"packed_epochs", packed_epochs},
    {"packed_stream", packed_stream},
};

const weft::Loop loop{"loader_app", [](weft::TrainContext& ctx, const weft::Config& config) {
                        Training training(ctx, config);
                        kLoops.at(config["loop"])(training);
                        training.end();
                      }};

/// Prints the job's id for the test, which looks for things that the job leaves behind.
class Announce : public weft::Callback {
 public:
  void on_start(const weft::JobInfo& job) override {
    fmt::print("job {}\n", job.id);
    std::fflush(stdout);
  }
};

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  std::string name, json, storage, checkpoints, resume = "never";
  int kill_at = 0, stop_at = 0, save_every = 0;
  CLI::App app{"Goes through data in a way of a loop that is named."};
  app.add_option("--loop", name)->required();
  app.add_option("--json", json)->required();
  app.add_option("--storage", storage)->required();
  app.add_option("--checkpoints", checkpoints);
  app.add_option("--resume", resume);
  app.add_option("--kill-at", kill_at, "body, counted from 1, in which worker 1 is killed once");
  app.add_option("--stop-at", stop_at, "body in which all loops throw");
  app.add_option("--save-every", save_every, "steps");
  CLI11_PARSE(app, argc, argv);
  weft::Trainer trainer(
      loop, {.loop_config = {{"loop", name},
                             {"kill_at", kill_at},
                             {"stop_at", stop_at},
                             {"once", json + ".once"}},
             .scaling = {.num_workers = 2},
             .run = {.name = "loaders",
                     .storage_path = storage,
                     .failure = {.max_failures = kill_at > 0 ? 1 : 0},
                     .checkpoint = {.path = checkpoints.empty() ? storage + "/saved" : checkpoints,
                                    .save_interval = save_every},
                     .resume = resume,
                     .callbacks = {std::make_shared<Announce>()},
                     .seed = 3}});
  const weft::Result result = trainer.fit();
  std::filesystem::remove(json + ".once");
  weft::Config out{
      {"ok", result.ok()}, {"metrics", result.metrics}, {"failures", result.failures.size()}};
  for (const weft::Metrics& each : result.metrics_history) out["history"].push_back(each);
  if (result.error) out["message"] = result.error->message;
  std::ofstream(json) << out << '\n';
  return result.ok() ? 0 : 1;
}
