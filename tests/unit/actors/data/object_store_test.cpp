/// Tests checkpoints and files of a loop in an object store.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include <weft/weft.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::object_store_test {
namespace {

using testing::expect_error;
using Steps = std::vector<std::uint64_t>;

const std::string kFolder = "mem://bucket/run";

class ObjectStoreLoop : public ::testing::Test {
 protected:
  ObjectStoreLoop() {
    ::setenv("WEFT_CACHE", (folder_.path() + "/cache").c_str(), 1);
    register_storage("mem", storage_);
  }
  ~ObjectStoreLoop() override { ::unsetenv("WEFT_CACHE"); }

  Result fit(RunConfig run, const std::function<void(TrainContext&)>& loop,
             const std::vector<std::int64_t>& mesh = {2, 2}) const {
    run.name = "stored";
    run.storage_path = folder_.path() + "/runs";
    return Trainer(loop,
                   {.scaling = {.num_workers = 0},
                    .backend = {.spmd = {.mesh_shape = mesh, .axis_names = {"data", "model"}}},
                    .run = run})
        .fit();
  }
  std::string checkpoint(std::uint64_t step) const {
    return fmt::format("{}/checkpoint_{:06}", kFolder, step);
  }

  const testing::TemporaryFolder folder_;
  const std::shared_ptr<testing::MemoryStorage> storage_ =
      std::make_shared<testing::MemoryStorage>();
};

/// A vector to which each step adds 1.
struct Counting {
  Parameter sum = make_parameter("sum", std::vector<float>(8, 0.0F), {8});
  Counting() { mark_sharding(sum, *mesh(), {{"data"}}); }
  void step() {
    sum.assign(sum + 1.0F);
    sync();
  }
  std::vector<Parameter> state() const { return {sum}; }
  void expect(float value) const {
    EXPECT_EQ(sum.to_vector<float>(), std::vector<float>(8, value));
  }
};

TEST_F(ObjectStoreLoop, SavesListsRestoresAndPrunes) {
  RunConfig config{.checkpoint = {.path = kFolder + "/", .max_to_keep = 2, .best_by = "loss"},
                   .resume = "auto"};
  const Result result = fit(config, [&](TrainContext& ctx) {
    Counting counting;
    CheckpointManager checkpoints;
    EXPECT_TRUE(checkpoints.all_steps().empty());
    for (const double loss : {0.5, 0.25, 0.75, 1.0}) {
      counting.step();
      const SaveOptions options{.metrics = {{"loss", loss}}, .user = {{"step", ctx.step()}}};
      if (ctx.step() % 2 == 0) {
        EXPECT_TRUE(checkpoints.save_async(counting.state(), options));
        checkpoints.wait();
      } else {
        EXPECT_TRUE(checkpoints.save(counting.state(), options));
      }
    }
    checkpoints.wait();
    EXPECT_EQ(checkpoints.latest_step(), 4U);
    EXPECT_EQ(checkpoints.best_step(), 2U);
    EXPECT_EQ(checkpoints.info(2).path, checkpoint(2));
    EXPECT_EQ(checkpoints.info(2).metrics.at("loss"), 0.25);
    EXPECT_EQ(checkpoints.info(2).user.at("step"), 2);
    checkpoints.restore(2, counting.state());
    counting.expect(2);
    load(counting.state(), checkpoint(4));
    counting.expect(4);
    expect_error(Errc::not_found, {"step 9", kFolder}, [&] { checkpoints.info(9); });
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.best_checkpoint->path, checkpoint(2));
  std::vector<std::uint64_t> steps;
  for (const CheckpointInfo& info : list_checkpoint_infos(kFolder)) steps.push_back(info.step);
  EXPECT_EQ(steps.back(), 4U);
  EXPECT_LE(steps.size(), 3U) << "the best two and the newest";
  EXPECT_EQ(std::ranges::count(steps, 2U), 1);
  for (const std::string& url : storage_->urls()) {
    EXPECT_TRUE(url.starts_with(kFolder + "/checkpoint_")) << url;
  }
}

TEST_F(ObjectStoreLoop, GoesOnOnAnotherMeshFromTheNewestAndFromAnyOther) {
  const RunConfig first{.checkpoint = {.path = kFolder}};
  Result result = fit(first, [&](TrainContext&) {
    Counting counting;
    CheckpointManager checkpoints;
    for (int i = 0; i < 3; ++i) {
      counting.step();
      checkpoints.save(counting.state());
    }
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  for (const auto& [resume, step, folder] :
       {std::tuple(std::string("auto"), 3U, kFolder), std::tuple(checkpoint(2), 2U, kFolder + "-2"),
        std::tuple(kFolder + "/", 3U, kFolder + "-3")}) {
    result = fit({.checkpoint = {.path = folder}, .resume = resume},
                 [&](TrainContext& ctx) {
                   EXPECT_EQ(ctx.step(), step);
                   Counting counting;
                   counting.expect(static_cast<float>(step));
                   counting.step();
                   counting.expect(static_cast<float>(step + 1));
                 },
                 {1, 1});
    ASSERT_TRUE(result.ok()) << result.error->message;
  }
  expect_error(Errc::invalid_argument, {kFolder, "has a checkpoint of step 3"}, [&] {
    (void)fit({.checkpoint = {.path = kFolder}, .resume = "never"}, [](TrainContext&) {});
  });
}

/// A save during the outage fails and leaves no checkpoint; the next save succeeds.
TEST_F(ObjectStoreLoop, SurvivesAStoreThatIsAwayForAWhile) {
  const Result result = fit({.checkpoint = {.path = kFolder}}, [&](TrainContext&) {
    Counting counting;
    CheckpointManager checkpoints;
    counting.step();
    checkpoints.save(counting.state());
    counting.step();
    storage_->fail_from(2);
    expect_error(Errc::io, {"the store is gone"}, [&] { checkpoints.save(counting.state()); });
    storage_->fail_from(-1);
    EXPECT_EQ(checkpoints.all_steps(), Steps{1});
    counting.step();
    checkpoints.save(counting.state());
    EXPECT_EQ(checkpoints.all_steps(), (Steps{1, 3}));
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
}

TEST_F(ObjectStoreLoop, SavesAndLoadsFilesOfTensors) {
  const std::string url = "mem://bucket/models/sum.safetensors";
  const Result result = fit({}, [&](TrainContext&) {
    Counting counting;
    counting.step();
    save(counting.state(), url);
    counting.step();
    load(counting.state(), url);
    counting.expect(1);
    expect_error(Errc::not_found, {"mem://bucket/models/other"},
                 [&] { load(counting.state(), "mem://bucket/models/other"); });
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(storage_->urls(), std::vector<std::string>{url});
}

}  // namespace
}  // namespace weft::object_store_test
