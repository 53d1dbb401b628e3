/// fit() with the worker in this process, as a program sees it.

#include <weft/weft.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <latch>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include <weft/tests/support/expect_error.hpp>

namespace weft {
namespace {

class Fit : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  Result fit(TrainLoop loop, std::vector<std::shared_ptr<Callback>> callbacks = {},
             int check_replicas_every = 0) {
    return Trainer(std::move(loop), {.scaling = {.num_workers = 0, .chips_per_worker = 2},
                                     .run = {.name = "fit",
                                             .storage_path = root_,
                                             .callbacks = std::move(callbacks),
                                             .check_replicas_every = check_replicas_every}})
        .fit();
  }

  const std::string root_ =
      std::filesystem::temp_directory_path() / fmt::format("weft-fit-{}", ::getpid());
};

void expect_refused(const Result& result, Errc code, std::string_view words) {
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code, code);
  EXPECT_NE(result.error->message.find(words), std::string::npos) << result.error->message;
}

TEST_F(Fit, RefusesATensorOfAFitThatHasEnded) {
  Tensor kept;
  const Result first = fit([&](TrainContext&) {
    kept = to_device(std::vector<float>{1, 2, 3, 4}, {4}) * 1.0;
    sync();
  });
  ASSERT_TRUE(first.ok()) << first.error->message;
  expect_refused(fit([&](TrainContext&) { (kept + 1.0).to_vector(); }), Errc::invalid_argument,
                 "f32[4]) lies on the chips of a fit() that has ended");
  expect_refused(fit([&](TrainContext&) { kept.to_vector(); }), Errc::invalid_argument,
                 "f32[4]) lies on the chips of a fit() that has ended");
}

/// Of a job that keeps what its loops have: it is known by its name. A handle may still refer to
/// the first, as that of a compiled function's last trace does.
TEST_F(Fit, RefusesTwoParametersOfOneNameThatAreUsedInTurn) {
  const auto use = [](Parameter& parameter) {
    parameter.assign(parameter + 1);
    sync();
  };
  const auto two = [&](bool in_turn) {
    return [&use, in_turn](TrainContext&) {
      Parameter first = make_parameter("w", std::vector<float>{1, 2}, {2});
      use(first);
      Parameter second = make_parameter("w", std::vector<float>{3, 4}, {2});
      use(second);
      use(second);
      if (in_turn) use(first);
      EXPECT_EQ(second.to_vector(), (std::vector<float>{5, 6}));
    };
  };
  expect_refused(fit(two(true), {}, 1), Errc::invalid_argument,
                 "two parameters, or states of optimizers, are named 'w' and used in turn");
  EXPECT_TRUE(fit(two(false), {}, 1).ok());
  EXPECT_TRUE(fit(two(true)).ok()) << "which keeps nothing";
}

TEST_F(Fit, RunsCodeOnEachChipBetweenPrograms) {
  std::vector<float> sums(2);
  double traced = 0;
  const Result result = fit([&](TrainContext& ctx) {
    const Tensor before = to_device(std::vector<float>{1, 2, 3, 4}, {4}) * 2.0;
    sync();
    const ChipArray<float> array = ctx.allocate<float>(3);
    ctx.on_each_chip([&](Chip& chip) {
      const std::span<float> values = array.on(chip);
      std::iota(values.begin(), values.end(), static_cast<float>(chip.position()));
      chip.all_reduce(values);
      sums[static_cast<std::size_t>(chip.local_index())] = values[2];
    });
    traced = sum(before).item();
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(sums, (std::vector<float>{5, 5}));
  EXPECT_EQ(traced, 20);
}

TEST_F(Fit, MeasuresWhatTheLoopDoes) {
  std::string report;
  const Result result = fit([&](TrainContext& ctx) {
    Parameter w = make_parameter("w", std::vector<float>(8, 1.0F), {8});
    auto step =
        compile([&](const Tensor& x) { w.assign(w - 0.1 * grad(sum(x * w), std::vector{w})[0]); });
    for (int i = 0; i < 5; ++i) {
      const Tensor x = to_device(std::vector<float>(32, 1.0F), {4, 8});
      mark_sharding(x, *ctx.mesh(), {{"data"}, {}});
      step(x);
    }
    EXPECT_EQ(w.to_vector().front(), 1 - 5 * 0.1F * 4);
    EXPECT_EQ(counter_value("UncachedCompile"), 1U);
    EXPECT_EQ(counter_value("CachedCompile"), 4U);
    EXPECT_EQ(counter_value("MarkStep"), 5U);
    EXPECT_EQ(counter_value("Collective.all_reduce.ici.Count"), 5U);
    EXPECT_EQ(counter_value("Collective.all_reduce.ici.Bytes"), 5U * 32);
    EXPECT_EQ(metric_data("ExecuteTime").count, 5U);
    EXPECT_EQ(metric_data("CompileTime").count, 1U);
    // 4x8 floats in each step, and w once on each of the two chips, in the first.
    EXPECT_EQ(metric_data("OutboundData").total, 5 * 128 + 2 * 32);
    EXPECT_EQ(metric_data("InboundData").total, 32);
    report = metrics_report();
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_NE(report.find("Metric: ExecuteTime\n  TotalSamples: 5\n"), std::string::npos) << report;
}

TEST_F(Fit, SaysWhyProgramsAreCompiledAndRun) {
  ::setenv("WEFT_DEBUG", "3", 1);
  ::testing::internal::CaptureStderr();
  const Result result = fit([&](TrainContext&) {
    Parameter w = make_parameter("w", std::vector<float>{1, 2}, {2});
    for (int step = 0; step < 2; ++step) {
      w.assign(w * 2);
      sync();
    }
  });
  const std::string log = ::testing::internal::GetCapturedStderr();
  ::setenv("WEFT_DEBUG", "4", 1);
  testing::expect_error(Errc::invalid_argument, {"WEFT_DEBUG = \"4\": expected 0, 1, 2 or 3"},
                        [&] { fit([](TrainContext&) {}); });
  ::unsetenv("WEFT_DEBUG");
  ASSERT_TRUE(result.ok()) << result.error->message;
  for (const char* words :
       {"program 0 is new: the first for the sync at fit_test.cpp:",
        "program 0 runs for the sync at fit_test.cpp:", "program 0 after propagate:\n%0: f32[2]"}) {
    EXPECT_NE(log.find(words), std::string::npos) << words << "\n" << log;
  }
}

TEST_F(Fit, FindsPlansThatAnEarlierRunHasKept) {
  const std::string folder = root_ + "/plans";
  ::setenv("WEFT_COMPILE_CACHE", folder.c_str(), 1);
  std::vector<std::uint64_t> hits;
  std::vector<std::uint64_t> compiles;
  const auto run = [&] {
    std::vector<float> values;
    const Result result = fit([&](TrainContext&) {
      Parameter w = make_parameter("w", std::vector<float>{1, 2, 3, 4}, {4});
      for (int step = 0; step < 3; ++step) {
        w.assign(w * 2 + 1);
        sync();
      }
      values = w.to_vector();
      hits.push_back(counter_value("PersistentCacheHit"));
      compiles.push_back(metric_data("CompileTime").count);
    });
    EXPECT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(values, (std::vector<float>{15, 23, 31, 39}));
  };
  run();
  run();
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) / 2);
  }
  run();  // warns, compiles, and mends them
  run();
  ::unsetenv("WEFT_COMPILE_CACHE");
  EXPECT_EQ(hits, (std::vector<std::uint64_t>{0, 1, 0, 1}));
  EXPECT_EQ(compiles, (std::vector<std::uint64_t>{1, 0, 1, 0}));
}

/// The other chip is inside a collective, or comes to it later; both must have left before the
/// loop's variables go.
TEST_F(Fit, FailsWithWhatCodeOnAChipThrows) {
  for (const int thrower : {0, 1}) {
    const Result result = fit([&](TrainContext& ctx) {
      std::vector<int> mark(2);
      ctx.on_each_chip([&](Chip& chip) {
        if (chip.position() == thrower) throw std::runtime_error("boom");
        chip.barrier();
        mark[static_cast<std::size_t>(chip.local_index())] = 1;
      });
    });
    expect_refused(result, Errc::loop_failed, "boom");
  }
}

TEST_F(Fit, FailsWithAnythingThatCodeOnAChipThrows) {
  expect_refused(fit([](TrainContext& ctx) { ctx.on_each_chip([](Chip&) { throw 7; }); }),
                 Errc::loop_failed, "no std::exception");
}

TEST_F(Fit, RunsCodeOnChipsFromTheLoopAlone) {
  expect_refused(fit([](TrainContext& ctx) {
                   ctx.on_each_chip([&](Chip&) { ctx.on_each_chip([](Chip&) {}); });
                 }),
                 Errc::invalid_argument, "on the loop's thread");
  const Result without_mesh = Trainer([](TrainContext& ctx) { ctx.on_each_chip([](Chip&) {}); },
                                      {.scaling = {.num_workers = 0},
                                       .backend = {.backend = "none"},
                                       .run = {.name = "fit", .storage_path = root_}})
                                  .fit();
  expect_refused(without_mesh, Errc::unavailable, "no mesh");
}

TEST_F(Fit, RefusesAnArrayOfAFitThatHasEnded) {
  std::optional<ChipArray<float>> kept;
  ASSERT_TRUE(fit([&](TrainContext& ctx) { kept = ctx.allocate<float>(4); }).ok());
  expect_refused(
      fit([&](TrainContext& ctx) { ctx.on_each_chip([&](Chip& chip) { kept->on(chip); }); }),
      Errc::invalid_argument, "allocated in a fit() that has ended");
}

TEST_F(Fit, RefusesArraysThatNoArenaHolds) {
  expect_refused(fit([](TrainContext& ctx) { ctx.allocate<double>(-1); }), Errc::invalid_argument,
                 "size = -1: expected 0 to");
  expect_refused(fit([](TrainContext& ctx) { ctx.allocate<double>(std::int64_t{1} << 62); }),
                 Errc::invalid_argument, "size = 4611686018427387904: expected 0 to");
}

TEST_F(Fit, RefusesAnEmptyLoop) {
  const std::function<void(TrainContext&)> loop;
  EXPECT_THROW(fit(loop), Error);
  EXPECT_THROW(fit(std::function<void(TrainContext&, const Config&)>()), Error);
}

TEST_F(Fit, BringsNanToTheCallbacks) {
  struct Check : Callback {
    void on_report(const Metrics& metrics) override {
      seen = std::isnan(metrics.at("loss").get<double>());
    }
    bool seen = false;
  };
  const auto check = std::make_shared<Check>();
  const Result result = fit(
      [](TrainContext& ctx) {
        ctx.report({{"loss", std::numeric_limits<double>::quiet_NaN()}});
      },
      {check});
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(check->seen);
}

/// The first call waits until the loop has reported all that it will: the signal meets a loop that
/// has ended, and reports that wait for the callback.
TEST_F(Fit, IsCancelledBetweenTheCallsOfASlowCallback) {
  struct Interrupt : Callback {
    void on_report(const Metrics&) override {
      reported.wait();
      if (++calls == 2) std::raise(SIGINT);
    }
    std::latch reported{1};
    int calls = 0;
  };
  const auto interrupt = std::make_shared<Interrupt>();
  const Result result = fit(
      [&interrupt](TrainContext& ctx) {
        for (int i = 0; i < 20; ++i) ctx.report({{"i", i}});
        interrupt->reported.count_down();
      },
      {interrupt});
  expect_refused(result, Errc::cancelled, "SIGINT");
  EXPECT_EQ(interrupt->calls, 2);
  EXPECT_EQ(result.metrics_history.size(), 20U);
}

TEST_F(Fit, RefusesReportsThatItCantCarry) {
  expect_refused(fit([](TrainContext& ctx) { ctx.report("\xff\xfe"); }), Errc::invalid_argument,
                 "expected a JSON object");
  expect_refused(fit([](TrainContext& ctx) {
                   ctx.report({{"text", std::string(1 << 21, 'x')}});
                 }),
                 Errc::invalid_argument, "expected at most 1048576");
  expect_refused(fit([](TrainContext& ctx) { ctx.report({}, Checkpoint{ctx.run_dir()}); }),
                 Errc::invalid_argument, "save to a folder of its own");
}

TEST_F(Fit, TellsTheLoopsOwnExceptionFromACancelledJob) {
  expect_refused(fit([](TrainContext&) { throw std::out_of_range("too far"); }), Errc::loop_failed,
                 "std::out_of_range: too far");
}

}  // namespace
}  // namespace weft
