/// Strangers connect to the control socket of a running job: they change nothing, and the job names
/// them.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <deque>
#include <filesystem>

#include "tests/fault/strangers.hpp"
#include "tests/support/stranger.hpp"

namespace weft::door_test {
namespace {

namespace fs = std::filesystem;
using testing::basp;
using testing::expect_nothing_left;
using testing::FaultApp;
using testing::preamble;
using testing::times;
using testing::UnixStranger;
using testing::variable_of;
using Json = nlohmann::json;

constexpr uid_t kNobody = 65534;

fs::path folder_of(const std::string& job) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string root = runtime != nullptr ? std::string(runtime) + "/weft"
                                              : fmt::format("/tmp/weft-{}", ::geteuid());
  return fs::path(root) / job;
}

/// Sends handshakes that no worker would send, and expects that the job survives them.
void expect_takes_handshakes(const fs::path& socket, int count, std::deque<UnixStranger>& silent) {
  const std::string token(32, 'f');
  const std::string wrong = preamble("weftdoor", kAbi, token);
  const std::vector<std::string> wholes{
      basp(1, 0, 0),            // a client's handshake without a payload
      basp(0, 0, 3),            // a server's handshake without a payload
      basp(2, 0xfffffff0U, 0),  // a message of 4 GiB
      basp(0, 0, 3) + basp(1, 0, 0),
      preamble("WEFTDOOR", 1, token) + basp(1, 0, 0),
      preamble("weftdoor", 9, token) + basp(1, 0, 0),
      wrong,
      wrong + basp(1, 0, 0),
  };
  testing::expect_takes_handshakes(socket, count, wholes, wrong, silent);
}

/// Sends the right token as another user, who was given access to the socket.
void expect_refuses_another_user(const fs::path& folder, const std::string& words) {
  const fs::path socket = folder / "control";
  fs::permissions(folder.parent_path(), fs::perms(0755));
  fs::permissions(folder, fs::perms(0755));
  fs::permissions(socket, fs::perms(0666));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    const UnixStranger stranger(socket);
    if (!stranger.connected()) ::_exit(2);
    stranger.say(words);
    ::_exit(stranger.hear(1).empty() ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  fs::permissions(socket, fs::perms(0600));
  fs::permissions(folder, fs::perms(0700));
  fs::permissions(folder.parent_path(), fs::perms(0700));
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

/// A worker waits in stop_at_mark() while strangers connect. The worker is killed while some of
/// them are still connected, and its next process has to join in spite of them.
TEST(Door, StrangersChangeNoBitOfTheResult) {
  FaultApp calm({"--mode", "none", "--max-failures", "1"});
  ASSERT_EQ(calm.wait(), 0) << calm.output();
  FaultApp app({"--mode", "mark", "--max-failures", "1"});
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark loop");
  const fs::path socket = folder_of(job) / "control";
  {
    // With the right token a stranger gets an answer, so the others are refused for their tokens.
    const UnixStranger friendly(socket);
    friendly.say(preamble("weftdoor", kAbi, app.token()));
    ASSERT_EQ(friendly.hear(32).size(), 32U);
  }
  std::deque<UnixStranger> silent;
  testing::expect_takes_random_bytes<UnixStranger>(socket, 10'000'000);
  expect_takes_handshakes(socket, 1000, silent);
  ::kill(testing::marked(mark), SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const Json result = app.result();
  EXPECT_EQ(result.at("history"), calm.result().at("history")) << app.output();
  expect_nothing_left(job);

  const std::string log = testing::trainer_log(result);
  for (const char* kind : {"no preamble of weft", "another version of weft", "a wrong token",
                           "closed before its preamble was complete"}) {
    EXPECT_EQ(times(log, fmt::format("refused a connection ({})", kind)), 1U) << kind << '\n'
                                                                              << log;
  }
  EXPECT_LE(times(log, "refused a connection"), 6U) << log;
  EXPECT_EQ(times(log, "total of refused connections"), 1U) << log;
}

TEST(Door, AnotherUserIsRefusedEvenWithTheRightToken) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  FaultApp app({"--mode", "mark", "--max-failures", "1"});
  const std::string job = app.job();
  const std::string mark = app.wait_for_line("mark loop");
  for (int i = 0; i < 3; ++i) {
    expect_refuses_another_user(folder_of(job), preamble("weftdoor", kAbi, app.token()));
  }
  ::kill(testing::marked(mark), SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  const std::string log = testing::trainer_log(app.result());
  EXPECT_EQ(times(log, fmt::format("refused a connection (another user) from uid {}", kNobody)),
            1U);
  EXPECT_EQ(times(log, "total of refused connections: 3 (another user)"), 1U) << log;
}

}  // namespace
}  // namespace weft::door_test
