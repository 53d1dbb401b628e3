/// Tests the simulated job of an ActorTest, and actors that use it. Behaviour that ActorSystem has
/// too is checked in data_conformance_test.cpp.

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <weft/actor_test.hpp>
#include <weft/session.hpp>
#include <weft/weft.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::simulated_job_test {
namespace {

using testing::expect_error;

const std::vector<Field> kFields{{"writer", {DType::i32, {}}}, {"value", {DType::f32, {2}}}};

HostTensor tensor_of(float element) { return {std::vector<float>{element, element}, {2}}; }

/// An actor that at each call reads a version and writes two rows with the version's element.
class Scribe {
 public:
  explicit Scribe(ActorContext& ctx)
      : ctx_(ctx), policy_(ctx.parameters("policy")), steps_(ctx.experience("steps")) {}
  void work() {
    const ParameterView view = policy_.newest();
    Rows rows = steps_.loan(2, view.version());
    for (int i = 0; i < 2; ++i) {
      rows.get<std::int32_t>("writer", i)[0] = ctx_.index() * 1000 + 2 * written_ + i;
      rows.get<float>("value", i)[0] = view.get<float>("w")[0];
      rows.get<float>("value", i)[1] = static_cast<float>(ctx_.incarnation());
    }
    rows.publish();
    ++written_;
  }
  int written() const { return written_; }
  using endpoints = Endpoints<&Scribe::written>;

 private:
  ActorContext& ctx_;
  Parameters policy_;
  ExperienceWriter steps_;
  int written_ = 0;
};
const ActorType<Scribe> scribe{"test.scribe"};

/// An actor that keeps views of versions.
class Keepsake {
 public:
  explicit Keepsake(ActorContext& ctx) : policy_(ctx.parameters("policy")) {}
  std::uint64_t keep() {
    views_.push_back(policy_.newest());
    return views_.back().version();
  }
  void drop() { views_.clear(); }
  std::uint64_t skipped() const { return policy_.skipped(); }
  bool has_ended() const { return policy_.has_ended(); }
  std::uint64_t wait_for(std::uint64_t version) const {
    return policy_.at_least(version).version();
  }
  using endpoints = Endpoints<&Keepsake::keep, &Keepsake::drop, &Keepsake::skipped,
                              &Keepsake::has_ended, &Keepsake::wait_for>;

 private:
  Parameters policy_;
  std::vector<ParameterView> views_;
};
const ActorType<Keepsake> keepsake{"test.keepsake"};

SpawnOptions with_job(const ActorTest& test, int count, int processes) {
  return {.count = count,
          .place = {.processes = processes},
          .own_thread = true,
          .lives_with = test.job().handle(),
          .supervision = {.max_restarts = -1}};
}

TEST(TestJobs, SkipVersionsWhileViewsHoldAllPlaces) {
  ActorTest test;
  TestJob job = test.job();
  EXPECT_TRUE(job.publish("policy", 1, {{"w", tensor_of(1)}}));
  const auto keeps = test.spawn(keepsake, with_job(test, 1, 0));
  for (std::uint64_t version = 1; version <= 8; ++version) {
    EXPECT_EQ(keeps[0].call<&Keepsake::keep>().get(), version);
    EXPECT_EQ(job.publish("policy", version + 1, {{"w", tensor_of(1)}}), version < 8);
  }
  EXPECT_EQ(keeps[0].call<&Keepsake::skipped>().get(), 1U);
  keeps[0].call<&Keepsake::drop>().get();
  EXPECT_TRUE(job.publish("policy", 10, {{"w", tensor_of(1)}}));
  EXPECT_EQ(keeps[0].call<&Keepsake::keep>().get(), 10U);
}

TEST(TestJobs, HaveNotEndedBeforeTheFirstVersion) {
  ActorTest test;
  TestJob job = test.job();
  const auto keeps = test.spawn(keepsake, with_job(test, 1, 1));
  EXPECT_FALSE(keeps[0].call<&Keepsake::has_ended>().get());
  job.publish("policy", 1, {{"w", tensor_of(1)}});
  EXPECT_FALSE(keeps[0].call<&Keepsake::has_ended>().get());
}

TEST(TestJobs, HaveActorsBesideTheirLoops) {
  ActorTest test;
  TestJob job = test.job();
  job.publish("policy", 3, {{"w", tensor_of(1)}});
  const auto keeps =
      test.spawn(keepsake, {.place = beside_loops(*job.handle()), .own_thread = true});
  EXPECT_EQ(keeps[0].call<&Keepsake::keep>().get(), 3U);
  job.end();
  expect_error(Errc::cancelled, {"has ended"}, [&] { keeps[0].call<&Keepsake::keep>().get(); });
  ActorTest other;
  expect_error(Errc::invalid_argument,
               {"the job of beside_loops() is another job", "test.job().handle()"},
               [&] { other.spawn(keepsake, {.place = beside_loops(*job.handle())}); });
}

TEST(TestJobs, LetWritersWaitInTheTimeOfTheTest) {
  ActorTest test;
  TestJob job = test.job();
  const auto scribes = test.spawn(scribe, with_job(test, 1, 1));
  test.advance(1);  // the writer waits for a version
  job.publish("policy", 5, {{"w", tensor_of(0.5F)}});
  test.advance(1);  // the writer waits for memory for rows
  job.begin_experience("steps", kFields, 5);
  test.advance(100);
  const std::vector<TestRow> rows = job.take_rows("steps", 100);
  ASSERT_EQ(rows.size(), 4U);  // there is no room for a third chunk
  for (int i = 0; i < 4; ++i) {
    const TestRow& row = rows[static_cast<std::size_t>(i)];
    EXPECT_EQ(row.version, 5U);
    EXPECT_EQ(row.fields.at("writer").get<std::int32_t>()[0], i);
    EXPECT_EQ(row.fields.at("value").get<float>()[0], 0.5F);
  }
  test.advance(1);
  EXPECT_EQ(job.take_rows("steps", 1).size(), 1U);
  EXPECT_EQ(job.take_rows("steps", 100).size(), 3U);
  // ExperienceWriterOptions::timeout_s is 300: after that the actor has failed, and is made again.
  test.advance(301);
  EXPECT_NE(test.history().find("job 00000000000000000000000000000000 has had no room for 2 rows "
                                "within 300 s"),
            std::string::npos)
      << test.history();
}

/// Kills writers at any time. Requires that chunks are complete, that chunks of one incarnation of
/// a writer are in order, and that no memory is lost.
void write_with_kills(ActorTest& test) {
  TestJob job = test.job();
  job.begin_experience("steps", kFields, 6);
  job.publish("policy", 1, {{"w", tensor_of(1)}});
  const auto scribes = test.spawn(scribe, with_job(test, 3, 3));
  std::map<int, std::vector<float>> seen;  // by writer: incarnation * 1000 + number
  std::uint64_t version = 1;
  for (int taken = 0; taken < 60;) {
    const std::vector<TestRow> rows = job.take_rows("steps", 2);
    test.require(rows.size() != 1, "half of a chunk has arrived");
    for (const TestRow& row : rows) {
      const int number = row.fields.at("writer").get<std::int32_t>()[0];
      const auto value = row.fields.at("value").get<float>();
      test.require(value[0] == static_cast<float>(row.version), "a version has other elements");
      std::vector<float>& its = seen[number / 1000];
      const float place = value[1] * 1000 + static_cast<float>(number % 1000);
      test.require(its.empty() || place > its.back(), "rows of a writer aren't in order");
      its.push_back(place);
      ++taken;
    }
    if (rows.empty()) test.advance(1);
    ++version;
    job.publish("policy", version, {{"w", tensor_of(static_cast<float>(version))}});
  }
  test.end_faults();
  test.stop("test.scribe");
  job.take_rows("steps", 6);
  test.spawn(scribe, with_job(test, 1, 1));
  test.advance(10);
  test.require(job.take_rows("steps", 100).size() == 6, "memory of killed writers isn't free");
}

TEST(TestJobs, TakeWholeChunksWhileWritersAreKilled) {
  ActorTest::for_seeds(1, 40, {.kills = 4, .max_steps = 100'000}, write_with_kills);
}

TEST(TestJobs, ReplayTheirHistories) {
  std::set<std::string> histories;
  for (const std::uint64_t seed : {1, 1, 2, 2, 3, 3}) {
    ActorTest test({.seed = seed, .kills = 3});
    write_with_kills(test);
    histories.insert(test.history());
    EXPECT_NE(test.history().find(" was killed"), std::string::npos);
  }
  EXPECT_EQ(histories.size(), 3U);
}

TEST(TestJobs, EndWithAMeshThatGivesUp) {
  ActorTest test;
  TestJob job = test.job();
  job.publish("policy", 1, {{"w", tensor_of(1)}});
  SpawnOptions options = with_job(test, 1, 1);
  options.supervision = {.then = ActorGivesUp::stop};
  const auto first = test.spawn(keepsake, options);
  options.name = "others";
  const auto others = test.spawn(keepsake, options);
  EXPECT_FALSE(others[0].call<&Keepsake::has_ended>().get());
  test.kill(first[0]);
  test.run();
  EXPECT_TRUE(job.has_ended());
  expect_error(Errc::cancelled, {"mesh \"others\" was stopped because its job 0000", "has ended"},
               [&] { others[0].call<&Keepsake::keep>().get(); });
  // As in an ActorSystem, a mesh of a job that has ended is made, and then stopped.
  options.name = "late";
  options.supervision = {};
  expect_error(Errc::cancelled, {"mesh \"late\" was stopped because its job 0000"},
               [&] { test.spawn(keepsake, options)[0].call<&Keepsake::keep>().get(); });
}

TEST(TestJobs, AreWaitedForInVain) {
  ActorTest test;
  TestJob job = test.job();
  job.publish("policy", 3, {{"w", tensor_of(1)}});
  const auto keeps = test.spawn(keepsake, with_job(test, 1, 1));
  expect_error(Errc::endpoint_failed,
               {"Parameters \"policy\": job 0000",
                "has not published version 9 or a later one "
                "within 30 s; its newest version is 3",
                "under these names: policy"},
               [&] { keeps[0].with({.timeout_s = 40}).call<&Keepsake::wait_for>(9).get(); });
  EXPECT_EQ(test.now(), 30);
}

TEST(TestJobs, RefuseWhatCannotBe) {
  ActorTest test;
  TestJob job = test.job();
  job.publish("policy", 3, {{"w", tensor_of(1)}});
  job.begin_experience("steps", kFields, 4);
  expect_error(Errc::invalid_argument,
               {"publish(\"policy\", version 3): expected a later version than 3"}, [&] {
                 job.publish("policy", 3, {{"w", tensor_of(1)}});
               });
  expect_error(
      Errc::invalid_argument,
      {"publish(\"policy\", version 4): it has \"b\" f32[2], but earlier versions have \"w\""},
      [&] {
        job.publish("policy", 4, {{"b", tensor_of(1)}});
      });
  expect_error(Errc::invalid_argument, {"expected 1 or more tensors"},
               [&] { job.publish("other", 4, {}); });
  expect_error(Errc::invalid_argument, {"TestJob::publish"}, [&] {
    job.publish("no name", 4, {{"w", tensor_of(1)}});
  });
  expect_error(Errc::invalid_argument,
               {"begin_experience(\"steps\", 2 fields, capacity 4)", "in use"},
               [&] { job.begin_experience("steps", kFields, 4); });
  expect_error(Errc::invalid_argument, {"capacity 0)"},
               [&] { job.begin_experience("more", kFields, 0); });
  expect_error(Errc::not_found, {"take_rows(\"more\"): begin_experience() was called for: steps"},
               [&] { job.take_rows("more", 1); });
  job.end();
  EXPECT_TRUE(job.has_ended());
  expect_error(Errc::invalid_argument, {"publish() after the end of the job"}, [&] {
    job.publish("policy", 4, {{"w", tensor_of(1)}});
  });
}

/// An actor that writes numbers to a pipe, or reads them.
struct Plumber {
  void write(PipeWriter<int> out) const {
    for (int i = 0; i < 30; ++i) out.write(i);
    out.close();
  }
  /// Returns how many numbers came before the pipe's end; -1 if they weren't 0, 1, ...
  int read(PipeReader<int> in) const {
    int count = 0;
    try {
      for (const int each : in) {
        if (each != count++) return -1;
      }
    } catch (const Error& error) {
      // If write()'s process died before the call began, no number comes, and read() times out.
      const bool has_begun = error.code() == Errc::peer_lost && count < 30;
      if (!has_begun && (error.code() != Errc::timeout || count > 0)) return -1;
    }
    return count;
  }
  using endpoints = Endpoints<&Plumber::write, &Plumber::read>;
};
const ActorType<Plumber> plumber{"test.plumber"};

TEST(TestPipes, EndEarlyIfTheirWriterIsKilled) {
  std::set<int> counts;
  std::map<std::uint64_t, std::string> histories;
  const auto pass = [&](ActorTest& test) {
    SpawnOptions options{.name = "writers",
                         .place = processes(1),
                         .own_thread = true,
                         .supervision = {.max_restarts = -1}};
    const auto writers = test.spawn(plumber, options);
    options.name = "readers";
    options.place = this_process();
    const auto readers = test.spawn(plumber, options);
    Pipe<int> pipe = test.pipe<int>({.credits = 3, .join_timeout_s = 5});
    writers[0].tell<&Plumber::write>(pipe.writer);
    auto read = readers[0].call<&Plumber::read>(pipe.reader);
    const int count = read.get();
    test.require(count >= 0, "numbers are lost or mixed up");
    counts.insert(count);
    const auto [known, is_new] = histories.emplace(test.seed(), test.history());
    test.require(known->second == test.history(), "the second run has another history");
  };
  const ActorTestOptions options{.kills = 1, .steps_between_faults = 15};
  ActorTest::for_seeds(1, 60, options, pass);
  ActorTest::for_seeds(1, 60, options, pass);
  EXPECT_TRUE(counts.contains(30));
  EXPECT_GE(counts.size(), 5U) << "kills don't come at different moments";
}

/// An actor with a Session needs no change to run in an ActorTest.
TEST(TestJobs, FeedSessions) {
  struct Net : Module {
    Linear a{*this, "a", {.in_features = 2, .out_features = 1, .bias = false}};
  };
  struct Brain {
    explicit Brain(ActorContext& ctx) : policy(ctx.parameters("policy")) { net.eval(); }
    float act(const std::vector<float>& state) {
      session.bind(net, policy.newest());
      return net.a(to_device(state, {1, 2})).item<float>();
    }
    using endpoints = Endpoints<&Brain::act>;
    Session session;
    Net net;
    Parameters policy;
  };
  const ActorType<Brain> brain{"test.simulated_brain"};
  ActorTest test;
  TestJob job = test.job();
  const auto weight = [](float element) {
    return HostTensor(std::vector<float>{element, 2}, {1, 2});
  };
  job.publish("policy", 1, {{"a.weight", weight(1)}});
  const auto brains = test.spawn(brain, with_job(test, 2, 0));
  const std::vector<float> state{3, 4};
  EXPECT_EQ(brains.call<&Brain::act>(state).get(), (std::vector<float>{11, 11}));
  job.publish("policy", 2, {{"a.weight", weight(5)}});
  EXPECT_EQ(brains.call<&Brain::act>(state).get(), (std::vector<float>{23, 23}));
}

}  // namespace
}  // namespace weft::simulated_job_test
