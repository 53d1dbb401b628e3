/// Starts jobs over two slots of this machine in the ways in which clusters start programs: by a
/// rendezvous file, by `weft launch --hosts` with a script and with a real sshd, and by mpirun.
/// Tests of a program that this machine doesn't have are skipped, and say so.

#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/slots.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft::hosts_start_test {
namespace {

using testing::AppProcess;
using testing::expect_says;
namespace fs = std::filesystem;

std::vector<std::string> joined(std::vector<std::string> words,
                                const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void write(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
}

/// Hosts that share a folder, and nothing else.
class HostStart : public ::testing::Test {
 protected:
  std::string storage() const { return folder_.path() + "/runs"; }
  std::string file() const { return storage() + "/rendezvous-" + job_; }
  std::vector<std::string> words(const std::vector<std::string>& more = {}) const {
    return joined({HOST_APP, "--storage", storage(), "--json", "{json}", "--timeout", "60"}, more);
  }
  AppProcess& start(int index, const std::vector<std::string>& more = {}) {
    hosts_.push_back(std::make_unique<AppProcess>(
        words(more), std::vector<std::string>{"WEFT_LOG=info", "WEFT_HOSTS=2", "WEFT_JOB=" + job_,
                                              fmt::format("WEFT_HOST_INDEX={}", index)}));
    return *hosts_.back();
  }
  AppProcess& host(std::size_t i) { return *hosts_.at(i); }
  void expect_both_end_well() {
    EXPECT_EQ(host(0).wait(), 0) << host(0).output();
    EXPECT_EQ(host(1).wait(), 0) << host(1).output();
    EXPECT_FALSE(fs::exists(file()));
  }

  const testing::TemporaryFolder folder_;
  const std::string job_ = "start-test";
  std::vector<std::unique_ptr<AppProcess>> hosts_;
};

TEST_F(HostStart, MeetsByAFile) {
  AppProcess& trainer = start(0);
  start(1);
  expect_both_end_well();
  EXPECT_EQ(trainer.result().at("counter"), 40);
}

TEST_F(HostStart, MeetsInAnyOrderThoughAFileOfAnEarlierRunIsThere) {
  // The agent tries the loopback address only if "loopback" has the text of a trainer on this
  // machine.
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  const nlohmann::json stale{
      {"addresses", {"127.0.0.1"}},
      {"port", testing::free_port()},
      {"secret", std::string(64, '0')},
      {"loopback", fmt::format("{}/{}", boot, namespace_of_this_process("net"))},
      {"machine", "earlier"}};
  fs::create_directories(storage());
  write(file(), stale.dump(), 0600);
  AppProcess& agent = start(1);
  EXPECT_NE(agent.wait_for_line("waits for the file"), "") << agent.output();
  AppProcess& trainer = start(0);
  EXPECT_EQ(trainer.wait(), 0) << trainer.output();
  EXPECT_EQ(agent.wait(), 0) << agent.output();
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(HostStart, NamesTheFileThatItHasAwaited) {
  AppProcess& agent = start(1, {"--timeout", "1"});
  EXPECT_NE(agent.wait(), 0);
  expect_says(agent, "has found no file rendezvous-start-test in " + storage());
  expect_says(agent, "set WEFT_TRAINER and WEFT_SECRET_FILE");
}

TEST_F(HostStart, SaysThatAnAddressOfLoopbackLeadsToItself) {
  write(folder_.path() + "/secret", std::string(32, 'a'), 0600);
  const std::string trainer = fmt::format("127.0.0.1:{}", testing::free_port());
  AppProcess agent(words({"--timeout", "1"}),
                   {"WEFT_HOSTS=2", "WEFT_HOST_INDEX=1", "WEFT_TRAINER=" + trainer,
                    "WEFT_SECRET_FILE=" + folder_.path() + "/secret"});
  EXPECT_NE(agent.wait(), 0);
  expect_says(agent, "WEFT_TRAINER = \"" + trainer + "\" is an address of this machine");
}

TEST_F(HostStart, UsesTheNetworkAndThePortsThatItIsGiven) {
  const int first = testing::free_port();
  const std::string ports = fmt::format("{}-{}", first, std::min(first + 60, 65535));
  const std::vector<std::string> more{"--network", "127.0.0.0/8", "--ports", ports};
  start(0, more);
  start(1, more);
  expect_both_end_well();
  const std::string line = "control at tls://0.0.0.0:";
  const auto at = host(0).output().find(line);
  ASSERT_NE(at, std::string::npos) << host(0).output();
  const int port = std::stoi(host(0).output().substr(at + line.size()));
  EXPECT_GE(port, first);
  EXPECT_LE(port, first + 60);
}

TEST_F(HostStart, RefusesTooFewPorts) {
  AppProcess& trainer = start(0, {"--ports", "4711"});
  EXPECT_NE(trainer.wait(), 0);
  expect_says(trainer, "backend.ports = \"4711\" has 1 ports");
}

/// `weft launch --hosts` through a script that runs the command on this machine.
class HostLaunch : public HostStart {
 protected:
  void SetUp() override {
    write(via(), "#!/bin/sh\n[ \"$1\" = nowhere ] && exit 255\nexec sh -c \"$2\"\n", 0700);
  }
  std::string via() const { return folder_.path() + "/via"; }
  std::vector<std::string> launch(const std::string& hosts,
                                  const std::vector<std::string>& more = {}) const {
    return joined({WEFT, "launch", "--via", via(), "--hosts", hosts, "-n", "2", "--env",
                   "WEFT_LOG=info", "--"},
                  words(more));
  }
};

TEST_F(HostLaunch, RunsTheProgramOnEachHostAndNamesItsOutput) {
  AppProcess app(launch("h1,h2"));
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("counter"), 40);
  expect_says(app, "[h1] ");
  expect_says(app, "[h2] ");
  EXPECT_EQ(app.output().find("secret"), std::string::npos) << app.output();
  EXPECT_FALSE(fs::exists(storage() + "/rendezvous-launch"));
}

TEST_F(HostLaunch, TakesTheFileThoughItComesTogetherWithTheFirstLine) {
  const std::string pipe = folder_.path() + "/pipe";
  write(via(),
        fmt::format("#!/bin/sh\n"
                    "[ \"$1\" = h1 ] && exec sh -c \"$2\"\n"
                    "exec 3<&0; read -r mark; read -r file; mkfifo {0}\n"
                    "{{ printf '%s\\n %s\\n' \"$mark\" \"$file\"; exec cat; }} "
                    "<&3 > {0} 2> /dev/null &\n"
                    "exec sh -c \"$2\" < {0}\n",
                    pipe),
        0700);
  AppProcess app(launch("h1,h2"));
  EXPECT_EQ(app.wait(), 0) << app.output();
}

TEST_F(HostLaunch, EndsWithTheExitCodeOfHost0) {
  AppProcess app(launch("h,h", {"--ports", "bad"}));
  EXPECT_NE(app.wait(), 0);
  expect_says(app, "[h:0] ");
  expect_says(app, "backend.ports = \"bad\"");
}

TEST_F(HostLaunch, NamesAHostThatIsNotReached) {
  AppProcess app(launch("h1,nowhere"));
  EXPECT_EQ(app.wait(), 1) << app.output();
  expect_says(app, "nowhere: the command of --via ended with exit code 255");
}

/// A launch of two hosts in which worker 1 kills its agent, on h2, after 200 of 400 steps.
class LostInLaunch : public HostLaunch {
 protected:
  std::string once() const { return folder_.path() + "/once"; }
  std::vector<std::string> launch_losing(const std::vector<std::string>& options) const {
    const std::vector<std::string> launcher{
        WEFT, "launch", "--via", via(), "--hosts", "h1,h2", "-n", "2", "--max-failures", "3"};
    return joined(joined(launcher, options),
                  words({"--steps", "400", "--whole", "--signals", "1", "--once", once()}));
  }
};

TEST_F(LostInLaunch, IsStartedAgain) {
  AppProcess app(launch_losing({"--"}));
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("counter"), 400);
  expect_says(app, "weft launch: h2: the program has ended with exit code 137");
  expect_says(app, "host 1 gets the state of step ");
}

TEST_F(LostInLaunch, IsTakenOverIfItIsNotReachedAnyMore) {
  write(via(),
        fmt::format("#!/bin/sh\n[ \"$1\" = h2 ] && [ -e {} ] && exit 255\nexec sh -c \"$2\"\n",
                    once()),
        0700);
  AppProcess app(launch_losing({"--min-hosts", "1", "--"}));
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("counter"), 400);
  expect_says(app,
              "weft launch: h2: the connection has ended with exit code 255: the program is "
              "started again on h1");
}

TEST_F(LostInLaunch, LeavesTheJobWhenItsConnectionEnds) {
  // The first connection to h2 goes through a process that the test ends.
  const std::string relay = folder_.path() + "/relay";
  write(via(),
        fmt::format("#!/bin/sh\n[ \"$1\" = h1 ] || [ -e {0} ] && exec sh -c \"$2\"\n"
                    "exec 3<&0; mkfifo {0}.pipe; cat <&3 > {0}.pipe & echo $! > {0}.new\n"
                    "mv {0}.new {0}; exec sh -c \"$2\" < {0}.pipe\n",
                    relay),
        0700);
  AppProcess app(joined({WEFT, "launch", "--via", via(), "--hosts", "h1,h2", "-n", "2",
                         "--max-failures", "3", "--env", "WEFT_LOG=info", "--"},
                        words({"--steps", "3000", "--whole"})));
  EXPECT_NE(app.wait_for_line("takes part in job"), "") << app.output();
  pid_t pid = 0;
  std::ifstream(relay) >> pid;
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("counter"), 3000);
  expect_says(app, "weft launch: h2: the program has ended with exit code 1");
}

TEST_F(LostInLaunch, IsNamedIfTooFewHostsAreGiven) {
  AppProcess app(launch_losing({"--min-hosts", "3", "--"}));
  EXPECT_NE(app.wait(), 0);
  expect_says(app, "--min-hosts 3: expected at most 2");
}

TEST_F(HostLaunch, PassesASignalOnToHost0) {
  AppProcess app(launch("h1,h2", {"--steps", "100000000"}));
  EXPECT_NE(app.wait_for_line("takes part in job"), "") << app.output();
  ::kill(app.pid(), SIGINT);
  EXPECT_NE(app.wait(), 0);
  expect_says(app, "got SIGINT");
}

TEST_F(HostLaunch, EndsTheProgramWhenTheLauncherIsKilled) {
  AppProcess app(launch("h1,h2", {"--steps", "100000000"}));
  const std::string line = app.wait_for_line("joined");
  ASSERT_NE(line, "") << app.output();
  const auto at = line.find("pid ");
  ASSERT_NE(at, std::string::npos) << line;
  const pid_t agent = std::stoi(line.substr(at + 4));
  ASSERT_EQ(::kill(agent, 0), 0);
  ::kill(app.pid(), SIGKILL);
  app.wait();
  testing::wait_until([&] { return ::kill(agent, 0) != 0; });
}

/// Returns the path of a program, or "".
std::string find_program(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/"}) {
    if (::access((folder + name).c_str(), X_OK) == 0) return folder + name;
  }
  return {};
}

TEST_F(HostLaunch, WorksWithARealSshd) {
  const std::string sshd = find_program("sshd");
  const std::string keygen = find_program("ssh-keygen");
  if (sshd.empty() || keygen.empty()) GTEST_SKIP() << "this machine has no sshd";
  const std::string base = folder_.path();
  for (const char* key : {"host", "user"}) {
    AppProcess make({keygen, "-q", "-t", "ed25519", "-N", "", "-f", base + "/" + key});
    ASSERT_EQ(make.wait(), 0) << make.output();
  }
  fs::copy_file(base + "/user.pub", base + "/authorized");
  ::chmod((base + "/authorized").c_str(), 0600);
  const int port = testing::free_port();
  write(base + "/sshd_config",
        fmt::format("Port {}\nListenAddress 127.0.0.1\nHostKey {}/host\nAuthorizedKeysFile "
                    "{}/authorized\nPidFile {}/sshd.pid\nStrictModes no\nUsePAM no\n"
                    "PermitRootLogin yes\nPasswordAuthentication no\n",
                    port, base, base, base),
        0600);
  fs::create_directories("/run/sshd");
  AppProcess server({sshd, "-D", "-e", "-f", base + "/sshd_config"});
  testing::wait_until([&] { return fs::exists(base + "/sshd.pid"); });
  const std::string ssh = fmt::format(
      "ssh -p {} -i {}/user -o BatchMode=yes -o StrictHostKeyChecking=no -o "
      "UserKnownHostsFile={}/known -o LogLevel=ERROR",
      port, base, base);
  AppProcess app(joined({WEFT, "launch", "--via", ssh, "--hosts", "127.0.0.1,localhost", "-n", "2",
                         "--env", "WEFT_LOG=info", "--"},
                        words()));
  const int code = app.wait();
  ::kill(server.pid(), SIGTERM);
  server.wait();
  EXPECT_EQ(code, 0) << app.output() << server.output();
  EXPECT_EQ(app.result().at("counter"), 40);
  expect_says(app, "[localhost] ");
}

TEST_F(HostStart, TakesItsPlaceFromMpirun) {
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "this machine has no mpirun";
  const std::vector<std::string> variables{"OMPI_ALLOW_RUN_AS_ROOT=1",
                                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "WEFT_HOSTS=2",
                                           "WEFT_LOG=info"};
  AppProcess app(joined({mpirun, "--oversubscribe", "-n", "2"}, words()), variables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("counter"), 40);
  expect_says(app, "host 0 of 2");
}

TEST_F(HostStart, IsOneHostWhereMpirunStartsWorkersOfOneMachine) {
  const std::string mpirun = find_program("mpirun");
  if (mpirun.empty()) GTEST_SKIP() << "this machine has no mpirun";
  const std::vector<std::string> variables{"OMPI_ALLOW_RUN_AS_ROOT=1",
                                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  AppProcess app(joined({mpirun, "--oversubscribe", "-n", "2"}, words()), variables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_EQ(app.result().at("counter"), 40);
  EXPECT_EQ(app.output().find("host 0 of"), std::string::npos) << app.output();
}

}  // namespace
}  // namespace weft::hosts_start_test
