/// Tests the signals, children and handlers of a program that runs jobs.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "tests/embed/loops.hpp"
#include "tests/support/app_process.hpp"

namespace weft::signals_test {
namespace {

using testing::options;
using testing::wait_until;

std::atomic<int> host_got{0};

/// Installs the program's own handler as long as this object lives.
class HostHandler {
 public:
  explicit HostHandler(int signal) : signal_(signal) {
    host_got = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { ++host_got; };
    ::sigaction(signal, &action, &before_);
  }
  ~HostHandler() { ::sigaction(signal_, &before_, nullptr); }

 private:
  int signal_;
  struct sigaction before_ {};
};

TrainerOptions with_signals(bool handle, int workers = 2) {
  TrainerOptions made = options({}, workers);
  made.run.handle_signals = handle;
  return made;
}

void wait_until_it_runs(const Job& job) {
  wait_until([&] { return !job.latest().is_null(); });
}

TEST(Signals, AJobThatHandlesNoneLeavesThemToTheProgram) {
  const HostHandler handler(SIGTERM);
  Job job = Trainer{testing::until_asked, with_signals(false)}.start();
  wait_until_it_runs(job);
  ::kill(::getpid(), SIGTERM);
  wait_until([] { return host_got == 1; });
  EXPECT_EQ(job.phase(), Job::Phase::running);
  job.stop();
  EXPECT_EQ(job.result().signal, 0);
}

TEST(Signals, TheProgramsHandlerIsCalledTooAndTheResultSaysWhichCame) {
  const HostHandler handler(SIGTERM);
  Job job = Trainer{testing::until_asked, with_signals(true)}.start();
  wait_until_it_runs(job);
  ::kill(::getpid(), SIGTERM);
  const Result result = job.result();
  EXPECT_EQ(host_got, 1);
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_EQ(result.ended_by, EndedBy::signal);
  EXPECT_TRUE(result.cancelled());
}

TEST(Signals, TheProgramsHandlerIsNotCalledWhereItIsNotChained) {
  const HostHandler handler(SIGTERM);
  TrainerOptions own = with_signals(true);
  own.run.chain_signals = false;
  Job job = Trainer{testing::until_asked, own}.start();
  wait_until_it_runs(job);
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(job.result().cancelled());
  EXPECT_EQ(host_got, 0);
}

TEST(Signals, AllJobsAreTold) {
  const HostHandler handler(SIGINT);
  Job first = Trainer{testing::never_asks, with_signals(true)}.start();
  Job second = Trainer{testing::never_asks, with_signals(true)}.start();
  wait_until_it_runs(first);
  wait_until_it_runs(second);
  ::kill(::getpid(), SIGINT);
  EXPECT_EQ(first.result().signal, SIGINT);
  EXPECT_EQ(second.result().signal, SIGINT);
}

TEST(Signals, AHandlerIsPutBackWhenTheFirstOfTwoJobsEndsFirst) {
  const HostHandler handler(SIGTERM);
  {
    Job first = Trainer{testing::until_asked, with_signals(true)}.start();
    Job second = Trainer{testing::until_asked, with_signals(true)}.start();
    wait_until_it_runs(second);
    first.cancel();
    first.wait();
    second.cancel();
  }
  ::kill(::getpid(), SIGTERM);
  wait_until([] { return host_got == 1; });
}

TEST(Signals, AHandlerThatTheProgramHasSetMeanwhileStays) {
  struct sigaction before {};
  ::sigaction(SIGTERM, nullptr, &before);
  {
    Job job = Trainer{testing::until_asked, with_signals(true)}.start();
    struct sigaction action {};
    action.sa_handler = [](int) { host_got += 10; };
    ::sigaction(SIGTERM, &action, nullptr);
  }
  host_got = 0;
  ::kill(::getpid(), SIGTERM);
  wait_until([] { return host_got == 10; });
  ::sigaction(SIGTERM, &before, nullptr);
}

/// A loop in which worker 1 is killed.
Loop dies{"test.dies", [](TrainContext& ctx) {
            if (ctx.world_rank() == 1) std::raise(SIGKILL);
            for (;;) sync();
          }};

TEST(Children, AWorkerWhoseStatusTheProgramTookIsALossStill) {
  std::jthread reaper([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (::waitpid(-1, nullptr, WNOHANG) <= 0) std::this_thread::yield();
    }
  });
  const Result result = Trainer{dies, options({})}.fit();
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error->message.find("worker 1"), std::string::npos) << result.error->message;
  EXPECT_EQ(result.error->message.find("exited with code 0"), std::string::npos)
      << result.error->message;
}

TEST(Children, AProgramThatIgnoresSigchldHasJobsToo) {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGCHLD, &ignore, &before);
  const Result result = Trainer{testing::add_one, options({{"tag", 1}})}.fit();
  struct sigaction now {};
  ::sigaction(SIGCHLD, &before, &now);
  EXPECT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

/// A loop in which worker 1 forks a child and is then killed; the child survives. The next process
/// of worker 1 does neither.
Loop leaves_a_child{"test.leaves_a_child", [](TrainContext& ctx, const Config& config) {
                      Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                      while (ctx.step() < 10) {
                        if (ctx.world_rank() == 1 && ctx.step() == 5 &&
                            ::access(config["once"].get<std::string>().c_str(), F_OK) != 0) {
                          ::close(::creat(config["once"].get<std::string>().c_str(), 0600));
                          const pid_t child = ::fork();
                          if (child == 0) {
                            ::setsid();
                            for (;;) ::pause();
                          }
                          fmt::print("child {}\n", child);
                          std::fflush(stdout);
                          std::raise(SIGKILL);
                        }
                        sum.assign(sum + 1.0);
                        sync();
                      }
                      ctx.report({{"sum", sum.to_vector()[0]}});
                    }};

/// If recovery waited for the child to close the link, backend.timeout_s would pass and the job
/// end.
TEST(Children, AChildThatKeepsTheLinkOpenDoesNotHoldRecoveryUp) {
  const std::string once = fmt::format("/tmp/weft-embed-once-{}", ::getpid());
  TrainerOptions recovers = options({{"once", once}});
  recovers.run.failure.max_failures = 1;
  pid_t child = 0;
  recovers.run.output = [&](int, bool, std::string_view line) {
    if (line.starts_with("child ")) child = std::atoi(std::string(line.substr(6)).c_str());
  };
  const Result result = Trainer{leaves_a_child, recovers}.fit();
  if (child > 0) ::kill(child, SIGKILL);
  ::unlink(once.c_str());
  ASSERT_TRUE(result.ok()) << result.error->message;
  EXPECT_EQ(result.metrics["sum"], 10);
  EXPECT_EQ(result.failures.size(), 1U);
}

}  // namespace
}  // namespace weft::signals_test

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
