/// Tests loops: what is refused before anything runs, and what a worker process finds.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <weft/inspect/spdlog_sink.hpp>

#include "tests/embed/loops.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::loop_test {
namespace {

namespace fs = std::filesystem;
using testing::options;

struct LineConfig {
  int steps = 10;
  double rate = 0.1;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LineConfig, steps, rate)

Loop typed{"test.typed", [](TrainContext& ctx, const LineConfig& config) {
             ctx.report({{"steps", config.steps}, {"rate", config.rate}});
           }};

Loop twin_a{"test.twin", [](TrainContext&) {}};
Loop twin_b{"test.twin", [](TrainContext&) {}};

std::vector<std::string> open_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code none;
    files.push_back(fs::read_symlink(entry.path(), none).string());
  }
  return files;
}

std::vector<std::string> thread_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm") >> std::ws, name);
    names.push_back(name);
  }
  return names;
}

bool was_set_up = false;

/// A loop that reports the properties of its process.
Loop looks{"test.looks",
           [](TrainContext& ctx) {
             // The chip starts here, and its thread gets a name.
             full({1}, 1).to_vector();
             cpu_set_t cpus;
             ::sched_getaffinity(0, sizeof cpus, &cpus);
             const char* token = std::getenv("WEFT_JOB_TOKEN");
             const char* index = std::getenv("WEFT_PROCESS_INDEX");
             std::ifstream command("/proc/self/cmdline");
             std::string words{std::istreambuf_iterator<char>(command), {}};
             std::ranges::replace(words, '\0', ' ');
             ctx.report({{"files", open_files()},
                         {"threads", thread_names()},
                         {"cpus", CPU_COUNT(&cpus)},
                         {"token", token != nullptr && *token != '\0'},
                         {"index", index != nullptr ? index : ""},
                         {"folder", fs::current_path().string()},
                         {"command", words},
                         {"in_worker", in_worker()},
                         {"set_up", was_set_up}});
           },
           {.setup = [] { was_set_up = true; }}};

TEST(Loop, TakesAConfigOfItsOwnType) {
  for (const int workers : {0, 1}) {
    const Result result =
        Trainer{typed, options(LineConfig{.steps = 3, .rate = 0.5}, workers)}.fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.metrics["steps"], 3);
    EXPECT_EQ(result.metrics["rate"], 0.5);
  }
}

TEST(Loop, TakesItsDefaultsWithoutAConfig) {
  const Result result = Trainer{typed, options({}, 1)}.fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.metrics["steps"], 10);
}

TEST(Loop, AConfigWithAWrongKeyFailsBeforeAProcessStarts) {
  testing::expect_error(Errc::invalid_argument, {"test.typed", "stpes", "it has: rate, steps"}, [] {
    Trainer(typed, options({{"stpes", 3}})).fit();
  });
}

TEST(Loop, AConfigWithAWrongTypeFailsBeforeAProcessStarts) {
  testing::expect_error(Errc::invalid_argument, {"test.typed", "loop_config", "string"}, [] {
    Trainer(typed, options({{"steps", "many"}})).fit();
  });
}

TEST(Loop, TwoOfOneNameAreRefusedWithBothLines) {
  testing::expect_error(Errc::invalid_argument,
                        {"test.twin", twin_a.site().c_str(), twin_b.site().c_str()},
                        [] { Trainer(twin_a, options({})).fit(); });
}

TEST(Loop, ALocalOneIsRefused) {
  static Loop local{"test.local", [](TrainContext&) {}};
  testing::expect_error(Errc::invalid_argument, {"test.local", "loop_test.cpp", "namespace scope"},
                        [] { Trainer(local, options({})).fit(); });
}

TEST(Loop, OneOnTheStackOrTheHeapIsRefusedToo) {
  Loop on_stack{"test.on_stack", [](TrainContext&) {}};
  const auto on_heap = std::make_unique<Loop>("test.on_heap", [](TrainContext&) {});
  for (const Loop* loop : {&on_stack, on_heap.get()}) {
    testing::expect_error(Errc::invalid_argument, {loop->name(), "local", "namespace scope"},
                          [&] { Trainer(*loop, options({})).fit(); });
  }
}

TEST(Loop, AWorkerHasItsNameItsNumberAndNoSecret) {
  const Result result = Trainer{looks, options({}, 1)}.fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.metrics["token"], false);
  EXPECT_EQ(result.metrics["index"], "0");
  EXPECT_EQ(result.metrics["in_worker"], true);
  EXPECT_EQ(result.metrics["set_up"], true);
  EXPECT_NE(result.metrics["command"].get<std::string>().find("--weft-worker=0"),
            std::string::npos);
  EXPECT_FALSE(in_worker());
}

TEST(Loop, WhatTheProgramHasOpenIsNotOpenInItsWorkers) {
  int ends[2];
  // Workers would inherit these sockets if fit() didn't prevent that, like the port of a server.
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::string own = fs::read_symlink(fmt::format("/proc/self/fd/{}", ends[0])).string();
  const Result result = Trainer{looks, options({}, 1)}.fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
  for (const std::string file : result.metrics["files"]) EXPECT_NE(file, own);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Loop, WorkersHaveTheAffinityThatIsAskedFor) {
  cpu_set_t usable;
  ::sched_getaffinity(0, sizeof usable, &usable);
  int first = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(first), &usable)) ++first;
  TrainerOptions pinned = options({}, 1);
  pinned.scaling.affinity = {first};
  const Result result = Trainer{looks, pinned}.fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.metrics["cpus"], 1);
  pinned.scaling.affinity = {100'000};
  testing::expect_error(Errc::invalid_argument, {"scaling.affinity", "100000"},
                        [&] { Trainer(looks, pinned).fit(); });
}

TEST(Loop, WeftsThreadsHaveNames) {
  const Result result = Trainer{looks, options({}, 1)}.fit();
  ASSERT_TRUE(result.ok()) << result.error->message;
  const auto names = result.metrics["threads"].get<std::vector<std::string>>();
  EXPECT_EQ(names.front(), "embed_jobs");
  EXPECT_TRUE(std::ranges::count(names, "chip 0") > 0) << result.metrics["threads"];
  for (std::size_t i = 1; i < names.size(); ++i) {
    const bool is_wefts = names[i].starts_with("weft.") || names[i] == "chip 0";
    EXPECT_TRUE(is_wefts || names[i].starts_with("caf.")) << names[i];
  }
}

TEST(Loop, AWorkerExecutableThatIsNotThereIsRefused) {
  TrainerOptions other = options({}, 1);
  other.scaling.worker_executable = "/nowhere/worker";
  testing::expect_error(Errc::not_found, {"scaling.worker_executable", "/nowhere/worker"},
                        [&] { Trainer(looks, other).fit(); });
  other.scaling.worker_executable = "worker";
  testing::expect_error(Errc::invalid_argument, {"scaling.worker_executable", "absolute"},
                        [&] { Trainer(looks, other).fit(); });
}

TEST(Loop, AWorkerMayBeStartedByAnotherProgram) {
  ::setenv("WEFT_WORKER_WRAPPER", "timeout 60", 1);  // timeout forks
  const Result result = Trainer{looks, options({}, 2)}.fit();
  ::unsetenv("WEFT_WORKER_WRAPPER");
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.worker_metrics.size(), 2U);
}

TEST(Loop, OutputGoesWhereItIsAskedFor) {
  TrainerOptions with_output = options({{"tag", 1}}, 2);
  std::vector<std::string> lines;
  with_output.run.output = [&](int worker, bool err, std::string_view line) {
    lines.push_back(fmt::format("{} {} {}", worker, err, line));
  };
  ::setenv("WEFT_LOG", "info", 1);  // makes workers print log lines on stderr
  const Result result = Trainer{testing::add_one, with_output}.fit();
  ::unsetenv("WEFT_LOG");
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.starts_with("1 true") && line.find("loop ended: well") != line.npos;
  }));
}

TEST(Log, GoesToTheProgramsOwn) {
  std::mutex mutex;
  std::vector<std::string> jobs;
  set_log_sink([&](const LogRecord& record) {
    const std::lock_guard lock(mutex);
    if (record.text.find("joined") != std::string_view::npos) jobs.emplace_back(record.job);
  });
  const Result result = Trainer{testing::add_one, options({{"tag", 1}}, 2)}.fit();
  set_log_sink(std::function<void(const LogRecord&)>());
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(jobs, std::vector<std::string>(2, result.job.id));
}

}  // namespace
}  // namespace weft::loop_test
