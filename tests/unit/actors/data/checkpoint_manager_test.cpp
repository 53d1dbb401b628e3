#include <weft/train/checkpoint_manager.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

#include "spmd/tensor/tensor_source.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/board/board.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft::checkpoint_manager_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TemporaryFolder;
using Bytes = std::vector<std::byte>;
using Values = std::map<std::string, Bytes>;

constexpr std::int64_t kRows = 12;  // divisible by 1 to 4 chips

struct Net : Module {
  explicit Net(double dropout) : drop{*this, "drop", dropout} {}
  Linear fc1{*this, "fc1", {.in_features = 6, .out_features = 16}};
  Dropout drop;
  Linear fc2{*this, "fc2", {.in_features = 16, .out_features = 3}};
  Tensor operator()(const Tensor& x) { return fc2(drop(tanh(fc1(x)))); }
};

/// Returns the elements of a step's batch.
std::vector<float> batch(std::uint64_t step) {
  std::vector<float> numbers(kRows * 6);
  std::minstd_rand random(static_cast<unsigned>(step + 1));
  for (float& number : numbers) number = static_cast<float>(random() % 1000) / 500 - 1;
  return numbers;
}

/// A net with its optimizer, and functions that train it.
struct Training {
  Net net;
  AdamW adam;

  explicit Training(double dropout = 0.25)
      : net(dropout), adam(net.parameters(), {.lr = 1e-2, .weight_decay = 0.1}) {
    fsdp(net, *mesh());
  }
  void step() {
    const Tensor x = to_device(batch(get_context().step()), {kRows, 6});
    mark_sharding(x, *mesh(), {{"data"}, {}});
    const Tensor y = net(x);
    const Tensor loss = mean(y * y);
    adam.step(grad(loss, net.parameters()));
    sync();
  }
  void train_to(std::uint64_t steps) {
    while (get_context().step() < steps) step();
  }
  std::vector<Parameter> state() const { return state_dict(net, adam); }
  Values values() const {
    Values values;
    for (const Parameter& parameter : state()) values[parameter.name()] = parameter.to_bytes();
    return values;
  }
};

Values stored(const std::string& checkpoint) {
  const CheckpointManifest manifest = read_manifest(checkpoint);
  Values values;
  std::vector<WantedBox> wanted;
  for (std::size_t t = 0; t < manifest.tensors.size(); ++t) {
    const StoredTensor& tensor = manifest.tensors[t];
    Bytes& bytes = values[tensor.name];
    bytes.resize(static_cast<std::size_t>(tensor.type.bytes()));
    wanted.push_back({t, whole_box(tensor.type.shape), bytes.data()});
  }
  (void)read_boxes(checkpoint, manifest, wanted);
  return values;
}

class Checkpoints : public ::testing::Test {
 protected:
  using Loop = std::function<void(TrainContext&)>;
  Result fit(const RunConfig& run, const Loop& loop,
             const std::vector<std::int64_t>& mesh = {2, 2}) const {
    RunConfig own = run;
    own.name = "checkpoints";
    own.storage_path = folder_.path() + "/runs";
    return Trainer([&](TrainContext& ctx) { loop(ctx); },
                   {.scaling = {.num_workers = 0},
                    .backend = {.spmd = {.mesh_shape = mesh, .axis_names = {"data", "model"}}},
                    .run = own})
        .fit();
  }
  void run(const RunConfig& config, const Loop& loop,
           const std::vector<std::int64_t>& mesh = {2, 2}) const {
    const Result result = fit(config, loop, mesh);
    ASSERT_TRUE(result.ok()) << result.error->message;
  }
  static void expect_failure(const Result& result, Errc code,
                             std::initializer_list<std::string_view> words) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error->code, code) << result.error->message;
    for (const std::string_view word : words) {
      EXPECT_NE(result.error->message.find(word), std::string::npos)
          << word << " in " << result.error->message;
    }
  }
  std::string path() const { return folder_.path() + "/saved"; }
  RunConfig every(int steps) const {
    return {.checkpoint = {.path = path(), .save_interval = steps}, .seed = 11};
  }
  std::string checkpoint(std::uint64_t step) const {
    return fmt::format("{}/checkpoint_{:06}", path(), step);
  }

  TemporaryFolder folder_;
};

TEST_F(Checkpoints, AreSavedAtTheirInterval) {
  std::map<std::uint64_t, Values> values;
  run(every(3), [&](TrainContext& ctx) {
    Training training;
    CheckpointManager checkpoints;
    EXPECT_FALSE(checkpoints.latest_step());
    EXPECT_FALSE(checkpoints.should_save());
    while (ctx.step() < 10) {
      training.step();
      EXPECT_EQ(checkpoints.save(training.state()), ctx.step() % 3 == 0) << ctx.step();
      if (ctx.step() % 3 == 0) {
        EXPECT_EQ(checkpoints.latest_step(), ctx.step());
        values[ctx.step()] = training.values();
      }
    }
    EXPECT_EQ(checkpoints.all_steps(), (std::vector<std::uint64_t>{3, 6, 9}));
  });
  ASSERT_EQ(values.size(), 3U);
  for (const auto& [step, state] : values) {
    EXPECT_EQ(stored(checkpoint(step)), state) << step;
    EXPECT_TRUE(verify_checkpoint(checkpoint(step), read_manifest(checkpoint(step))).empty());
  }
  const CheckpointManifest manifest = read_manifest(checkpoint(6));
  EXPECT_EQ(manifest.step, 6U);
  EXPECT_EQ(manifest.seed, 11U);
  EXPECT_EQ(manifest.mesh_shape, (std::vector<std::int64_t>{2, 2}));
}

TEST_F(Checkpoints, HoldTheStateOfTheirStepThoughTheTrainingGoesOn) {
  std::map<std::uint64_t, Values> values;
  RunConfig config = every(2);
  config.failure.state_versions = 2;
  config.check_replicas_every = 1;  // so that two versions are kept
  for (const bool keeps_versions : {false, true}) {
    config.check_replicas_every = keeps_versions ? 1 : 0;
    config.checkpoint.path = path() + (keeps_versions ? "2" : "1");
    values.clear();
    run(config, [&](TrainContext& ctx) {
      Training training;
      CheckpointManager checkpoints;
      while (ctx.step() < 40) {
        training.step();
        if (checkpoints.should_save()) values[ctx.step()] = training.values();
        checkpoints.save_async(training.state());
      }
    });
    ASSERT_EQ(values.size(), 20U);
    for (const auto& [step, state] : values) {
      EXPECT_EQ(stored(fmt::format("{}/checkpoint_{:06}", config.checkpoint.path, step)), state)
          << step;
    }
  }
}

/// A module with a weight of 1 MiB, which every step replaces.
struct Large : Module {
  Parameter weight = add_parameter("weight", std::vector<float>(std::size_t{1} << 18), {1 << 18});
};

/// A source of zeros. A read waits until the job's loop waits for a checkpoint.
class ReadWhenSaving : public TensorSource {
 public:
  ReadWhenSaving(const std::string& job, std::shared_ptr<const std::atomic<bool>> is_over)
      : board_(Board::open(job, true)), is_over_(std::move(is_over)) {}
  void read(std::span<const Target> targets) const override {
    while (!*is_over_ && board_.read(1).state != ActorState::saving) std::this_thread::yield();
    for (const Target& target : targets) *target.memory = {};
  }
  std::uint64_t digest() const override { return 0; }

 private:
  const Board board_;
  const std::shared_ptr<const std::atomic<bool>> is_over_;
};

/// The memory is enough for the versions that the job needs, but not for one more that a save
/// holds. So the loop has to wait for the save.
TEST_F(Checkpoints, ASaveThatTakesTooMuchMemoryIsWaitedFor) {
  for (const int versions : {1, 2}) {
    const std::size_t room = static_cast<std::size_t>(2 * versions + 1) << 19;
    ASSERT_EQ(::setenv("WEFT_ARENA_BYTES", std::to_string(2 * room).c_str(), 1), 0);
    RunConfig config = every(3);
    config.checkpoint.path = fmt::format("{}{}", path(), versions);
    config.check_replicas_every = versions == 1 ? 0 : 1;  // 1 makes the job keep two versions
    std::string metrics;
    const auto loop = [&](TrainContext& ctx) {
      const auto is_over = std::make_shared<std::atomic<bool>>(false);
      const std::shared_ptr<void> ends(nullptr, [&](void*) { *is_over = true; });
      Large net;
      const Parameter late = make_parameter("late", std::vector<float>(1), {1});
      set_source(late, std::make_shared<ReadWhenSaving>(ctx.job_id(), is_over), {},
                 std::source_location::current());
      CheckpointManager checkpoints;
      while (ctx.step() < 9) {
        net.weight.assign(net.weight + 1.0F);
        sync();
        checkpoints.save_async(std::vector{net.weight, late});
        if (ctx.step() == 5) metrics = metrics_report();
      }
      checkpoints.wait();
    };
    run(config, loop, {1, 1});
    EXPECT_NE(metrics.find("CheckpointWait"), std::string::npos) << metrics;
    for (const std::uint64_t step : {3, 6, 9}) {
      const Bytes bytes =
          stored(fmt::format("{}/checkpoint_{:06}", config.checkpoint.path, step)).at("weight");
      float first = 0;
      std::memcpy(&first, bytes.data(), sizeof first);
      EXPECT_EQ(first, static_cast<float>(step));
    }
  }
  ::unsetenv("WEFT_ARENA_BYTES");
}

/// A resumed job ends with the same bits. Dropout and the batches depend on the step, and AdamW has
/// state of two dtypes.
TEST_F(Checkpoints, GoOnToTheBit) {
  Values straight;
  run({.seed = 11}, [&](TrainContext&) {
    Training training;
    training.train_to(12);
    straight = training.values();
  });
  for (const std::uint64_t at : {1, 5, 11}) {
    RunConfig config = every(1);
    config.checkpoint.path = fmt::format("{}{}", path(), at);
    config.resume = "auto";
    run(config, [&](TrainContext& ctx) {
      EXPECT_EQ(ctx.step(), 0U);
      Training training;
      training.train_to(at);
      CheckpointManager().save_async(training.state(), {.user = {{"epoch", 7}}});
    });
    config.seed = 99;  // the checkpoint's seed takes precedence
    run(config, [&](TrainContext& ctx) {
      EXPECT_EQ(ctx.step(), at);
      EXPECT_EQ(ctx.seed(), 11U);
      EXPECT_EQ(CheckpointManager().user(), (Config{{"epoch", 7}}));
      Training training;
      training.train_to(12);
      EXPECT_EQ(training.values(), straight);
    });
  }
}

TEST_F(Checkpoints, AreOfTheirStepBeforeTheFirstStepToo) {
  run(every(4), [&](TrainContext&) {
    Training training;
    training.train_to(4);
    CheckpointManager().save(training.state());
  });
  RunConfig config = every(1);
  config.resume = "auto";
  run(config, [&](TrainContext&) {
    Training training;
    EXPECT_EQ(training.values(), stored(checkpoint(4))) << "read without a use";
    CheckpointManager().save(training.state(), {.force = true});
  });
  EXPECT_EQ(stored(checkpoint(4) + "-1"), stored(checkpoint(4))) << "from file to file";
  EXPECT_EQ(stored(checkpoint(4)).size(), 4U + 2 * 4 + 2);
}

/// The save comes before any step uses a parameter, so all parameters are still on the host.
TEST_F(Checkpoints, HaveWhatIsOnTheHost) {
  Values initial;
  run(every(1), [&](TrainContext&) {
    Training training;
    CheckpointManager().save(training.state(), {.force = true});
    initial = training.values();
  });
  EXPECT_EQ(stored(checkpoint(0)), initial);
}

TEST_F(Checkpoints, GoOnOnAnotherMesh) {
  Values straight;
  run({.seed = 11}, [&](TrainContext&) {
    Training training;
    training.train_to(20);
    straight = training.values();
  });
  run(every(10), [&](TrainContext&) {
    Training training;
    training.train_to(10);
    CheckpointManager().save(training.state());
  });
  for (const std::vector<std::int64_t>& mesh :
       {std::vector<std::int64_t>{1, 1}, {4, 1}, {3, 1}, {1, 2}}) {
    RunConfig config = every(1000);
    config.resume = checkpoint(10);
    config.checkpoint.path = "";
    run(
        config,
        [&](TrainContext& ctx) {
          EXPECT_EQ(ctx.step(), 10U);
          Training training;
          EXPECT_EQ(training.values(), stored(checkpoint(10)));
          training.train_to(20);
          const Values values = training.values();
          for (const Parameter& parameter : training.net.parameters()) {
            const auto& bytes = values.at(parameter.name());
            const auto* got = reinterpret_cast<const float*>(bytes.data());
            const auto* expected =
                reinterpret_cast<const float*>(straight.at(parameter.name()).data());
            for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
              EXPECT_NEAR(got[i], expected[i], 1e-5) << parameter.name() << " " << i;
            }
          }
        },
        mesh);
  }
}

TEST_F(Checkpoints, OldOnesGo) {
  RunConfig config = every(1);
  config.checkpoint.max_to_keep = 2;
  config.checkpoint.keep_every = 4;
  config.checkpoint.best_by = "loss";
  const std::vector<double> losses{0, 5, 1, 6, 7, 2, 8, 9, 3, 10};
  run(config, [&](TrainContext& ctx) {
    Training training;
    CheckpointManager checkpoints;
    while (ctx.step() < 9) {
      training.step();
      checkpoints.save_async(training.state(), {.metrics = {{"loss", losses[ctx.step()]}}});
    }
  });
  // Pruning keeps the best two, multiples of 4, and the newest.
  std::vector<std::uint64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(path())) steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{2, 4, 5, 8, 9}));
  for (const auto& entry : fs::directory_iterator(path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".t")) << entry.path();
  }
}

/// The best checkpoint is found in an undisturbed run, in a resumed one, and outside of a job.
TEST_F(Checkpoints, TheBestIsFoundByItsMetric) {
  RunConfig config = every(1);
  config.checkpoint.best_by = "loss";
  config.resume = "auto";
  const std::vector<double> losses{0, 0.5, 0.25, std::nan(""), 0.25, 0.75, 0.125};
  for (const auto& [end, best] : {std::pair(5U, 4U), std::pair(6U, 6U)}) {
    const Result result = fit(config, [&](TrainContext& ctx) {
      Training training;
      CheckpointManager checkpoints;
      const auto before = ctx.step() == 0 ? std::optional<std::uint64_t>() : 4U;
      EXPECT_EQ(checkpoints.best_step(), before);
      while (ctx.step() < end) {
        training.step();
        checkpoints.save(training.state(), {.metrics = {{"loss", losses[ctx.step()]}},
                                            .user = {{"epoch", ctx.step()}}});
      }
      EXPECT_EQ(checkpoints.best_step(), best);
      const CheckpointInfo info = checkpoints.info(best);
      EXPECT_EQ(info.metrics, (Metrics{{"loss", losses[best]}}));
      EXPECT_EQ(info.user, (Config{{"epoch", best}}));
      expect_error(Errc::not_found, {"info", "no checkpoint of step 77"},
                   [&] { (void)checkpoints.info(77); });
    });
    ASSERT_TRUE(result.ok()) << result.error->message;
    ASSERT_TRUE(result.best_checkpoint);
    EXPECT_EQ(result.best_checkpoint->path, checkpoint(best));
  }
  const std::vector<CheckpointInfo> infos = list_checkpoint_infos(path());
  ASSERT_EQ(infos.size(), 6U);
  EXPECT_EQ(infos[4].step, 5U);
  EXPECT_EQ(infos[4].seed, 11U);
  EXPECT_EQ(infos[4].metrics, (Metrics{{"loss", 0.75}}));
  EXPECT_EQ(checkpoint_info(checkpoint(2)).user, (Config{{"epoch", 2}}));
}

TEST_F(Checkpoints, TheBestIsTheGreatestWhereThatWasAskedFor) {
  RunConfig config = every(1);
  config.checkpoint.best_by = "accuracy";
  config.checkpoint.best_mode = BestMode::max;
  const Result result = fit(config, [&](TrainContext& ctx) {
    Training training;
    CheckpointManager checkpoints;
    for (const double accuracy : {0.5, 0.75, 0.25}) {
      training.step();
      checkpoints.save(training.state(), {.metrics = {{"accuracy", accuracy}}});
    }
    EXPECT_EQ(ctx.step(), 3U);
    EXPECT_EQ(checkpoints.best_step(), 2U);
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.best_checkpoint->path, checkpoint(2));
}

TEST_F(Checkpoints, TheBestNeedsAMetricToBeComparedBy) {
  const Result result = fit(every(1), [&](TrainContext&) {
    CheckpointManager checkpoints;
    expect_error(Errc::invalid_argument, {"best_step", "run.checkpoint.best_by"},
                 [&] { (void)checkpoints.best_step(); });
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_FALSE(result.best_checkpoint);
}

TEST_F(Checkpoints, AnEarlierSaveOfTheSameStepGoes) {
  RunConfig config = every(1);
  config.checkpoint.max_to_keep = 1;
  run(config, [&](TrainContext&) {
    Training training;
    CheckpointManager checkpoints;
    training.step();
    for (int i = 0; i < 3; ++i) checkpoints.save(training.state(), {.force = true});
    training.step();
    checkpoints.save(training.state());
  });
  EXPECT_FALSE(fs::exists(checkpoint(1)));
  EXPECT_FALSE(fs::exists(checkpoint(1) + "-1"));
  EXPECT_FALSE(fs::exists(checkpoint(1) + "-2"));
  EXPECT_TRUE(fs::exists(checkpoint(2)));
}

TEST_F(Checkpoints, TheStepThatTheJobGoesOnFromIsNotDueAgain) {
  RunConfig config = every(3);
  config.resume = "auto";
  for (const std::uint64_t begin : {0, 3, 6}) {
    run(config, [&](TrainContext& ctx) {
      EXPECT_EQ(ctx.step(), begin);
      Training training;
      CheckpointManager checkpoints;
      EXPECT_FALSE(checkpoints.should_save());
      training.train_to(begin + 3);
      EXPECT_TRUE(checkpoints.save(training.state()));
      EXPECT_FALSE(checkpoints.save(training.state())) << "saved";
    });
  }
}

/// A checkpoint that the loop loads must not be pruned before the loop has read it.
TEST_F(Checkpoints, OneThatIsLoadedStaysUntilItIsRead) {
  RunConfig config = every(1);
  config.checkpoint.max_to_keep = 1;
  run(config, [&](TrainContext& ctx) {
    CheckpointManager checkpoints;
    Values first;
    {
      Training training;
      training.step();
      checkpoints.save(training.state());
      first = training.values();
    }
    Training later;
    checkpoints.restore(1, later.state());
    {
      Large other;
      while (ctx.step() < 4) {
        other.weight.assign(other.weight + 1.0F);
        sync();
        checkpoints.save(other.parameters());
      }
    }
    EXPECT_TRUE(fs::exists(checkpoint(1)));
    EXPECT_FALSE(fs::exists(checkpoint(2))) << "pruned before the save of step 4";
    EXPECT_EQ(later.values(), first);
    later.train_to(5);
    checkpoints.save(later.state());
  });
  const auto left = list_checkpoints(path());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].step, 5U);
}

TEST_F(Checkpoints, WhatAnEarlierJobLeftUnfinishedGoesAtTheStart) {
  fs::create_directories(path() + "/.tmp-000003-job-0");
  std::ofstream(path() + "/.tmp-000003-job-0/part-00000-of-00001.weft") << "half";
  run(every(1), [&](TrainContext&) { EXPECT_FALSE(fs::exists(path() + "/.tmp-000003-job-0")); });
}

/// The folder from which the job resumes has an arbitrary name, and its path ends with a slash.
TEST_F(Checkpoints, AJobThatGoesOnFromAFolderOfAnyNameCountsItsReportedOnes) {
  run(every(3), [&](TrainContext&) {
    Training training;
    training.train_to(3);
    CheckpointManager().save(training.state());
  });
  const std::string base = folder_.path() + "/base";
  fs::rename(checkpoint(3), base);
  fs::create_directories(folder_.path() + "/made");
  RunConfig config;
  config.resume = base + "/";
  config.checkpoint.max_to_keep = 1;
  const Result result = fit(config, [&](TrainContext& ctx) {
    Training training;
    while (ctx.step() < 6) {
      training.step();
      ctx.report({{"step", ctx.step()}}, Checkpoint{folder_.path() + "/made"});
    }
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_FALSE(fs::exists(result.path + "/checkpoint_000004"));
  EXPECT_TRUE(fs::exists(result.path + "/checkpoint_000006"));
}

TEST_F(Checkpoints, AManagerWorksOnlyInItsLoop) {
  std::optional<CheckpointManager> kept;
  run(every(1), [&](TrainContext&) { kept.emplace(); });
  expect_error(Errc::invalid_argument, {"CheckpointManager", "inside the loop"},
               [&] { (void)kept->should_save(); });
  expect_error(Errc::invalid_argument, {"inside the loop"}, [&] { (void)kept->all_steps(); });
}

TEST_F(Checkpoints, ANameInTheirWayIsAnError) {
  run(every(1), [&](TrainContext&) {
    Training training;
    CheckpointManager checkpoints;
    // A file is where the folder of the parts should be.
    fs::remove_all(path());
    std::ofstream(path()) << "no folder";
    expect_error(Errc::io, {"step 0", "worker 0", path()},
                 [&] { checkpoints.save(training.state(), {.force = true}); });
    fs::remove(path());
    EXPECT_TRUE(checkpoints.save(training.state(), {.force = true})) << "the next one is saved";
  });
}

TEST_F(Checkpoints, TheSecondFailureInARowThrowsAndTheLastOneEndsTheJob) {
  const Result result = fit(every(1), [&](TrainContext&) {
    Training training;
    CheckpointManager checkpoints;
    fs::remove_all(path());
    std::ofstream(path()) << "no folder";
    training.step();
    checkpoints.save_async(training.state());
    training.step();
    checkpoints.save_async(training.state());
    training.step();
    expect_error(Errc::io, {"step 2"}, [&] { checkpoints.save_async(training.state()); });
    fs::remove(path());
    checkpoints.save(training.state());
    std::ofstream(path() + "/checkpoint_000003/nothing");
    fs::rename(path(), path() + "-away");
    std::ofstream(path()) << "no folder";
    training.step();
    checkpoints.save_async(training.state());
  });
  expect_failure(result, Errc::io, {"step 4", "was not saved"});
  EXPECT_EQ(list_checkpoints(path() + "-away").size(), 1U);
}

TEST_F(Checkpoints, TellWhatIsWrong) {
  run(every(1), [&](TrainContext&) {
    Training training;
    CheckpointManager checkpoints;
    training.step();
    std::vector<Parameter> twice = training.state();
    twice.push_back(twice.front());
    expect_error(Errc::invalid_argument, {"two tensors", "fc1.weight"},
                 [&] { checkpoints.save(twice); });
    expect_error(Errc::not_found, {"step 7", "it has no checkpoints"},
                 [&] { checkpoints.restore(7, training.state()); });
    const Parameter weight = training.net.fc1.weight;
    Parameter(weight).assign(weight * 2.0F);
    expect_error(Errc::invalid_argument, {"fc1.weight", "assigned since the last sync"},
                 [&] { checkpoints.save(training.state()); });
    sync();
    checkpoints.save(training.state());
    expect_error(Errc::not_found, {"step 7", "steps 2"},
                 [&] { checkpoints.restore(7, training.state()); });
    training.step();
    checkpoints.restore(2, training.state());
    EXPECT_EQ(training.values(), stored(checkpoint(2)));
  });
  EXPECT_THROW(CheckpointManager(), Error) << "outside a loop";
}

TEST_F(Checkpoints, ARunThatBeginsAnewDoesNotMixThemWithItsOwn) {
  run(every(1), [&](TrainContext&) {
    Training training;
    training.train_to(3);
    CheckpointManager().save(training.state());
  });
  const auto nothing = [](TrainContext&) { FAIL() << "the loop has begun"; };
  expect_error(Errc::invalid_argument, {path(), "step 3", "never", "auto"},
               [&] { fit(every(1), nothing); });
  RunConfig config = every(1);
  config.resume = folder_.path() + "/nowhere";
  config.checkpoint.path = "";
  expect_error(Errc::not_found, {"nowhere"}, [&] { fit(config, nothing); });
  config.resume = "auto";
  expect_error(Errc::invalid_argument, {"run.resume", "run.checkpoint.path"},
               [&] { fit(config, nothing); });
}

TEST_F(Checkpoints, WithoutATensorOfTheProgramAreRefused) {
  run(every(1), [&](TrainContext&) {
    Training training;
    training.train_to(2);
    CheckpointManager().save(state_dict(training.net));
  });
  RunConfig config = every(1);
  config.resume = "auto";
  expect_failure(fit(config,
                     [](TrainContext& ctx) {
                       Training training;
                       training.train_to(ctx.step() + 1);
                     }),
                 Errc::invalid_argument, {"has no", "state_dict(net, optimizer)"});
  expect_failure(fit(config,
                     [](TrainContext&) {
                       Module root;
                       Linear fc1(root, "fc1", {.in_features = 6, .out_features = 17});
                       const Tensor y = fc1(full({1, 6}, 1));
                       sync();
                     }),
                 Errc::invalid_argument, {"fc1.weight", "f32[17,6]", "f32[16,6]"});
}

/// The newest checkpoints are damaged, so the job resumes from the newest that can be read.
TEST_F(Checkpoints, ThatAreDamagedArePassedOver) {
  run(every(1), [&](TrainContext& ctx) {
    Training training;
    CheckpointManager checkpoints;
    while (ctx.step() < 3) {
      training.step();
      checkpoints.save(training.state());
    }
  });
  const std::string part = "/part-00000-of-00001.weft";
  fs::resize_file(checkpoint(3) + part, fs::file_size(checkpoint(3) + part) - 1);
  RunConfig config = every(1);
  config.resume = "auto";
  run(config, [](TrainContext& ctx) { EXPECT_EQ(ctx.step(), 2U); });
  fs::remove(checkpoint(3) + part);
  run(config, [](TrainContext& ctx) { EXPECT_EQ(ctx.step(), 2U); });
  fs::resize_file(checkpoint(3) + "/manifest.weft", 100);
  run(config, [](TrainContext& ctx) { EXPECT_EQ(ctx.step(), 2U); });
  fs::resize_file(checkpoint(2) + "/manifest.weft", 100);
  fs::resize_file(checkpoint(1) + "/manifest.weft", 100);
  expect_error(Errc::corrupt, {"none of the 3 checkpoints"},
               [&] { fit(config, [](TrainContext&) {}); });
}

}  // namespace
}  // namespace weft::checkpoint_manager_test
