/// Tests Session: modules that run outside of training loops, with published parameters.

#include <gtest/gtest.h>

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/actor.hpp>
#include <weft/session.hpp>
#include <weft/weft.hpp>

#include "tests/actors/session_modules.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::session_test {
namespace {

using testing::DeepNet;
using testing::expect_error;
using testing::ones;
using testing::row;
using testing::Scale;
using testing::scaled;
using testing::Source;
using testing::state_of;
using testing::TemporaryFolder;

struct Net : Module {
  Linear a{*this, "a", {4, 64}}, b{*this, "b", {64, 2}};
  Tensor operator()(const Tensor& x) const { return b(tanh(a(x))); }
};

bool exists(const std::string& file) { return std::filesystem::exists(file); }

/// Trains DeepNet, and reports what it computes before the first step and after the last one.
Loop deep_loop{"test.session", [](TrainContext& ctx, const Config& config) {
                 DeepNet net;
                 SGD sgd(net.parameters(), {.lr = 0.1});
                 Publisher publisher(ctx, "net", state_of(net));
                 const auto outputs = [&] {
                   net.eval();
                   Config all = Config::array();
                   for (const std::int64_t rows : {1, 3, 64}) {
                     all.push_back(net(to_device(row(rows * 12), {rows, 12})).to_vector());
                   }
                   net.train();
                   return all;
                 };
                 Config report{{"first", outputs()}};
                 while (!exists(config.at("begin").get<std::string>())) std::this_thread::yield();
                 while (ctx.step() < 5) {
                   const Tensor x = to_device(row(16 * 12), {16, 12});
                   const Tensor y = to_device(row(16 * 5, 1), {16, 5});
                   sgd.step(grad(mse_loss(net(x), y), net.parameters()));
                   if (ctx.step() == 4) publisher.publish();
                   sync();
                 }
                 report["last"] = outputs();
                 ctx.report(report);
               }};

Job start_deep(const TemporaryFolder& folder, int workers) {
  return Trainer(deep_loop, {.loop_config = {{"begin", folder.path() + "/begin"}},
                             .scaling = {.num_workers = workers},
                             .backend = {.timeout_s = 60},
                             .run = {.name = "session", .storage_path = folder.path()}})
      .start();
}

TEST(Session, ComputesTheBitsThatTheLoopComputes) {
  for (const int workers : {0, 1, 2}) {
    SCOPED_TRACE(fmt::format("{} workers", workers));
    const TemporaryFolder folder;
    const Job job = start_deep(folder, workers);
    const Parameters parameters(job.info().id, "net");
    Session session;
    DeepNet net;
    net.eval();
    const auto outputs = [&](const ParameterView& view) {
      std::vector<std::vector<float>> all;
      for (const std::int64_t rows : {1, 3, 64}) {
        session.bind(net, view);
        all.push_back(net(to_device(row(rows * 12), {rows, 12})).to_vector());
      }
      return all;
    };
    const auto first = outputs(parameters.newest());
    std::ofstream{folder.path() + "/begin"} << "begin";
    const auto last = outputs(parameters.at_least(5));
    const Result result = job.result();
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(first, result.metrics.at("first").get<decltype(first)>());
    EXPECT_EQ(last, result.metrics.at("last").get<decltype(last)>());
    EXPECT_NE(first, last);
    EXPECT_EQ(session.counts().programs, 3U);
    EXPECT_EQ(session.counts().copied, 2 * state_of(net).size());
  }
}

TEST(Session, CopiesAVersionOnceAndDoesNotHoldIt) {
  const Scale net;
  Source source(net);
  const Parameters parameters = source.parameters();
  Session session;
  std::uint64_t version = 1;
  for (; version <= 30; ++version) {
    if (version > 1) {
      ASSERT_TRUE(source.publish(version));
    }
    for (int i = 0; i < 3; ++i) {
      session.bind(net, parameters.newest());
      EXPECT_EQ(net(ones()).to_vector(), scaled(version));
      EXPECT_EQ(session.counts().copied, version);
    }
  }
  EXPECT_EQ(parameters.skipped(), 0U);
  EXPECT_EQ(session.counts().programs, 1U);
  EXPECT_EQ(session.counts().runs, 90U);
  // A module that is made again has its initial values.
  for (int i = 0; i < 2; ++i) {
    const Scale again;
    EXPECT_EQ(again(ones()).to_vector(), (std::vector<float>{7, 7}));
    session.bind(again, parameters.newest());
    EXPECT_EQ(again(ones()).to_vector(), scaled(30));
  }
  EXPECT_EQ(session.counts().copied, 32U);
}

TEST(Session, TellsEqualVersionsOfTwoJobsApart) {
  const Scale net;
  Session session;
  const Source one(Source::tensors_of(net), 3);
  {
    // `two` publishes another version of "w", so that "w" has other values.
    std::vector<PublishedTensor> tensors = Source::tensors_of(net);
    const Source two(tensors, 4);
    session.bind(net, two.newest());
    EXPECT_EQ(net(ones()).to_vector(), scaled(4));
  }
  session.bind(net, one.newest());
  EXPECT_EQ(net(ones()).to_vector(), scaled(3));
  const Source three(Source::tensors_of(net), 3);
  session.bind(net, three.newest());
  EXPECT_EQ(session.counts().copied, 3U);
}

TEST(Session, TakesNoMoreMemoryForMoreCalls) {
  const Net net;
  Source source(net);
  const Parameters parameters = source.parameters();
  Session session;
  std::uint64_t version = 1;
  const auto call_often = [&](int count) {
    for (int i = 0; i < count; ++i) {
      if (i % 100 == 0) source.publish(++version);
      session.bind(net, parameters.newest());
      const std::int64_t rows = i % 3 + 1;
      ASSERT_EQ(net(to_device(row(rows * 4), {rows, 4})).to_vector().size(),
                static_cast<std::size_t>(rows * 2));
    }
  };
  call_often(1000);
  const SessionCounts before = session.counts();
  const std::size_t heap = ::mallinfo2().uordblks;
  call_often(100'000);
  EXPECT_EQ(before.programs, 3U);
  EXPECT_EQ(session.counts().programs, before.programs);
  EXPECT_EQ(session.counts().memory_bytes, before.memory_bytes);
  EXPECT_EQ(session.counts().runs, before.runs + 100'000);
  EXPECT_LE(::mallinfo2().uordblks, heap + (16 << 10));
}

TEST(Session, ComputesUnreadResultsWithTheValuesOfTheirVersion) {
  const Scale net;
  Source source(net);
  const Parameters parameters = source.parameters();
  Session session;
  session.bind(net, parameters.newest());
  const Tensor old = net(ones());
  const Scale other("other");
  Source second(Source::tensors_of(other), 9);
  session.bind(other, second.newest());  // the first module stays bound
  const Tensor product = other(old);
  source.publish(2);
  session.bind(net, parameters.newest());
  EXPECT_EQ(net(ones()).to_vector(), scaled(2));
  EXPECT_EQ(old.to_vector(), scaled(1));
  EXPECT_EQ(product.to_vector()[1], scaled(1)[1] * scaled(9)[1]);
}

TEST(Session, DropsTheOpsOfACallThatThrew) {
  const Net net;
  const Source source(net);
  Session session;
  for (int i = 0; i < 5; ++i) {
    session.bind(net, source.newest());
    expect_error(Errc::invalid_argument, {"f32[1,3]", "session_test.cpp"}, [&] {
      net(to_device(row(3), {1, 3}) + 1).to_vector();
    });
    session.bind(net, source.newest());
    EXPECT_EQ(net(to_device(row(4), {1, 4})).to_vector().size(), 2U);
  }
  EXPECT_EQ(session.counts().programs, 1U);
}

TEST(Session, RunsCompiledFunctions) {
  const Scale net;
  Source source(net);
  const Parameters parameters = source.parameters();
  Session session;
  int traced = 0;
  auto forward = compile([&](const Tensor& x) {
    ++traced;
    return net(x);
  });
  for (std::uint64_t version = 1; version <= 20; ++version) {
    if (version > 1) {
      ASSERT_TRUE(source.publish(version));
    }
    session.bind(net, parameters.newest());
    EXPECT_EQ(forward(ones()).to_vector(), scaled(version));
  }
  EXPECT_EQ(traced, 1);
  EXPECT_EQ(session.counts().programs, 1U);
  EXPECT_EQ(session.counts().runs, 20U);
}

TEST(Session, DrawsOtherRandomNumbersInEachCall) {
  const Scale net;
  const Source source(net);
  const auto draw = [&](std::uint64_t seed) {
    Session session;
    std::vector<float> all;
    for (int i = 0; i < 10; ++i) {
      session.bind(net, source.newest());
      manual_seed(seed);
      all.push_back(rand({2}).to_vector()[0]);
    }
    EXPECT_EQ(session.counts().programs, 1U);
    return all;
  };
  const std::vector<float> first = draw(1);
  const std::vector<float> second = draw(2);
  const std::vector<float> again = draw(1);
  manual_seed(0);
  EXPECT_EQ(again, first);
  EXPECT_NE(second, first);
  std::vector<float> sorted = first;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
}

TEST(Session, KeepsStateOfItsUserFromCallToCall) {
  const Scale net;
  const Source source(net);
  Session session;
  Parameter sum = make_buffer("sum", 0, {2});
  for (int i = 1; i <= 4; ++i) {
    session.bind(net, source.newest());
    sum.assign(sum + net(ones()));
    const auto expected = static_cast<float>(i) * scaled(1)[0];
    EXPECT_EQ(sum.to_vector()[0], expected);
  }
  EXPECT_LE(session.counts().programs, 2U);
}

TEST(Session, RunsBesideOthersOnOneThread) {
  const Scale one("one");
  const Scale two("two");
  const Source first(Source::tensors_of(one), 3);
  const Source second(Source::tensors_of(two), 5);
  Session a;
  Session b;
  for (int i = 0; i < 3; ++i) {
    a.bind(one, first.newest());
    EXPECT_EQ(one(ones()).to_vector(), scaled(3));
    b.bind(two, second.newest());
    EXPECT_EQ(two(ones()).to_vector(), scaled(5));
  }
  expect_error(Errc::invalid_argument,
               {"one.w (f32[2]) is on the chip of another Session, or of a job: call bind()",
                "session_test.cpp"},
               [&] { one(ones()).to_vector(); });
  b.bind(two, second.newest());  // drops the ops that couldn't run
  const Tensor of_b = two(ones());
  EXPECT_EQ(of_b.to_vector(), scaled(5));
  a.bind(one, first.newest());
  expect_error(Errc::invalid_argument, {"is on the chip of another Session"},
               [&] { of_b.to_vector(); });
  a = Session();  // this thread has no Session now
  expect_error(Errc::not_found, {"or after Session::bind() on the same thread"},
               [&] { ones() + 1; });
  b.bind(two, second.newest());
  EXPECT_EQ(of_b.to_vector(), scaled(5));
}

class Brain {
 public:
  explicit Brain(ActorContext& ctx) : parameters_(ctx.parameters("net")) { net_.eval(); }

  std::vector<float> think(const std::vector<float>& x) {
    session_.bind(net_, parameters_.newest());
    return net_(to_device(x, {static_cast<std::int64_t>(x.size()) / 12, 12})).to_vector();
  }
  int pid() const { return ::getpid(); }
  using endpoints = Endpoints<&Brain::think, &Brain::pid>;

 private:
  Session session_;
  DeepNet net_;
  Parameters parameters_;
};
const ActorType<Brain> brain{"test.brain"};

TEST(Session, RunsInActorsWhichMayShareAThread) {
  const TemporaryFolder folder;
  ActorSystem system({.threads = 1});
  const Job job = start_deep(folder, 1);
  (void)Parameters(job.info().id, "net").newest();  // actors that share a thread can't wait for it
  const auto here = system.spawn(brain, {.name = "here", .count = 3, .lives_with = &job});
  const auto alone = system.spawn(brain, {.name = "alone", .own_thread = true, .lives_with = &job});
  const auto away = system.spawn(brain, {.name = "away",
                                         .count = 4,
                                         .place = processes(2),
                                         .lives_with = &job,
                                         .supervision = {.max_restarts = -1}});
  std::map<std::int64_t, std::vector<float>> known;
  const auto ask_all = [&] {
    for (const std::int64_t rows : {1, 3, 64}) {
      const std::vector<float> x = row(rows * 12);
      for (const auto& mesh : {here, alone, away}) {
        for (const std::vector<float>& y : mesh.call<&Brain::think>(x).get()) {
          const auto [first, is_first] = known.try_emplace(rows, y);
          EXPECT_EQ(y, first->second);
        }
      }
    }
  };
  ask_all();
  const int victim = away[0].call<&Brain::pid>().get();
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  while (away[0].call<&Brain::pid>().get() == victim) std::this_thread::yield();
  ask_all();
  std::ofstream{folder.path() + "/begin"} << "begin";
  const Result result = job.result();
  ASSERT_TRUE(result.ok()) << result.error->message;
  for (std::size_t i = 0; const auto& [rows, y] : known) {
    EXPECT_EQ(y, result.metrics.at("first").at(i++).get<std::vector<float>>()) << rows;
  }
}

}  // namespace
}  // namespace weft::session_test
