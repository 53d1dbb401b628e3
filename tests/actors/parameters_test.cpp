/// Tests that this process and actors read the versions of parameters that a running job publishes.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::parameters_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

constexpr std::int64_t kRows = 8;
constexpr std::int64_t kColumns = 6;

/// Returns "weight" after `step` steps: element i is i / 64 + step. "bias" equals element 0.
std::vector<float> weights_at(std::uint64_t step) {
  std::vector<float> weights;
  for (int i = 0; i < kRows * kColumns; ++i) {
    weights.push_back(static_cast<float>(i) / 64 + static_cast<float>(step));
  }
  return weights;
}

bool exists(const Config& config, const char* key) {
  return config.contains(key) && std::filesystem::exists(config.at(key).get<std::string>());
}

/// Publishes each of its steps once the file "begin" exists. Ends after "steps" steps, or when the
/// file "end" exists. Kills worker "victim" at step "kill_at", once.
Loop steps_loop{"test.publish", [](TrainContext& ctx, const Config& config) {
                  Parameter weight = make_parameter("weight", weights_at(0), {kRows, kColumns});
                  Parameter bias = make_parameter("bias", weights_at(0).front(), {});
                  if (config.value("is_sharded", false)) {
                    mark_sharding(weight, *ctx.mesh(), {{"data"}, {}});
                  }
                  Publisher policy(ctx, "policy", {weight, bias});
                  const std::uint64_t steps = config.value("steps", ~std::uint64_t{0});
                  while (config.contains("begin") && !exists(config, "begin")) {
                    std::this_thread::yield();
                  }
                  while (ctx.step() < steps) {
                    const bool has_end = exists(config, "end");
                    weight.assign(weight + 1);
                    bias.assign(bias + 1);
                    if (ctx.step() % 2 == 0)
                      policy.publish();  // the values at the end of this step
                    sync();
                    if (ctx.step() % 2 == 0) policy.publish();  // those after the previous step
                    if (ctx.world_rank() == config.value("victim", -1) &&
                        ctx.step() == config.value("kill_at", std::uint64_t{0}) &&
                        !exists(config, "marker")) {
                      std::ofstream{config.at("marker").get<std::string>()} << "killed";
                      std::raise(SIGKILL);
                    }
                    if (broadcast(ctx, has_end).get<bool>()) break;
                  }
                }};

Job start_job(const TemporaryFolder& folder, int workers, Config config) {
  return Trainer(steps_loop, {.loop_config = std::move(config),
                              .scaling = {.num_workers = workers, .chips_per_worker = 2},
                              .backend = {.timeout_s = 60},
                              .run = {.name = "publish",
                                      .storage_path = folder.path(),
                                      .failure = {.max_failures = workers == 0 ? 0 : 1}}})
      .start();
}

void expect_whole(const ParameterView& view) {
  const std::vector<float> expected = weights_at(view.version());
  EXPECT_TRUE(std::ranges::equal(view.get<float>("weight", {kRows, kColumns}), expected))
      << "version " << view.version() << " begins with " << view.get<float>("weight")[0];
  EXPECT_EQ(view.get<float>("bias")[0], expected[0]);
}

/// An actor that reads versions as fast as it can.
class Reader {
 public:
  explicit Reader(ActorContext& ctx) : policy_(ctx.parameters("policy")) {}

  void work() {
    const ParameterView view = policy_.newest();
    const std::vector<float> expected = weights_at(view.version());
    if (!std::ranges::equal(view.get<float>("weight"), expected)) ++torn_;
    if (view.version() < last_) ++torn_;
    last_ = view.version();
    ++reads_;
  }
  std::vector<std::uint64_t> counts() const { return {reads_, torn_, last_}; }
  int pid() const { return ::getpid(); }
  using endpoints = Endpoints<&Reader::counts, &Reader::pid>;

 private:
  Parameters policy_;
  std::uint64_t reads_ = 0;
  std::uint64_t torn_ = 0;
  std::uint64_t last_ = 0;
};
const ActorType<Reader> reader{"test.reader"};

TEST(PublishedParameters, AreReadWhileTheLoopTrains) {
  for (const int workers : {0, 2}) {
    for (const bool is_sharded : {false, true}) {
      SCOPED_TRACE(fmt::format("{} workers, sharded {}", workers, is_sharded));
      const TemporaryFolder folder;
      const std::string end = folder.path() + "/end";
      const Job job = start_job(folder, workers, {{"is_sharded", is_sharded}, {"end", end}});
      const Parameters policy(job.info().id, "policy");
      const ParameterView first = policy.newest();
      std::uint64_t last = 0;
      for (int i = 0; i < 20; ++i) {
        const ParameterView view = policy.at_least(last + 1);
        EXPECT_GT(view.version(), last);
        last = view.version();
        expect_whole(view);
      }
      expect_whole(first);
      EXPECT_EQ(first.names(), (std::vector<std::string>{"weight", "bias"}));
      const HostTensor tensor = first.tensor("weight");
      EXPECT_EQ(tensor.get<float>().data(), first.get<float>("weight").data());
      std::ofstream{end} << "end";
      const Result result = job.result();
      ASSERT_TRUE(result.ok()) << result.error->message;
      EXPECT_TRUE(policy.has_ended());
      expect_whole(policy.newest());
      expect_error(Errc::unavailable,
                   {"Parameters \"policy\": job ", "has ended; its last version"},
                   [&] { policy.at_least(policy.newest().version() + 1); });
    }
  }
}

TEST(PublishedParameters, HaveTheValuesOfTheLastStep) {
  const TemporaryFolder folder;
  const std::string begin = folder.path() + "/begin";
  const Job job = start_job(folder, 2, {{"steps", 8}, {"begin", begin}});
  const Parameters policy(job.info().id, "policy");
  const ParameterView first = policy.newest();
  std::ofstream{begin} << "begin";
  ASSERT_TRUE(job.result().ok());
  EXPECT_EQ(policy.newest().version(), 8U);
  expect_whole(policy.newest());
}

TEST(PublishedParameters, AreSkippedWhileAllPlacesAreHeld) {
  const TemporaryFolder folder;
  const std::string end = folder.path() + "/end";
  const Job job = start_job(folder, 2, {{"end", end}});
  const Parameters policy(job.info().id, "policy");
  std::vector<ParameterView> views{policy.newest()};
  while (views.size() < 8) views.push_back(policy.at_least(views.back().version() + 1));
  while (policy.skipped() < 10) std::this_thread::yield();
  EXPECT_EQ(policy.version(), views.back().version());
  for (const ParameterView& view : views) expect_whole(view);
  views.erase(views.begin());
  const ParameterView next = policy.at_least(views.back().version() + 1);
  expect_whole(next);
  for (const ParameterView& view : views) expect_whole(view);
  std::ofstream{end} << "end";
  EXPECT_TRUE(job.result().ok());
}

TEST(PublishedParameters, DontChangeWhenAWorkerIsLost) {
  for (const int victim : {0, 1}) {
    SCOPED_TRACE(victim);
    const TemporaryFolder folder;
    ActorSystem system;
    const std::string end = folder.path() + "/end";
    const std::string marker = folder.path() + "/killed";
    const Job job = start_job(folder, 2,
                              {{"is_sharded", true},
                               {"end", end},
                               {"victim", victim},
                               {"kill_at", 9},
                               {"marker", marker}});
    const auto readers = system.spawn(
        reader, {.count = 2, .place = processes(2), .own_thread = true, .lives_with = &job});
    const Parameters policy(job.info().id, "policy");
    const ParameterView held = policy.newest();
    std::uint64_t last = held.version();
    while (last < 40) {
      const ParameterView view = policy.at_least(last + 1);
      expect_whole(view);
      EXPECT_GT(view.version(), last);
      last = view.version();
    }
    EXPECT_TRUE(std::filesystem::exists(marker));
    expect_whole(held);
    for (const auto& counts : readers.call<&Reader::counts>().get()) {
      EXPECT_GT(counts[0], 0U);
      EXPECT_EQ(counts[1], 0U) << "torn or older than one before";
    }
    std::ofstream{end} << "end";
    const Result result = job.result();
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(result.failures.size(), 1U);
    // The mesh ends with the job.
    auto outcome = readers[0].call<&Reader::counts>().outcome();
    while (outcome.ok()) outcome = readers[0].call<&Reader::counts>().outcome();
    EXPECT_EQ(outcome.error().code(), Errc::cancelled) << outcome.error().what();
  }
}

TEST(PublishedParameters, ThatCantBeReadAreErrors) {
  const TemporaryFolder folder;
  const std::string end = folder.path() + "/end";
  const Job job = start_job(folder, 0, {{"end", end}});
  const std::string& id = job.info().id;
  const ParameterView view = Parameters(id, "policy").newest();
  expect_error(Errc::not_found, {"no tensor \"w\"; the job publishes weight, bias"},
               [&] { view.get<float>("w"); });
  expect_error(Errc::invalid_argument, {"\"weight\" is f32[8,6], but was asked for as i32[8,6]"},
               [&] { view.get<std::int32_t>("weight"); });
  expect_error(Errc::invalid_argument, {"\"weight\" is f32[8,6], but was asked for as f32[6,8]"},
               [&] {
                 view.get<float>("weight", {6, 8});
               });
  expect_error(Errc::not_found, {"an empty view has no tensor \"weight\""},
               [&] { ParameterView().get<float>("weight"); });
  expect_error(Errc::timeout, {"Parameters \"other\"", "within 0.1 s", "under these names: policy"},
               [&] { Parameters(id, "other", {.timeout_s = 0.1}).newest(); });
  std::stop_source stop;
  stop.request_stop();
  expect_error(Errc::cancelled, {"was cancelled"},
               [&] { Parameters(id, "other", {.stop = stop.get_token()}).newest(); });
  expect_error(Errc::invalid_argument, {"job = \"x\": expected the 32 hex digits"},
               [] { Parameters("x", "policy"); });
  expect_error(Errc::invalid_argument, {"name = \"a/b\""}, [&] { Parameters(id, "a/b"); });
  expect_error(Errc::not_found, {"no running job 0123456789abcdef0123456789abcdef"},
               [] { Parameters("0123456789abcdef0123456789abcdef", "policy").newest(); });
  ActorSystem system;
  expect_error(Errc::actor_failed, {"mesh \"test.reader\" was spawned without a job"},
               [&] { system.spawn(reader); });
  const Job none;
  expect_error(Errc::invalid_argument, {"lives_with: the Job is empty"},
               [&] { system.spawn(reader, {.lives_with = &none}); });
  std::ofstream{end} << "end";
  EXPECT_TRUE(job.result().ok());
  expect_error(Errc::not_found, {"no running job"}, [&] { Parameters(id, "other").newest(); });
}

TEST(PublishedParameters, OfAMeshThatGivesUpEndWithItsJob) {
  const TemporaryFolder folder;
  ActorSystem system;
  const Job job = start_job(folder, 1, {});  // a job that doesn't end by itself
  const auto readers = system.spawn(
      reader, {.place = processes(1),
               .own_thread = true,
               .lives_with = &job,
               .supervision = {.max_restarts = 1, .backoff_s = 0, .then = ActorGivesUp::stop}});
  // The mesh survives the first kill, but not the second.
  for (auto pid = readers[0].call<&Reader::pid>().outcome(); pid.ok();) {
    ::kill(pid.value(), SIGKILL);
    pid = readers[0].call<&Reader::pid>().outcome();
  }
  const Result result = job.result();
  EXPECT_EQ(result.ended_by, EndedBy::cancel);
  ASSERT_TRUE(result.error.has_value());
  EXPECT_NE(result.error->message.find("mesh \"test.reader\" of actors, which lives with the job, "
                                       "has failed: "),
            std::string::npos)
      << result.error->message;
}

Loop mistakes_loop{"test.publish_mistakes", [](TrainContext& ctx, const Config& config) {
                     const std::string mistake = config.at("mistake");
                     const Parameter weight = make_parameter("weight", 1, {4});
                     if (mistake == "no tensors") Publisher(ctx, "policy", {});
                     if (mistake == "same names") Publisher(ctx, "policy", {weight, weight});
                     if (mistake == "a bad name") Publisher(ctx, "../x", {weight});
                     Publisher policy(ctx, "policy", {weight});
                     if (mistake == "twice") Publisher(ctx, "policy", {weight});
                     if (mistake == "in one worker") {
                       if (ctx.world_rank() == 0) policy.publish();
                     }
                     return 0;
                   }};

TEST(PublishedParameters, ThatCantBeMadeFailTheJob) {
  const std::vector<std::pair<const char*, std::vector<std::string_view>>> mistakes{
      {"no tensors", {"Publisher \"policy\" at ", "expected one tensor or more"}},
      {"same names", {"two tensors are named 'weight'"}},
      {"a bad name", {"name = \"../x\""}},
      {"twice", {"has a Publisher of this name already"}},
      {"in one worker", {"Publisher \"policy\" has published 2 versions"}},
  };
  for (const auto& [mistake, words] : mistakes) {
    SCOPED_TRACE(mistake);
    const TemporaryFolder folder;
    const Result result =
        Trainer(mistakes_loop, {.loop_config = {{"mistake", mistake}},
                                .scaling = {.num_workers = 2},
                                .run = {.name = "mistake", .storage_path = folder.path()}})
            .fit();
    ASSERT_FALSE(result.ok());
    for (const std::string_view word : words) {
      EXPECT_NE(result.error->message.find(word), std::string::npos) << result.error->message;
    }
  }
}

}  // namespace
}  // namespace weft::parameters_test
