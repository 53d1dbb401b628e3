/// Tests rows that actors write and that the loop of a running job reads.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::experience_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

constexpr std::int64_t kBatch = 16;
const std::vector<Field> kRow{{"number", {DType::i32, {2}}}, {"value", {DType::f32, {}}}};

/// A loop that sums up the rows that it reads. Worker 0 appends the rows of each step to the file
/// "rows", and writes the loop's metrics to the file "metrics". Kills worker "victim" at the steps
/// "kill_at", each once.
Loop reading_loop{
    "test.read_rows", [](TrainContext& ctx, const Config& config) {
      Parameter sum = make_parameter("sum", 0, {});
      Publisher policy(ctx, "policy", {sum});
      ExperienceOptions options{.capacity = config.value("capacity", 4096)};
      if (config.contains("max_lag")) options.max_lag = config.at("max_lag");
      DeviceLoader batches(experience(ctx, "steps", kRow, options),
                           {.batch_size = kBatch, .device_prefetch_size = 1});
      const std::uint64_t steps = config.at("steps");
      for (const Batch& batch : batches) {
        sum.assign(sum + weft::sum(batch["value"]));
        policy.publish();
        if (ctx.step() % 5 == 0) {  // reads values, so the chips reach this step
          const auto numbers = batch["number"].to_vector<std::int32_t>();
          if (ctx.world_rank() == 0) {
            std::ofstream file(config.at("rows").get<std::string>(), std::ios::app);
            file << ctx.step();
            for (const std::int32_t number : numbers) file << ' ' << number;
            file << '\n';
          }
        }
        const std::string marker = config.value("marker", "") + fmt::format("{}", ctx.step());
        const auto kills = config.value("kill_at", std::vector<std::uint64_t>{});
        if (ctx.world_rank() == config.value("victim", -1) &&
            std::ranges::count(kills, ctx.step()) != 0 && !std::filesystem::exists(marker)) {
          std::ofstream{marker} << "killed";
          std::raise(SIGKILL);
        }
        if (ctx.step() + 1 == steps) break;
      }
      if (ctx.world_rank() == 0) {
        std::ofstream(config.at("metrics").get<std::string>()) << metrics_report();
      }
      return sum.item();
    }};

/// An actor that writes chunks of 1 to 40 rows. Each row has the actor's index and incarnation, a
/// count and a value. After begin_kills() it kills its process now and then, as do its next
/// incarnations.
class Source {
 public:
  explicit Source(ActorContext& ctx)
      : ctx_(ctx),
        policy_(ctx.parameters("policy")),
        steps_(ctx.experience("steps")),
        kills_(ctx.incarnation() > 1) {}

  void work() {
    const std::uint64_t version = policy_.newest().version();
    const std::int64_t count = 1 + (chunk_ * 7 + ctx_.index()) % 40;
    Rows rows = steps_.loan(count, version);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::span<std::int32_t> number = rows.get<std::int32_t>("number", i);
      number[0] = ctx_.index() * 1000 + static_cast<std::int32_t>(ctx_.incarnation());
      number[1] = written_++;
      rows.get<float>("value", i)[0] = 1;
    }
    if (++chunk_ % 20 == 0 && kills_) std::raise(SIGKILL);
    rows.publish();
  }
  int chunks() const { return chunk_; }
  void begin_kills() { kills_ = true; }
  using endpoints = Endpoints<&Source::chunks, &Source::begin_kills>;

 private:
  ActorContext& ctx_;
  Parameters policy_;
  ExperienceWriter steps_;
  std::int32_t written_ = 0;
  int chunk_ = 0;
  bool kills_;
};
const ActorType<Source> source{"test.source"};

Job start_reading(const TemporaryFolder& folder, int workers, Config config, int max_failures = 0) {
  config["rows"] = folder.path() + "/rows";
  config["metrics"] = folder.path() + "/metrics";
  config["marker"] = folder.path() + "/killed-";
  return Trainer(reading_loop, {.loop_config = std::move(config),
                                .scaling = {.num_workers = workers, .chips_per_worker = 2},
                                .backend = {.timeout_s = 60},
                                .run = {.name = "rows",
                                        .storage_path = folder.path(),
                                        .failure = {.max_failures = max_failures}}})
      .start();
}

/// Returns the lines of the file "rows", by step. Expects that lines of the same step are equal.
std::map<int, std::string> rows_of(const TemporaryFolder& folder) {
  std::map<int, std::string> rows;
  std::ifstream file(folder.path() + "/rows");
  for (std::string line; std::getline(file, line);) {
    const auto [known, is_new] = rows.emplace(std::stoi(line), line);
    EXPECT_EQ(known->second, line) << (is_new ? "" : "a step was given other rows the second time");
  }
  return rows;
}

/// Returns a value of the loop's metrics_report(); -1 if it isn't there.
std::int64_t metric_of(const TemporaryFolder& folder, const std::string& name) {
  std::ifstream file(folder.path() + "/metrics");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& before :
       {"Counter: " + name + "\n  Value: ", "Metric: " + name + "\n  TotalSamples: "}) {
    const std::size_t at = text.find(before);
    if (at != text.npos) return std::stoll(text.substr(at + before.size()));
  }
  ADD_FAILURE() << name << " isn't in " << text;
  return -1;
}

/// Expects that the rows of each writer appear in the order in which it wrote them.
void expect_order(const std::map<int, std::string>& rows) {
  std::map<int, int> last;
  for (const auto& [step, line] : rows) {
    std::istringstream words(line);
    int number = 0;
    words >> number;
    for (int count = 0; words >> number >> count;) {
      const auto [known, is_new] = last.emplace(number, count);
      if (!is_new) {
        EXPECT_LT(known->second, count) << "writer " << number << " in step " << step;
      }
      known->second = count;
    }
  }
}

TEST(Experience, IsReadInTheOrderOfItsArrival) {
  for (const int workers : {0, 2}) {
    SCOPED_TRACE(workers);
    const TemporaryFolder folder;
    ActorSystem system;
    const Job job = start_reading(folder, workers, {{"steps", 60}, {"capacity", 120}});
    const auto sources = system.spawn(
        source, {.count = 3, .place = processes(3), .own_thread = true, .lives_with = &job});
    const Result result = job.result();
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.returned.at(0).get<double>(), 60.0 * kBatch);
    const auto rows = rows_of(folder);
    EXPECT_EQ(rows.size(), 12U);
    expect_order(rows);
  }
}

TEST(Experience, IsServedAgainWhenAWorkerIsLost) {
  for (const int victim : {0, 1}) {
    SCOPED_TRACE(victim);
    const TemporaryFolder folder;
    ActorSystem system;
    const Job job = start_reading(
        folder, 2,
        {{"steps", 80}, {"capacity", 120}, {"victim", victim}, {"kill_at", {10, 35, 36, 50}}}, 4);
    const auto sources = system.spawn(
        source,
        {.count = 3,
         .place = processes(3),
         .own_thread = true,
         .lives_with = &job,
         .supervision = {.max_restarts = -1, .backoff_s = 0.01, .then = ActorGivesUp::stop}});
    sources.tell<&Source::begin_kills>();  // kills begin after all actors have been made
    const Result result = job.result();
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.failures.size(), 4U);
    EXPECT_EQ(result.returned.at(0).get<double>(), 80.0 * kBatch)
        << "each row was used exactly once";
    const auto rows = rows_of(folder);
    EXPECT_EQ(rows.size(), 16U);
    expect_order(rows);
  }
}

TEST(Experience, MakesWritersWaitWhileTheLoopIsBehind) {
  const TemporaryFolder folder;
  const Job job = start_reading(folder, 0, {{"steps", 8}, {"capacity", 128}});
  std::stop_source stop;
  ExperienceWriter writer(job.info().id, "steps", {.timeout_s = 60, .stop = stop.get_token()});
  {
    const Rows dropped = writer.loan(5, 0);  // never published
  }
  expect_error(Errc::invalid_argument, {"loan(0 rows): expected 1 to "},
               [&] { writer.loan(0, 0); });
  expect_error(Errc::invalid_argument, {"loan(2000 rows): expected 1 to "},
               [&] { writer.loan(2000, 0); });
  Rows rows = writer.loan(3, 0);
  expect_error(Errc::not_found, {"no field \"reward\"; the rows have number, value"},
               [&] { rows.get<float>("reward", 0); });
  expect_error(Errc::invalid_argument, {"\"value\" is f32[], but was asked for as i32"},
               [&] { rows.get<std::int32_t>("value", 0); });
  expect_error(Errc::invalid_argument, {"row = 3: expected 0 to 2"},
               [&] { rows.get<float>("value", 3); });
  for (int i = 0; i < 3; ++i) rows.get<float>("value", i)[0] = 1;
  rows.publish();
  expect_error(Errc::invalid_argument, {"have been published"},
               [&] { rows.get<float>("value", 0); });
  expect_error(Errc::invalid_argument, {"a second time"}, [&] { rows.publish(); });
  std::vector<Rows> held;
  const ExperienceWriter impatient(job.info().id, "steps", {.timeout_s = 0.1});
  expect_error(Errc::timeout, {"has had no room for 40 rows within 0.1 s"}, [&] {
    for (;;) held.push_back(ExperienceWriter(impatient).loan(40, 0));
  });
  EXPECT_GE(held.size(), 2U);
  held.clear();
  // The loop needs 8 batches, and there is memory for 8 at a time.
  for (int written = 3; written < 8 * kBatch + 40; written += 5) {
    try {
      Rows more = writer.loan(5, 0);
      for (int i = 0; i < 5; ++i) more.get<float>("value", i)[0] = 1;
      more.publish();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::unavailable) << error.what();  // the job has its 8 batches
      break;
    }
  }
  const Result result = job.result();
  ASSERT_TRUE(result.ok()) << result.error->message;
  expect_error(Errc::unavailable, {"has ended"}, [&] { writer.loan(1, 0); });
  stop.request_stop();
  EXPECT_GE(metric_of(folder, "ExperienceWriterWaits"), 1);
  EXPECT_GE(metric_of(folder, "ExperienceRows"), 7 * kBatch) << "of the steps before the last";
  EXPECT_EQ(metric_of(folder, "ExperienceDropped"), 0);
  EXPECT_GE(metric_of(folder, "ExperienceLag"), 1) << "all rows are of version 0";
  EXPECT_GE(metric_of(folder, "PublishedVersions"), 1);
  EXPECT_EQ(metric_of(folder, "SkippedVersions"), 0) << "nobody holds versions";
  EXPECT_GE(metric_of(folder, "PublishWait"), 7) << "once for each step";
  ExperienceWriter none("0123456789abcdef0123456789abcdef", "steps");
  expect_error(Errc::not_found, {"no running job"}, [&] { none.loan(1, 0); });
}

TEST(Experience, OfOldVersionsIsDropped) {
  const TemporaryFolder folder;
  const Job job = start_reading(folder, 2, {{"steps", 30}, {"max_lag", 3}});
  const Parameters policy(job.info().id, "policy");
  ExperienceWriter writer(job.info().id, "steps");
  const auto write = [&](std::uint64_t version, float value) {
    Rows rows = writer.loan(4, version);
    for (int i = 0; i < 4; ++i) {
      std::ranges::fill(rows.get<std::int32_t>("number", i), 0);
      rows.get<float>("value", i)[0] = value;
    }
    rows.publish();
  };
  std::uint64_t version = 0;
  while (!job.wait_for({})) {
    version = policy.newest().version();
    try {
      // No row of version 0 is taken after step 3.
      if (version > 3) write(0, 1000);
      write(version, 1);
    } catch (const Error& error) {
      if (error.code() != Errc::unavailable) throw;
    }
  }
  const Result result = job.result();
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.returned.at(0).get<double>(), 30.0 * kBatch);
  const std::int64_t dropped = metric_of(folder, "ExperienceDropped");
  EXPECT_GE(dropped, 4);
  EXPECT_EQ(dropped % 4, 0) << "rows that were written together are dropped together";
  EXPECT_LE(metric_of(folder, "ExperienceLag"), 3);
}

Loop wrong_rows{"test.wrong_rows", [](TrainContext& ctx, const Config& config) {
                  const std::string mistake = config.at("mistake");
                  if (mistake == "no fields") experience(ctx, "steps", {});
                  if (mistake == "same names") experience(ctx, "steps", {kRow[0], kRow[0]});
                  if (mistake == "capacity") experience(ctx, "steps", kRow, {.capacity = 0});
                  const DatasetPtr rows = experience(ctx, "steps", kRow);
                  if (mistake == "twice") experience(ctx, "steps", kRow);
                  if (mistake == "shuffle") DeviceLoader(rows, {.shuffle = true});
                  return 0;
                }};

TEST(Experience, ThatCantBeMadeFailsTheJob) {
  const std::vector<std::pair<const char*, const char*>> mistakes{
      {"no fields", "expected one field or more"},
      {"same names", "is named \"number\": expected names that aren't empty, each once"},
      {"capacity", "capacity = 0: expected 1 or more"},
      {"twice", "has called it with this name already"},
      {"shuffle", "reads a stream, with shuffle = true"},
  };
  for (const auto& [mistake, words] : mistakes) {
    const TemporaryFolder folder;
    const Result result =
        Trainer(wrong_rows, {.loop_config = {{"mistake", mistake}},
                             .scaling = {.num_workers = 0},
                             .run = {.name = "mistake", .storage_path = folder.path()}})
            .fit();
    ASSERT_FALSE(result.ok()) << mistake;
    EXPECT_NE(result.error->message.find(words), std::string::npos) << result.error->message;
  }
}

}  // namespace
}  // namespace weft::experience_test
