/// Tests what the context tells a loop about its worker and the job.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::context_test {
namespace {

using testing::expect_error;
using testing::expect_ok;
using testing::LoggedRun;
using testing::run_loop;
using testing::TemporaryFolder;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Loop tells{"test.tells_its_place", [](TrainContext& ctx) {
             Metrics told{{"device", device().to_string()}, {"devices", Metrics::array()}};
             for (const Device& chip : local_devices()) told["devices"].push_back(chip.to_string());
             for (const char* name :
                  {"WEFT_NUM_PROCESSES", "WEFT_PROCESS_INDEX", "WEFT_DEVICE", "WEFT_MESH_SHAPE",
                   "WEFT_DATA_PARALLEL_SIZE", "WEFT_MODEL_PARALLEL_SIZE", "WEFT_JOB_ID",
                   "WEFT_COORDINATOR_ADDRESS", "OMP_NUM_THREADS"}) {
               told[name] = variable(name);
             }
             told["job"] = ctx.job_id();
             told["stages"] = Metrics::array();
             for (const BootstrapStage& stage : ctx.bootstrap_trace()) {
               told["stages"].push_back({stage.name, stage.milliseconds});
             }
             std::thread([&] {
               try {
                 get_context();
               } catch (const Error& error) {
                 told["thread_without_scope"] = error.what();
               }
               const ContextScope scope(ctx);
               told["rank_of_thread"] = get_context().world_rank();
               told["mesh_of_thread"] = mesh()->to_string();
               told["device_of_thread"] = device().to_string();
             }).join();
             ctx.report(told);
           }};

TEST(Context, TellsTheDevicesOfEachWorker) {
  const Result result = run_loop(tells, 2);
  expect_ok(result);
  EXPECT_EQ(result.worker_metrics[0]["device"], "cpu:0");
  EXPECT_EQ(result.worker_metrics[0]["devices"], Metrics({"cpu:0", "cpu:1"}));
  EXPECT_EQ(result.worker_metrics[1]["device"], "cpu:2");
  EXPECT_EQ(result.worker_metrics[1]["devices"], Metrics({"cpu:2", "cpu:3"}));
}

TEST(Context, StandsInTheVariablesOfEachWorker) {
  const Result result = run_loop(tells, 2, {}, [](TrainerOptions& options) {
    options.scaling.resources_per_worker = {{"CPU", 3}};
  });
  expect_ok(result);
  for (const int worker : {0, 1}) {
    const Metrics& told = result.worker_metrics[static_cast<std::size_t>(worker)];
    EXPECT_EQ(told["WEFT_NUM_PROCESSES"], "2");
    EXPECT_EQ(told["WEFT_PROCESS_INDEX"], std::to_string(worker));
    EXPECT_EQ(told["WEFT_DEVICE"], "cpu");
    EXPECT_EQ(told["WEFT_MESH_SHAPE"], "2,2");
    EXPECT_EQ(told["WEFT_DATA_PARALLEL_SIZE"], "2");
    EXPECT_EQ(told["WEFT_MODEL_PARALLEL_SIZE"], "2");
    EXPECT_EQ(told["WEFT_JOB_ID"], result.job.id);
    EXPECT_EQ(told["job"], result.job.id);
    EXPECT_TRUE(told["WEFT_COORDINATOR_ADDRESS"].get<std::string>().starts_with("unix:/"));
    EXPECT_EQ(told["OMP_NUM_THREADS"], "3");
  }
}

TEST(Context, StandsInTheVariablesOfThisProcessWhoseThreadTheLoopIs) {
  const Result result = run_loop(tells, 0);
  expect_ok(result);
  EXPECT_EQ(result.metrics["WEFT_NUM_PROCESSES"], "1");
  EXPECT_EQ(result.metrics["WEFT_PROCESS_INDEX"], "0");
  EXPECT_EQ(result.metrics["WEFT_DEVICE"], "cpu");
  EXPECT_EQ(result.metrics["WEFT_MESH_SHAPE"], "2");
  EXPECT_EQ(result.metrics["WEFT_DATA_PARALLEL_SIZE"], "2");
  EXPECT_EQ(result.metrics["WEFT_MODEL_PARALLEL_SIZE"], "1");
  EXPECT_EQ(result.metrics["WEFT_JOB_ID"], result.job.id);
}

TEST(Context, IsThatOfAThreadOfTheLoopWithinAScope) {
  const Result result = run_loop(tells, 2);
  expect_ok(result);
  const Metrics& told = result.worker_metrics[1];
  EXPECT_NE(told["thread_without_scope"].get<std::string>().find("weft::ContextScope scope(ctx)"),
            std::string::npos);
  EXPECT_EQ(told["rank_of_thread"], 1);
  EXPECT_EQ(told["mesh_of_thread"], "(2,2) (\"data\",\"model\")");
  EXPECT_EQ(told["device_of_thread"], "cpu:2");
}

TEST(Context, IsAnErrorOutsideALoop) {
  const auto refused = [](auto call) {
    expect_error(Errc::not_found, {"there is no training context on this thread", "ContextScope"},
                 call);
  };
  refused([] { get_context(); });
  refused([] { mesh(); });
  refused([] { is_spmd_backend(); });
  refused([] { device(); });
  refused([] { local_devices(); });
}

TEST(Context, TracesTheStagesOfTheStart) {
  const Result result = run_loop(tells, 2);
  expect_ok(result);
  std::vector<std::string> names;
  for (const Metrics& stage : result.worker_metrics[1]["stages"]) {
    names.push_back(stage[0]);
    EXPECT_GE(stage[1].get<double>(), 0) << stage[0];
  }
  EXPECT_EQ(names, (std::vector<std::string>{"map", "connect", "join", "others joined",
                                             "members checked", "devices"}));
}

struct OneLayer : Module {
  Linear fc{*this, "fc", {.in_features = 2, .out_features = 2}};
};

Loop draws{"test.draws", [](TrainContext& ctx) {
             ctx.report({{"seed", ctx.seed()},
                         {"initial", initial_seed()},
                         {"numbers", rand({4}).to_vector()},
                         {"weights", OneLayer().fc.weight.to_vector()}});
           }};

Metrics drawn(std::uint64_t seed, int workers) {
  const Result result =
      run_loop(draws, workers, {}, [&](TrainerOptions& options) { options.run.seed = seed; });
  return expect_ok(result).metrics;
}

TEST(Context, HasTheSeedOfTheRun) {
  const Metrics first = drawn(7, 0);
  EXPECT_EQ(first["seed"], 7);
  EXPECT_EQ(first["initial"], 7);
  EXPECT_EQ(drawn(7, 2), first) << "in other processes";
  const Metrics other = drawn(8, 0);
  EXPECT_NE(other["numbers"], first["numbers"]);
  EXPECT_NE(other["weights"], first["weights"]);
}

Loop two_programs{"test.two_programs", [](TrainContext&) {
                    (full({2}, 1) + 1.0).to_vector();
                    (full({3}, 1) * 2.0).to_vector();
                  }};

TEST(Context, DumpsItsProgramsWhereThatIsAskedFor) {
  const TemporaryFolder folder;
  ::setenv("WEFT_DUMP_TO", folder.path().c_str(), 1);
  const Result result = run_loop(two_programs, 1);
  ::unsetenv("WEFT_DUMP_TO");
  expect_ok(result);
  int plans = 0;
  std::string texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".weftplan") {
      ++plans;
      continue;
    }
    std::ifstream file(entry.path());
    texts.append(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_EQ(plans, 2);
  EXPECT_NE(texts.find("context_test.cpp:"), std::string::npos);
  EXPECT_NE(texts.find("multiply"), std::string::npos);
}

Loop alone{"test.alone", [](TrainContext&) {}};

TEST(Devices, AreChosenWithOneReason) {
  const LoggedRun run = testing::run_logged(alone, 1);
  expect_ok(run.result);
  const auto first = run.log.find("chips are threads of the CPU: looked for a TPU");
  ASSERT_NE(first, std::string::npos) << run.log;
  EXPECT_EQ(run.log.find("chips are threads", first + 1), std::string::npos) << run.log;
}

TEST(Devices, ThatArentThereAreAnError) {
  expect_error(Errc::unavailable,
               {"scaling.use_tpu = true", "looked for a TPU", "pip install libtpu",
                "fit() at run_loop.cpp:"},
               [] {
                 run_loop(alone, 0, {},
                          [](TrainerOptions& options) { options.scaling.use_tpu = true; });
               });
}

/// Adds up the values of all workers' chips along both axes of the mesh.
Loop gathers{"test.gathers", [](TrainContext& ctx) {
               const Tensor x = to_device(std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}, {4, 2});
               mark_sharding(x, {{"data"}, {"model"}});
               std::vector<std::string> places;
               const Tensor y = sum(x * x, {1});
               ctx.report({{"sums", y.to_vector()}, {"grid", ctx.mesh()->grid()}});
             }};

TEST(Devices, MayStandInAnyOrder) {
  const Metrics usual = expect_ok(run_loop(gathers, 2)).metrics;
  const Metrics turned = expect_ok(run_loop(gathers, 2, {}, [](TrainerOptions& options) {
                           options.backend.spmd.device_ids = {3, 0, 1, 2};
                         })).metrics;
  EXPECT_EQ(turned["sums"], usual["sums"]);
  EXPECT_EQ(turned["sums"], Metrics({1, 13, 41, 85}));
  EXPECT_NE(turned["grid"], usual["grid"]);
}

}  // namespace
}  // namespace weft::context_test
