/// Tests fit() with a worker in this process, as a program uses it.

#include <weft/weft.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "tests/support/expect_error.hpp"

namespace weft::fit_test {
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

TEST_F(Fit, TakesEmptyTensorsFromTheHost) {
  std::vector<float> joined;
  double total = -1;
  const Result result = fit([&](TrainContext& ctx) {
    const Tensor none = to_device(std::vector<float>{}, {0, 3});
    const Tensor parts = to_device(std::vector<float>{}, {0, 4});
    mark_sharding(parts, *ctx.mesh(), {{ctx.mesh()->axis_names()[0]}, {}});
    const Tensor some = to_device(std::vector<float>{1, 2, 3}, {1, 3});
    const Tensor product = matmul(transpose(none, 0, 1), parts);
    joined = cat({none, some}, 0).to_vector();
    total = sum(none).item() + sum(parts).item() + sum(product).item();
    sync();
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(joined, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(total, 0);
}

TEST_F(Fit, ACloneIsTheValueBeforeAnUpdate) {
  struct Net : Module {
    Parameter weight = add_parameter("weight", std::vector<float>(64, 1), {64});
  };
  std::vector<double> sums;
  const Result result = fit([&](TrainContext&) {
    Net net;
    for (int step = 0; step < 3; ++step) {
      const Tensor before = clone(net.weight);
      net.weight.assign(net.weight * 2);
      sync();
      sums.push_back(sum(before).item());
    }
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(sums, (std::vector<double>{64, 128, 256}));
}

TEST_F(Fit, RefusesATensorOfAFitThatHasEnded) {
  Tensor kept;
  const Result first = fit([&](TrainContext&) {
    kept = to_device(std::vector<float>{1, 2, 3, 4}, {4}) * 1.0;
    sync();
  });
  ASSERT_TRUE(first.ok()) << first.error->message;
  expect_refused(fit([&](TrainContext&) { (kept + 1.0).to_vector(); }), Errc::invalid_argument,
                 "f32[4]) is on the chips of a fit() that has ended");
  const Result read = fit([&](TrainContext&) { kept.to_vector(); });
  expect_refused(read, Errc::invalid_argument, "f32[4]) is on the chips of a fit() that has ended");
  expect_refused(read, Errc::invalid_argument, "(at fit_test.cpp:");
}

/// The job keeps the state of its loops by name. Both parameters may exist at once, for example if
/// the last trace of a compiled function has a handle to the first.
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
                 "two parameters or optimizer states are named 'w' and used in turn");
  EXPECT_TRUE(fit(two(false), {}, 1).ok());
  EXPECT_TRUE(fit(two(true)).ok()) << "which keeps nothing";
}

TEST_F(Fit, ReportsAtTheEndComeAfterThoseOfStepClosures) {
  const Result result = fit([&](TrainContext& ctx) {
    for (int step = 0; step < 3; ++step) {
      const Tensor loss = to_device(std::vector<float>{1, 2}, {2}) * double(step);
      add_step_closure([&ctx](double value) { ctx.report({{"loss", value}}); }, sum(loss));
      sync();
    }
    ctx.report({{"done", true}});
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  const std::vector<Metrics> expected{
      {{"loss", 0.0}}, {{"loss", 3.0}}, {{"loss", 6.0}}, {{"done", true}}};
  EXPECT_EQ(result.metrics_history, expected);
}

TEST_F(Fit, RefusesALabelThatIsNoClassWithItsLine) {
  const int line = __LINE__ + 4;
  const Result result = fit([&](TrainContext& ctx) {
    const Tensor labels = to_device(std::vector<std::int32_t>{0, 1, 2, 7}, {4});
    mark_sharding(labels, *ctx.mesh(), {{"data"}});
    const Tensor loss = cross_entropy(iota({4, 3}, 1, DType::f32), labels);
    sync();
    loss.item();
  });
  expect_refused(result, Errc::invalid_argument, "a label or index is 7: expected 0 to 2");
  expect_refused(result, Errc::invalid_argument, fmt::format("fit_test.cpp:{}", line));
}

TEST_F(Fit, RefusesCallsOffTheLoopsThreadNamingBoth) {
  using Call = std::function<void(TrainContext&)>;
  for (const Call& call :
       std::vector<Call>{[](TrainContext& ctx) { ctx.report({}); },
                         [](TrainContext& ctx) { ctx.on_each_chip([](Chip&) {}); },
                         [](TrainContext&) { sync(); }}) {
    int loop = 0;
    const Result result = fit([&](TrainContext& ctx) {
      loop = ::gettid();
      std::exception_ptr thrown;
      std::jthread([&] {
        try {
          call(ctx);
        } catch (...) {
          thrown = std::current_exception();
        }
      }).join();
      if (thrown) std::rethrow_exception(thrown);
    });
    expect_refused(result, Errc::invalid_argument, "this is thread ");
    expect_refused(result, Errc::invalid_argument, fmt::format("which is {}, but ", loop));
    expect_refused(result, Errc::invalid_argument, "(at fit_test.cpp:");
  }
}

TEST_F(Fit, TensorsMayBeLetGoOnAnotherThread) {
  const Result result = fit([&](TrainContext&) {
    for (int step = 0; step < 50; ++step) {
      std::vector<Tensor> kept;
      for (int i = 0; i < 8; ++i) kept.push_back(to_device(std::vector<float>{1, 2}, {2}) * 2.0);
      sync();
      EXPECT_EQ(kept.back().to_vector(), (std::vector<float>{2, 4}));
      const std::jthread other([gone = std::exchange(kept, {})]() mutable { gone.clear(); });
      const Tensor next = to_device(std::vector<float>{3}, {1}) * 2.0;
      sync();
      EXPECT_EQ(next.item(), 6);
    }
  });
  EXPECT_TRUE(result.ok()) << result.error->message;
}

std::string log_of(const Result& result) {
  std::ifstream file(result.path + "/trainer.log");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(Fit, WarnsOfALoopThatWaitsForAStepThatNothingEnds) {
  const Result result = fit([&](TrainContext& ctx) {
    for (int i = 0; ctx.step() < 1 && i < 10'000'100; ++i) continue;
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_NE(log_of(result).find("ctx.step() has been called 10000000 times in step 0"),
            std::string::npos);
}

TEST_F(Fit, WarnsOnceOfAReportThatIsNotFinite) {
  const Result result = fit([&](TrainContext& ctx) {
    ctx.report({{"loss", 0.5}});
    ctx.report({{"loss", -INFINITY}});
    ctx.report({{"loss", NAN}});
  });
  const std::string log = log_of(result);
  const auto first = log.find("worker 0 reports loss = -inf at step 0 (fit_test.cpp:");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("reports loss", first + 20), std::string::npos);
}

/// The forward pass gives a NaN in the first job, and the backward pass an infinity in the second.
TEST_F(Fit, DetectAnomalyNamesTheFirstOpThatGivesANaN) {
  int line = 0;
  const auto run = [&](bool detects, double value) {
    return fit([&, detects, value](TrainContext& ctx) {
      Parameter w = make_parameter("w", std::vector<float>{1, float(value)}, {2});
      std::optional<AnomalyScope> scope;
      if (detects) scope.emplace();
      line = __LINE__ + 1;
      const Tensor roots = sqrt(w - 1.0);
      const Tensor loss = sum(tanh(roots) * 2.0);
      w.assign(w - grad(loss, std::vector{w})[0]);
      sync();
      ctx.report({{"loss", loss.item()}});
    });
  };
  EXPECT_TRUE(run(false, 0).ok());
  const Result nan = run(true, 0);
  expect_refused(nan, Errc::invalid_argument, "detect_anomaly: sqrt computes a nan in f32[2]");
  expect_refused(nan, Errc::invalid_argument, fmt::format("(at fit_test.cpp:{})", line));
  const Result infinity = run(true, 2);  // the gradient divides by sqrt(0)
  expect_refused(infinity, Errc::invalid_argument,
                 "computes an infinity in f32[2], and its operands are finite");
  expect_refused(infinity, Errc::invalid_argument, fmt::format("(at fit_test.cpp:{})", line));
}

TEST_F(Fit, DetectAnomalyNamesAnInputThatHasANaN) {
  const Result result = fit([&](TrainContext&) {
    const auto scope = detect_anomaly();
    const Tensor x = to_device(std::vector<float>{1, NAN}, {2});
    const Tensor y = x * 2.0;
    sync();
    y.to_vector();
  });
  expect_refused(result, Errc::invalid_argument,
                 "detect_anomaly: multiply reads 'data.0' of fit_test.cpp:");
}

TEST_F(Fit, DetectAnomalyLeavesMasksOfInfinityAlone) {
  const Result result = fit([&](TrainContext&) {
    const auto scope = detect_anomaly();
    const Tensor x = to_device(std::vector<float>{1, 2}, {2});
    const Tensor masked = where(greater(x, 1.5), x, -std::numeric_limits<double>::infinity());
    const Tensor y = softmax(masked, 0);
    sync();
    EXPECT_EQ(y.to_vector(), (std::vector<float>{0, 1}));
  });
  EXPECT_TRUE(result.ok()) << result.error->message;
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
    // Each step sends 4x8 floats. The first step also sends w to each of the two chips.
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
  run();  // warns that the plans are damaged, and compiles new ones
  run();
  ::unsetenv("WEFT_COMPILE_CACHE");
  EXPECT_EQ(hits, (std::vector<std::uint64_t>{0, 1, 0, 1}));
  EXPECT_EQ(compiles, (std::vector<std::uint64_t>{1, 0, 1, 0}));
}

/// The other chip waits in the barrier or reaches it later. Both chips must leave the body before
/// the loop's variables are destroyed.
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

TEST_F(Fit, FailsAtOnceWhereAChipLeavesABodyInWhichOthersWait) {
  const Result result = fit([&](TrainContext& ctx) {
    for (int i = 0; i < 2; ++i) ctx.on_each_chip([](Chip& chip) { chip.barrier(); });
    ctx.on_each_chip([&](Chip& chip) {
      if (chip.position() == 0) chip.barrier();
    });
  });
  expect_refused(result, Errc::program_divergence, "chip 1 has left its on_each_chip() body");
}

TEST_F(Fit, FailsWithAnythingThatCodeOnAChipThrows) {
  expect_refused(fit([](TrainContext& ctx) { ctx.on_each_chip([](Chip&) { throw 7; }); }),
                 Errc::loop_failed, "isn't a std::exception");
}

TEST_F(Fit, RunsCodeOnChipsFromTheLoopAlone) {
  expect_refused(fit([](TrainContext& ctx) {
                   ctx.on_each_chip([&](Chip&) { ctx.on_each_chip([](Chip&) {}); });
                 }),
                 Errc::invalid_argument, "on the loop's thread");
  const Result without_mesh = Trainer([](TrainContext& ctx) { ctx.on_each_chip([](Chip&) {}); },
                                      {.scaling = {.num_workers = 0},
                                       .backend = {.backend = Backend::none},
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

TEST_F(Fit, GivesALoopAnObjectWhereNoConfigIsGiven) {
  for (const Config& given : {Config(), Config(nullptr), Config::object()}) {
    double rate = 0;
    const Result result =
        Trainer([&](TrainContext&, const Config& config) { rate = config.value("lr", 0.5); },
                {.loop_config = given,
                 .scaling = {.num_workers = 0},
                 .run = {.name = "fit", .storage_path = root_}})
            .fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(rate, 0.5);
  }
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

/// The first call waits until the loop has made all its reports. So the signal comes when the loop
/// has ended and reports still wait for the callback.
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

TEST_F(Fit, KeepsTheLastReportsAndWritesAll) {
  constexpr std::size_t kReports = 2 * kHistoryMax + 7;
  const Result result = fit([](TrainContext& ctx) {
    for (std::size_t i = 0; i < kReports; ++i) ctx.report({{"i", i}});
  });
  ASSERT_TRUE(result.ok()) << result.error->message;
  ASSERT_EQ(result.metrics_history.size(), kHistoryMax);
  EXPECT_EQ(result.metrics_history.front()["i"], kReports - kHistoryMax);
  EXPECT_EQ(result.metrics_history.back()["i"], kReports - 1);
  std::ifstream progress(result.path + "/progress.csv");
  std::size_t lines = 0;
  for (std::string line; std::getline(progress, line);) ++lines;
  EXPECT_EQ(lines, 1 + kReports);
}

TEST_F(Fit, RefusesReportsThatItCantCarry) {
  expect_refused(fit([](TrainContext& ctx) { ctx.report("\xff\xfe"); }), Errc::invalid_argument,
                 "expected a JSON object");
  expect_refused(fit([](TrainContext& ctx) {
                   ctx.report({{"text", std::string(1 << 21, 'x')}});
                 }),
                 Errc::invalid_argument, "expected at most 1048576");
  expect_refused(fit([](TrainContext& ctx) { ctx.report({}, Checkpoint{ctx.run_dir()}); }),
                 Errc::invalid_argument, "save the checkpoint in another folder");
}

TEST_F(Fit, TellsTheLoopsOwnExceptionFromACancelledJob) {
  expect_refused(fit([](TrainContext&) { throw std::out_of_range("too far"); }), Errc::loop_failed,
                 "std::out_of_range: too far");
}

}  // namespace
}  // namespace weft::fit_test
