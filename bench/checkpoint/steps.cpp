#include "bench/checkpoint/steps.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>
#include <weft/weft.hpp>

#include "bench/machine.hpp"
#include "data/files/file_system.hpp"
#include "data/files/work_crew.hpp"

namespace weft::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kBatch = 32;
/// The number of steps at the beginning of a block that aren't counted, because work of the
/// previous block may still be ending.
constexpr int kWarmup = 50;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Says what runs in the background during the steps of a block.
enum class Beside { nothing, save, bytes };
constexpr std::size_t kKinds = 3;

struct Net : Module {
  explicit Net(std::int64_t width) : fc1(*this, "fc1", of(width)), fc2(*this, "fc2", of(width)) {}
  static Linear::Options of(std::int64_t width) {
    return {.in_features = width, .out_features = width};
  }
  Linear fc1;
  Linear fc2;
  Tensor operator()(const Tensor& x) const { return fc2(tanh(fc1(x))); }
};

class SavingTraining {
 public:
  SavingTraining(TrainContext& context, const StepsOptions& options)
      : context_(context),
        options_(options),
        net_(options.width),
        adam_(net_.parameters(), {.lr = 1e-4}),
        x_(static_cast<std::size_t>(kBatch * options.width), 0.1F) {
    for (std::size_t i = 0; i < options.state_mib / 16; ++i) {
      frozen_.push_back(make_buffer(fmt::format("frozen{}", i), 1, {2048, 2048}));
      mark_sharding(frozen_.back(), *context.mesh(), {{"data"}, {}});
      frozen_.back().assign(frozen_.back() + 1.0);
    }
    sync();
    state_ = state_dict(net_, adam_);
    state_.insert(state_.end(), frozen_.begin(), frozen_.end());
  }

  /// Runs a block. Returns the microseconds of each step, including the time that starting a save
  /// takes. Between steps, which isn't measured, checks whether the last save has ended, so that
  /// another one can begin.
  std::vector<double> block(Beside beside) {
    std::vector<double> took;
    checkpoints_.wait();
    std::string in_progress;
    std::jthread writer;
    if (beside == Beside::bytes) writer = std::jthread([this] { write_bytes(); });
    for (int i = 0; i < kWarmup + options_.steps; ++i) {
      const bool is_over = in_progress.empty() || fs::exists(in_progress);
      const auto begin = Clock::now();
      if (beside == Beside::save && is_over) {
        checkpoints_.save_async(state_, {.force = true});
        in_progress = fmt::format("{}/checkpoint_{:06}", folder(options_), context_.step());
        ++num_saves_;
      }
      step();
      const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
      if (i >= kWarmup) took.push_back(time.count());
    }
    checkpoints_.wait();
    return took;
  }
  int num_saves() const { return num_saves_; }

  /// Writes as many bytes to a file as a save does; all are copies of the same small piece of
  /// memory.
  void write_bytes() const {
    FileSystem& files = posix_file_system();
    const std::string path = folder(options_) + "/bytes";
    const std::size_t pieces = options_.state_mib;
    const auto memory = std::make_unique<std::byte[]>(2 * kPieceBytes);
    void* first = memory.get();
    std::size_t room = 2 * kPieceBytes;
    const auto* piece =
        static_cast<std::byte*>(std::align(kStorageAlignment, kPieceBytes, first, room));
    {
      const auto file = files.create_file(path, pieces * kPieceBytes);
      Urgency urgency(false);
      WorkCrew(1, &urgency).each(pieces, [&](std::size_t i) {
        file->write(i * kPieceBytes, {piece, kPieceBytes});
      });
      file->sync();
    }
    fs::remove(path);
  }

  static std::string folder(const StepsOptions& options) {
    return options.folder + fmt::format("/bench-checkpoint-steps-{}", ::getpid());
  }

 private:
  void step() {
    const Tensor x = to_device(x_, {kBatch, options_.width});
    mark_sharding(x, *context_.mesh(), {{"data"}, {}});
    const Tensor y = net_(x);
    const Tensor loss = mean(y * y);
    adam_.step(grad(loss, net_.parameters()));
    sync();
    (void)loss.item();
  }

  TrainContext& context_;
  const StepsOptions& options_;
  Net net_;
  Adam adam_;
  std::vector<float> x_;
  std::vector<Parameter> frozen_;
  std::vector<Parameter> state_;
  CheckpointManager checkpoints_;
  int num_saves_ = 0;
};

double p99(std::vector<double> samples) {
  const auto rank = static_cast<std::ptrdiff_t>((samples.size() * 99 + 99) / 100 - 1);
  std::ranges::nth_element(samples, samples.begin() + rank);
  return samples[static_cast<std::size_t>(rank)];
}

}  // namespace

std::vector<TableRow> measure_steps(const StepsOptions& options, int chips) {
  const std::string what = fmt::format("{} chip{}", chips, chips == 1 ? "" : "s");
  std::vector<TableRow> rows;
  for (const char* of : {"median", "p99"}) {
    for (const char* beside : {"no saves", "saving", "beside a writer of as many bytes"}) {
      rows.push_back({.name = fmt::format("{}: {}, {}", what, of, beside), .unit = "us/step"});
    }
  }
  TableRow saves{.name = what + ": saves in a block", .unit = "saves"};
  const auto loop = [&](TrainContext& context) {
    SavingTraining training(context, options);
    for (std::size_t block = 0; block < kKinds * static_cast<std::size_t>(options.blocks);
         ++block) {
      // Each round begins with a different kind of block.
      const std::size_t kind = (block + block / kKinds) % kKinds;
      const int before = training.num_saves();
      const std::vector<double> took = training.block(static_cast<Beside>(kind));
      rows[kind].samples.push_back(median(took));
      rows[kKinds + kind].samples.push_back(p99(took));
      if (training.num_saves() > before) saves.samples.push_back(training.num_saves() - before);
    }
  };
  const std::string folder = SavingTraining::folder(options);
  const Result result =
      Trainer([&](TrainContext& context) { loop(context); },
              {.scaling = {.num_workers = 0},
               .backend = {.spmd = {.mesh_shape = {chips}, .axis_names = {"data"}}},
               .run = {.name = "bench",
                       .storage_path = folder + "/runs",
                       .checkpoint = {.path = folder, .save_interval = 0, .max_to_keep = 1}}})
          .fit();
  fs::remove_all(folder);
  if (!result.ok()) fail(result.error->code, "{}", result.error->message);
  for (std::size_t kind = 1; kind < kKinds; ++kind) {
    rows[kind].ratio = paired_ratio(rows[kind], rows[0]);
    rows[kKinds + kind].ratio = paired_ratio(rows[kKinds + kind], rows[kKinds]);
  }
  rows.push_back(std::move(saves));
  return rows;
}

}  // namespace weft::bench
