/// Tests hosts other than a command line: plug-ins, a program whose workers are another program,
/// and a server.

#include <gtest/gtest.h>
#include <httplib.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::hosts_test {
namespace {

namespace fs = std::filesystem;
using testing::AppProcess;
using testing::wait_until;

const std::string kStorage = (fs::temp_directory_path() / "weft-embed").string();
const std::vector<std::string> kVariables{"WEFT_TEST_STORAGE=" + kStorage};

TEST(Plugin, RunsJobsInAHostWithoutWeft) {
  AppProcess app({PLAIN_HOST, PLUGIN}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("results 7 9"), std::string::npos) << app.output();
}

TEST(Plugin, RunsJobsBesideThoseOfAHostWithAnotherCopyOfWeft) {
  for (int round = 0; round < 5; ++round) {
    AppProcess app({WEFT_HOST, PLUGIN}, kVariables);
    EXPECT_EQ(app.wait(), 0) << app.output();
    EXPECT_NE(app.output().find("results 100 7"), std::string::npos) << app.output();
  }
}

/// If the plug-in's file has been replaced, a worker would load the replacement and run other code
/// than the trainer.
TEST(Plugin, ThatWasReplacedWhileItIsLoadedIsRefused) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("weft-plugin-{}", ::getpid());
  fs::create_directories(folder);
  fs::copy_file(PLUGIN, folder / "plugin.so");
  fs::copy_file(OTHER_PLUGIN, folder / "other.so");
  AppProcess app({PLAIN_HOST, folder / "plugin.so", folder / "other.so"}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("results -1 -1"), std::string::npos) << app.output();
  EXPECT_NE(app.output().find("the file changed while the application ran; start the "
                              "application again"),
            std::string::npos)
      << app.output();
  fs::remove_all(folder);
}

TEST(Plugin, SharesLibweftWithItsHost) {
  AppProcess app({SHARED_HOST, SHARED_PLUGIN}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("results 100 7"), std::string::npos) << app.output();
}

TEST(Plugin, ThatBringsLibweftRunsJobsInAHostWithoutWeft) {
  AppProcess app({PLAIN_HOST, SHARED_PLUGIN}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("results 7 9"), std::string::npos) << app.output();
}

TEST(Host, WithItsOwnCafRunsJobsOfLibweft) {
  for (const char* host : {CAF_FIRST_HOST, WEFT_FIRST_HOST}) {
    AppProcess app({host}, kVariables);
    EXPECT_EQ(app.wait(), 0) << app.output();
    EXPECT_NE(app.output().find("sum 100 answers 42 42 systems 2 0"), std::string::npos)
        << app.output();
  }
}

TEST(Host, CallsActorsAndWatchesAJobByItsOwnCaf) {
  fs::create_directories(kStorage);
  AppProcess app({CAF_APP}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  std::size_t at = 0;
  for (const char* said :
       {"number 5\n", "nothing\n", "number 4\n", "error endpoint_failed ", "not today",
        "error timeout ", "(request_timeout)\n", "error peer_lost ", "(request_receiver_down)\n",
        "started 2 workers\n", "lost worker 1\n", "recovered\n", "reported 20\n", "ended well\n"}) {
    at = app.output().find(said, at);
    ASSERT_NE(at, std::string::npos) << said << app.output();
  }
  // A checkpoint is complete at any time after its step, and steps are told at any time.
  for (const char* said : {"saved step 4\n", "saved step 8\n", "\nstep 10\n"}) {
    const std::size_t saved = app.output().find(said, app.output().find("started 2 workers\n"));
    EXPECT_LT(saved, at) << said << app.output();
  }
}

TEST(Controller, BalancesThePoleWhileItsPolicyIsKilled) {
  const testing::TemporaryFolder folder;
  AppProcess app({CONTROLLER, "1000", "3", folder.path()});
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("upright after 1000 steps, 0 brakes"), std::string::npos)
      << app.output();
  const std::size_t angle = app.output().find(" m and ");
  ASSERT_NE(angle, std::string::npos) << app.output();
  EXPECT_NEAR(std::stod(app.output().substr(angle + 7)), 0, 0.01);  // the angle in rad
  EXPECT_NE(app.output().find("steps meanwhile"), std::string::npos) << app.output();
  EXPECT_NE(app.output().find("restart 3"), std::string::npos) << app.output();
}

TEST(Host, FindsNoNamesOfCafInLibweft) {
  AppProcess names({"/usr/bin/nm", "-D", LIBWEFT});
  EXPECT_EQ(names.wait(), 0);
  EXPECT_NE(names.output().find("_ZN4weft"), std::string::npos);
  EXPECT_EQ(names.output().find("N3caf"), std::string::npos);
}

/// The dynamic linker resolves the plug-in's weft symbols to the host's weft, which is another
/// version.
TEST(Plugin, ThatWouldRunAnotherVersionOfWeftIsRefused) {
  AppProcess app({INTERPOSING_HOST, OPEN_PLUGIN}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("results -1 -1"), std::string::npos) << app.output();
  for (const char* words :
       {"this process has two versions of weft: ", "embed_open_plugin",
        "the weft of the executable, which has version 999", "--exclude-libs,ALL"}) {
    EXPECT_NE(app.output().find(words), std::string::npos) << words << ": " << app.output();
  }
}

TEST(Worker, OfALibraryIsMadeByWeftAddWorker) {
  AppProcess app({SPLIT_APP}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  EXPECT_NE(app.output().find("right"), std::string::npos) << app.output();
}

/// The worker lacks the loop, as if the linker had dropped an unused loop of an archive.
TEST(Worker, WithoutTheLoopIsRefusedWithWhatItHas) {
  AppProcess app({SPLIT_APP, WEFT_HOST}, kVariables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  for (const char* words : {"no loop \"split.loop\" in worker", "it has: host.own;",
                            "linkers drop it from a static library unless --whole-archive is "
                            "given"}) {
    EXPECT_NE(app.output().find(words), std::string::npos) << words << ": " << app.output();
  }
}

/// Runs the server example and sends requests to it.
class Server {
 public:
  Server() : app_({SERVER, "--port", "0", "--storage", kStorage}) {
    const std::string line = app_.wait_for_line("listening at ");
    port_ = std::stoi(line.substr(line.rfind(':') + 1));
    client_.emplace("127.0.0.1", port_);
  }
  nlohmann::json get(const std::string& path) { return parse(client_->Get(path)); }
  nlohmann::json post(const std::string& path, const std::string& body) {
    return parse(client_->Post(path, body, "application/json"));
  }
  nlohmann::json remove(const std::string& path) { return parse(client_->Delete(path)); }
  AppProcess& app() { return app_; }

 private:
  static nlohmann::json parse(const httplib::Result& answer) {
    return answer ? nlohmann::json::parse(answer->body) : nlohmann::json();
  }

  AppProcess app_;
  int port_ = 0;
  std::optional<httplib::Client> client_;
};

TEST(Server, TrainsSeveralJobsAtOnceAndAnswersMeanwhile) {
  Server server;
  std::vector<std::string> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(server.post("/jobs", R"({"steps": 300, "workers": 2})").at("job"));
  }
  EXPECT_EQ(server.get("/jobs").size(), 3U);
  for (const std::string& job : jobs) {
    wait_until([&] { return server.get("/jobs/" + job).at("phase") == "ended"; });
    const nlohmann::json shown = server.get("/jobs/" + job);
    EXPECT_TRUE(shown.at("ok")) << shown;
    EXPECT_NEAR(shown.at("latest").at("slope").get<double>(), 3.0, 0.5) << shown;
    testing::expect_nothing_left(job);
  }
}

TEST(Server, StopsAJobOnRequest) {
  Server server;
  const std::string job = server.post("/jobs", R"({"steps": 1000000})").at("job");
  wait_until([&] { return !server.get("/jobs/" + job).at("latest").is_null(); });
  server.remove("/jobs/" + job);
  wait_until([&] { return server.get("/jobs/" + job).at("phase") == "ended"; });
  EXPECT_EQ(server.get("/jobs/" + job).at("ended_by"), "stop");
}

TEST(Server, SaysWhatIsWrongWithARequest) {
  Server server;
  const std::string refusal = server.post("/jobs", R"({"stpes": 3})").at("error");
  EXPECT_NE(refusal.find("stpes"), std::string::npos) << refusal;
  EXPECT_FALSE(server.post("/jobs", "{").at("error").get<std::string>().empty());
  EXPECT_EQ(server.get("/jobs/123abc").at("error"), "no such job");
}

TEST(Server, EndsItsJobsCleanlyAtSigterm) {
  Server server;
  std::vector<std::string> jobs;
  for (int i = 0; i < 2; ++i) {
    jobs.push_back(server.post("/jobs", R"({"steps": 1000000})").at("job"));
    wait_until([&] { return !server.get("/jobs/" + jobs.back()).at("latest").is_null(); });
  }
  ::kill(server.app().pid(), SIGTERM);
  EXPECT_EQ(server.app().wait(), 0) << server.app().output();
  EXPECT_NE(server.app().output().find("all jobs have ended"), std::string::npos);
  for (const std::string& job : jobs) testing::expect_nothing_left(job);
}

/// A worker of a job is killed. The job continues, and the server still answers requests about it.
TEST(Server, AJobOutlivesItsWorkers) {
  Server server;
  const std::string job = server.post("/jobs", R"({"steps": 3000})").at("job");
  wait_until([&] { return !server.get("/jobs/" + job).at("latest").is_null(); });
  ::kill(testing::processes_of(job).front(), SIGKILL);
  wait_until([&] { return server.get("/jobs/" + job).at("phase") == "ended"; });
  const nlohmann::json shown = server.get("/jobs/" + job);
  EXPECT_TRUE(shown.at("ok")) << shown;
  EXPECT_EQ(shown.at("losses_survived"), 1);
}

}  // namespace
}  // namespace weft::hosts_test
