/// Tests actors that run in the processes of a job's loops.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <weft/actor.hpp>
#include <weft/weft.hpp>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::beside_loops_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_error;
using testing::TemporaryFolder;

/// The steps of the loop in this process.
std::atomic<std::uint64_t> steps_here{0};

/// Runs steps until the file "end" exists.
Loop steps_loop{"test.beside", [](TrainContext& ctx, const Config& config) {
                  Parameter count = make_parameter("count", 0.0F, {});
                  while (true) {
                    const bool has_end =
                        std::filesystem::exists(config.at("end").get<std::string>());
                    count.assign(count + 1);
                    sync();
                    steps_here = ctx.step();
                    if (broadcast(ctx, has_end).get<bool>()) break;
                  }
                }};

void expect_ok(const Job& job) {
  const Result result = job.result();
  EXPECT_TRUE(result.ok()) << result.error->message;
}

/// An actor that reads the state of the loop in its process.
class Observer {
 public:
  explicit Observer(ActorContext& ctx) : ctx_(ctx) {}
  ~Observer() {
    const std::string file = ctx_.config().value("destroyed", "");
    if (!file.empty()) std::ofstream{file} << "destroyed";
  }
  int pid() const { return ::getpid(); }
  std::uint64_t steps() const { return steps_here; }
  std::uint32_t incarnation() const { return ctx_.incarnation(); }
  void fail(const std::string& text) { throw std::runtime_error(text); }
  using endpoints =
      Endpoints<&Observer::pid, &Observer::steps, &Observer::incarnation, &Observer::fail>;

 private:
  ActorContext& ctx_;
};
const ActorType<Observer> observer{"test.observer"};

class BesideLoops : public ::testing::Test {
 protected:
  Job start(int workers, const ActorSystem* actors, int max_failures = 0) {
    return Trainer(steps_loop, {.loop_config = {{"end", end()}},
                                .scaling = {.num_workers = workers, .chips_per_worker = 1},
                                .backend = {.timeout_s = 60},
                                .run = {.name = "beside",
                                        .storage_path = folder_.path(),
                                        .failure = {.max_failures = max_failures}},
                                .actors = actors})
        .start();
  }
  std::string end() const { return folder_.path() + "/end"; }
  void end_loops() const { std::ofstream{end()} << "end"; }

  TemporaryFolder folder_;
};

TEST_F(BesideLoops, RunInTheProcessesOfTheLoops) {
  for (const bool own_thread : {false, true}) {
    SCOPED_TRACE(own_thread);
    std::filesystem::remove(end());
    ActorSystem system;
    const Job job = start(2, &system);
    const auto actors =
        system.spawn(observer, {.count = 4, .place = beside_loops(job), .own_thread = own_thread});
    const std::vector<int> pids = actors.call<&Observer::pid>().get();
    EXPECT_EQ(pids[0], pids[1]);  // neighbours share a worker
    EXPECT_EQ(pids[2], pids[3]);
    EXPECT_NE(pids[0], pids[2]);
    EXPECT_EQ(std::ranges::count(pids, ::getpid()), 0);
    for (int i = 0; i < actors.size(); ++i) {  // they see the loop of their process
      while (actors[i].call<&Observer::steps>().get() < 3) std::this_thread::yield();
    }
    end_loops();
    expect_ok(job);
    while (actors[0].call<&Observer::pid>().outcome().ok()) std::this_thread::yield();
    expect_error(Errc::cancelled, {"has ended"}, [&] { actors[0].call<&Observer::pid>().get(); });
  }
}

TEST_F(BesideLoops, AreMadeAgainInTheSuccessorOfALostWorker) {
  ActorSystem system;
  const Job job = start(2, &system, 3);
  const auto actors =
      system.spawn(observer, {.count = 2, .place = beside_loops(job), .own_thread = true});
  for (std::uint32_t kill = 1; kill <= 2; ++kill) {
    const std::vector<int> pids = actors.call<&Observer::pid>().get();
    ::kill(pids[1], SIGKILL);
    while (actors[1].call<&Observer::incarnation>().get() == kill) std::this_thread::yield();
    EXPECT_NE(actors[1].call<&Observer::pid>().get(), pids[1]);
    EXPECT_EQ(actors[0].call<&Observer::pid>().get(), pids[0]);
    EXPECT_EQ(actors[0].call<&Observer::incarnation>().get(), 1U);
  }
  end_loops();
  expect_ok(job);
  EXPECT_FALSE(system.failure());
}

TEST_F(BesideLoops, ThatWereLeftStayLeftAfterALoss) {
  ActorSystem system;
  const Job job = start(1, &system, 1);
  const auto actors = system.spawn(
      observer,
      {.count = 2, .place = beside_loops(job), .supervision = {.restart = ActorRestart::none}});
  const int pid = actors[1].call<&Observer::pid>().get();
  actors[0].tell<&Observer::fail>("left");
  const auto ends_with = [&] { return actors[0].call<&Observer::pid>().outcome(); };
  while (ends_with().ok()) std::this_thread::yield();
  ::kill(pid, SIGKILL);
  while (actors[1].call<&Observer::incarnation>().get() == 1) std::this_thread::yield();
  expect_error(Errc::actor_failed, {"left"}, [&] { ends_with().value(); });
  end_loops();
  expect_ok(job);
}

TEST_F(BesideLoops, AreSupervisedAsOthers) {
  ActorSystem system;
  const Job job = start(1, &system);
  const auto actors = system.spawn(
      observer, {.place = beside_loops(job),
                 .supervision = {.max_restarts = 1, .backoff_s = 0, .then = ActorGivesUp::stop}});
  const int pid = actors[0].call<&Observer::pid>().get();
  actors[0].tell<&Observer::fail>("once");
  while (actors[0].call<&Observer::incarnation>().get() == 1) std::this_thread::yield();
  EXPECT_EQ(actors[0].call<&Observer::pid>().get(), pid);
  actors[0].tell<&Observer::fail>("twice");  // the mesh gives up, which cancels the job
  EXPECT_EQ(job.result().ended_by, EndedBy::cancel);
  EXPECT_NE(job.result().error->message.find("twice"), std::string::npos)
      << job.result().error->message;
}

TEST_F(BesideLoops, RunInThisProcessIfItsLoopDoes) {
  ActorSystem system;
  const Job job = start(0, nullptr);
  const auto actors = system.spawn(observer, {.place = beside_loops(job)});
  EXPECT_EQ(actors[0].call<&Observer::pid>().get(), ::getpid());
  while (actors[0].call<&Observer::steps>().get() < 3) std::this_thread::yield();
  end_loops();
  expect_ok(job);
}

TEST_F(BesideLoops, AreDestroyedWhenTheirMeshIsStopped) {
  ActorSystem system;
  const Job job = start(1, &system);
  const std::string destroyed = folder_.path() + "/destroyed";
  system.spawn(observer, {.place = beside_loops(job), .config = {{"destroyed", destroyed}}});
  system.stop("test.observer");
  EXPECT_TRUE(std::filesystem::exists(destroyed));
  const auto again = system.spawn(observer, {.place = beside_loops(job)});
  const std::uint64_t steps = again[0].call<&Observer::steps>().get();
  while (again[0].call<&Observer::steps>().get() <= steps) std::this_thread::yield();
  end_loops();
  expect_ok(job);
}

TEST_F(BesideLoops, AreDestroyedWithTheirSystemWhileTheLoopsContinue) {
  const std::string destroyed = folder_.path() + "/destroyed";
  std::optional<ActorSystem> system(std::in_place);
  const Job job = start(2, &*system);
  system->spawn(observer, {.place = beside_loops(job), .config = {{"destroyed", destroyed}}});
  system.reset();
  EXPECT_TRUE(std::filesystem::exists(destroyed));
  end_loops();
  expect_ok(job);
}

TEST_F(BesideLoops, AreDestroyedWhenTheJobEnds) {
  const std::string destroyed = folder_.path() + "/destroyed";
  ActorSystem system;
  const Job job = start(1, &system);
  system.spawn(
      observer,
      {.place = beside_loops(job), .own_thread = true, .config = {{"destroyed", destroyed}}});
  end_loops();
  expect_ok(job);
  EXPECT_TRUE(std::filesystem::exists(destroyed));
}

TEST_F(BesideLoops, UseThePortsOfStoppedMeshesAgain) {
  ActorSystem system;
  const Job job = start(1, &system);
  for (int i = 0; i < 4; ++i) {
    for (const ActorPlace place : {this_process(), beside_loops(job)}) {
      const auto actors =
          system.spawn(observer, {.name = "many", .count = 20, .place = place, .own_thread = true});
      EXPECT_EQ(actors.call<&Observer::incarnation>().get(), std::vector<std::uint32_t>(20, 1));
      system.stop("many");
    }
  }
  const auto most = system.spawn(
      observer, {.name = "most", .count = 60, .place = beside_loops(job), .own_thread = true});
  expect_error(
      Errc::no_space,
      {"mesh \"more\": own_thread = true needs 2 more threads in worker 0, which has room for 1"},
      [&] {
        system.spawn(observer,
                     {.name = "more", .count = 2, .place = beside_loops(job), .own_thread = true});
      });
  end_loops();
  expect_ok(job);
}

TEST_F(BesideLoops, OfAWorkerThatIsStoppedLeaveTheirPortsWhenItDies) {
  ActorSystem system;
  const Job job = start(1, &system, 1);
  const SpawnOptions half{
      .name = "half", .count = 30, .place = beside_loops(job), .own_thread = true};
  const auto actors = system.spawn(observer, half);
  const int pid = actors[0].call<&Observer::pid>().get();
  ::kill(pid, SIGSTOP);
  system.stop("half");
  system.spawn(echo, {.name = "here"});  // the system isn't blocked by the stopped worker
  ::kill(pid, SIGKILL);
  SpawnOptions all = half;
  all.count = 61;  // all threads that a process can have
  for (;;) {
    try {
      EXPECT_EQ(system.spawn(observer, all).size(), 61);
      break;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), Errc::no_space) << error.what();  // the death isn't noticed yet
    }
  }
  end_loops();
  expect_ok(job);
}

TEST_F(BesideLoops, RefuseWhatCantBe) {
  ActorSystem system;
  ActorSystem other;
  const Job job = start(1, &other);
  expect_error(Errc::invalid_argument, {"TrainerOptions{.actors = &system}"},
               [&] { system.spawn(observer, {.place = beside_loops(job)}); });
  expect_error(Errc::invalid_argument,
               {"mesh \"test.observer\": beside_loops(job): the Job is empty"},
               [&] { system.spawn(observer, {.place = beside_loops(Job())}); });
  expect_error(Errc::invalid_argument, {"whose processes the job supervises"}, [&] {
    other.spawn(observer, {.place = beside_loops(job), .supervision = {.hang_timeout_s = 1}});
  });
  expect_error(Errc::invalid_argument, {"whose processes the job starts again"}, [&] {
    other.spawn(observer,
                {.place = beside_loops(job), .supervision = {.restart = ActorRestart::process}});
  });
  expect_error(
      Errc::invalid_argument, {"expected one of weft::processes(n) and weft::beside_loops(job)"},
      [&] { other.spawn(observer, {.count = 2, .place = {.processes = 2, .beside = &job}}); });
  end_loops();
  expect_ok(job);
  expect_error(Errc::cancelled, {"has ended"},
               [&] { other.spawn(observer, {.place = beside_loops(job)}); });
}

}  // namespace
}  // namespace weft::beside_loops_test
