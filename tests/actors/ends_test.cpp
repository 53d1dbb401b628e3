/// Tests the ends of actor systems whose functions don't return, and of systems that are killed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <weft/actor.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/lanes/peer_table.hpp"
#include "transport/memory/segment.hpp"

namespace weft::ends_test {
namespace {

using testing::AppProcess;

/// An actor whose function stop requests don't end.
class Endless {
 public:
  int pid() const { return ::getpid(); }
  void run() const { may_return.get_future().wait(); }

  using endpoints = Endpoints<&Endless::pid, &Endless::run>;

  static inline std::promise<void> may_return;
};
const ActorType<Endless> endless{"test.endless"};

std::size_t segments_of(const std::string& system) {
  return Segment::list("weft-" + system).size();
}

/// Returns whether the process has ended. A process that nobody has waited for has no command line.
bool has_ended(int pid) { return std::ifstream(fmt::format("/proc/{}/cmdline", pid)).get() == EOF; }

/// While it lives, what this process writes to stderr goes to a pipe.
class StderrPipe {
 public:
  StderrPipe() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
    lines_.reset(::fdopen(ends[0], "r"));
  }
  ~StderrPipe() {
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
  }
  StderrPipe(const StderrPipe&) = delete;
  StderrPipe& operator=(const StderrPipe&) = delete;

  /// Waits for a line with this text.
  void wait_for(std::string_view text) {
    std::array<char, 1024> line{};
    while (std::string_view(line.data()).find(text) == std::string_view::npos) {
      if (std::fgets(line.data(), line.size(), lines_.get()) == nullptr) {
        throw std::runtime_error(fmt::format("stderr ended without \"{}\"", text));
      }
    }
  }

 private:
  const int stderr_ = ::dup(STDERR_FILENO);
  std::unique_ptr<FILE, int (*)(FILE*)> lines_{nullptr, ::fclose};
};

/// The process is killed. The thread of this process can't be, so the other system's destructor
/// says in the log that it waits. Both take 10 s, so they do it at once.
TEST(ActorSystemEnds, AlthoughFunctionsDontReturn) {
  StderrPipe log;
  std::thread here([] {
    ActorSystem system{{.name = "stubborn"}};
    const auto actors = system.spawn(endless, {.name = "here", .own_thread = true});
    EXPECT_EQ(actors[0].call<&Endless::pid>().get(), ::getpid());
    actors[0].tell<&Endless::run>();
  });
  std::string id;
  {
    ActorSystem system;
    id = system.id();
    const auto actors =
        system.spawn(endless, {.name = "away", .place = processes(1), .own_thread = true});
    const int pid = actors[0].call<&Endless::pid>().get();
    actors[0].tell<&Endless::run>();
    EXPECT_GT(segments_of(id), 0U);
    system.stop("away");
    EXPECT_TRUE(has_ended(pid));
  }
  EXPECT_EQ(segments_of(id), 0U);
  log.wait_for(
      "actor system stubborn: an actor of this process hasn't ended after 10 s; waiting for it");
  Endless::may_return.set_value();
  here.join();
}

/// A program with an actor system that is killed.
class KilledSystem : public ::testing::Test {
 protected:
  void SetUp() override {
    AppProcess app = start("killed-" + testing::unique_job());
    id_ = app.wait_for_line("system ").substr(7);
    std::vector<int> pids;
    {
      const PeerTable table = PeerTable::open(id_);
      for (std::uint32_t slot = 0; slot < kPeerCountMax; ++slot) {
        if (table.life(slot).state == PeerState::alive) pids.push_back(table.pid(slot));
      }
    }
    ASSERT_EQ(pids.size(), 3U) << "the program and two processes of actors";
    ::kill(app.pid(), SIGKILL);
    app.wait();
    for (const int pid : pids) testing::wait_until([&] { return has_ended(pid); });
    ASSERT_GT(segments_of(id_), 0U);
  }
  AppProcess start(const std::string& name) const {
    return AppProcess({ATTACHED_APP, "serve", name}, {variable_});
  }

  testing::TemporaryFolder root_;
  const std::string variable_ = "XDG_RUNTIME_DIR=" + root_.path();
  std::string id_;
};

TEST_F(KilledSystem, LeavesNothingAfterASweep) {
  AppProcess sweep({WEFT, "sweep", id_}, {variable_});
  EXPECT_EQ(sweep.wait(), 0) << sweep.output();
  EXPECT_NE(sweep.output().find(id_), std::string::npos) << sweep.output();
  EXPECT_EQ(segments_of(id_), 0U);
}

TEST_F(KilledSystem, LeavesNothingWhenTheNextSystemBegins) {
  AppProcess next = start("next-" + testing::unique_job());
  EXPECT_NE(next.wait_for_line("system "), "");
  EXPECT_EQ(segments_of(id_), 0U);
  ::kill(next.pid(), SIGTERM);
  EXPECT_EQ(next.wait(), 0) << next.output();
}

}  // namespace
}  // namespace weft::ends_test
