/// Tests what `weft inspect serve` answers, and to which clients.

#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <list>
#include <regex>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/board/board.hpp"
#include "transport/job/job_memory.hpp"

namespace weft::serve_test {
namespace {

using testing::AppProcess;
using testing::ChildProcess;
using testing::wait_until;

/// Runs `weft inspect serve`, and has an HTTP client that knows the server's token.
class Server {
 public:
  explicit Server(const std::string& job) : app_({WEFT, "inspect", "serve", job}) {
    const std::string line = app_.wait_for_line("http://");
    std::smatch parts;
    if (!std::regex_match(line, parts, std::regex(R"(http://127\.0\.0\.1:(\d+)/\?token=(\w+))"))) {
      throw std::runtime_error("no URL: " + app_.output());
    }
    port_ = std::stoi(parts[1]);
    token_ = parts[2];
  }

  int port() const { return port_; }
  const std::string& token() const { return token_; }
  AppProcess& app() { return app_; }
  httplib::Client client() const { return httplib::Client("127.0.0.1", port_); }
  httplib::Headers cookie() const {
    return {{"Cookie", "other=1; weft_" + std::to_string(port_) + "=" + token_}};
  }
  httplib::Result get(const std::string& path) const {
    auto one = client();
    return one.Get(path.c_str(), cookie());
  }

 private:
  AppProcess app_;
  int port_ = 0;
  std::string token_;
};

class ServeTest : public ::testing::Test {
 protected:
  ServeTest() {
    board->worker(0).open(ActorKind::worker, 0, -1, worker.pid());
    board->worker(0).state(ActorState::running);
    board->worker(0).step(7);
    board->set_status(JobStatus::running);
  }
  ~ServeTest() override { JobMemory::remove(job); }

  const std::string job = testing::unique_job();
  ChildProcess worker{[] {
    for (;;) ::pause();
  }};
  std::optional<Board> board = Board::create({.job = job,
                                              .name = "made",
                                              .run_dir = "/nowhere",
                                              .mesh_shape = {2},
                                              .axis_names = {"data"},
                                              .num_workers = 1,
                                              .num_chips = 2,
                                              .trainer_pid = ::getpid()});
};

const std::vector<const char*> kPaths{"/",         "/page.css", "/page.js", "/events",
                                      "/timeline", "/curves",   "/metrics", "/no_such_page"};

TEST_F(ServeTest, TheTokenInTheUrlBecomesACookie) {
  const Server server(job);
  auto client = server.client();
  const auto first = client.Get(("/?token=" + server.token()).c_str());
  ASSERT_TRUE(first);
  EXPECT_EQ(first->status, 302);
  EXPECT_EQ(first->get_header_value("Location"), "/");
  const std::string cookie = first->get_header_value("Set-Cookie");
  EXPECT_NE(cookie.find("HttpOnly"), std::string::npos) << cookie;
  EXPECT_NE(cookie.find("SameSite=Strict"), std::string::npos) << cookie;
  const auto page = client.Get("/", {{"Cookie", cookie.substr(0, cookie.find(';'))}});
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_NE(page->body.find("<!doctype html>"), std::string::npos);
  EXPECT_TRUE(page->get_header_value("Content-Security-Policy").starts_with("default-src 'none'"));
  EXPECT_EQ(page->get_header_value("Cache-Control"), "no-store");
}

TEST_F(ServeTest, WithoutTheTokenThereIsNothing) {
  const Server server(job);
  auto client = server.client();
  const std::string wrong(server.token().size(), '0');
  for (const char* path : kPaths) {
    const auto none = client.Get(path);
    ASSERT_TRUE(none) << path;
    EXPECT_EQ(none->status, 401) << path;
    EXPECT_NE(none->body.find("open the URL that"), std::string::npos) << path;
    const auto other =
        client.Get(path, {{"Cookie", "weft_" + std::to_string(server.port()) + "=" + wrong}});
    ASSERT_TRUE(other) << path;
    EXPECT_EQ(other->status, 401) << path;
  }
  const auto guess = client.Get(("/?token=" + wrong).c_str());
  ASSERT_TRUE(guess);
  EXPECT_EQ(guess->status, 403);
  EXPECT_FALSE(guess->has_header("Set-Cookie"));
}

TEST_F(ServeTest, PrometheusGivesTheTokenInAHeader) {
  const Server server(job);
  auto client = server.client();
  const auto answer = client.Get("/metrics", {{"Authorization", "Bearer " + server.token()}});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(answer->body.find("\nweft_steps_total 7\n"), std::string::npos) << answer->body;
}

TEST_F(ServeTest, RequestsForAnotherHostAreRefused) {
  const Server server(job);
  auto client = server.client();
  for (const std::string& host :
       {std::string("example.org"), "example.org:" + std::to_string(server.port()),
        std::string("127.0.0.1"), "127.0.0.1:1" + std::to_string(server.port())}) {
    httplib::Headers headers = server.cookie();
    headers.emplace("Host", host);
    const auto answer = client.Get("/", headers);
    ASSERT_TRUE(answer) << host;
    EXPECT_EQ(answer->status, 421) << host;
  }
  httplib::Headers headers = server.cookie();
  headers.emplace("Host", "localhost:" + std::to_string(server.port()));
  EXPECT_EQ(client.Get("/", headers)->status, 200);
}

TEST_F(ServeTest, OnlyGetIsAnswered) {
  const Server server(job);
  auto client = server.client();
  const auto refused = [](const httplib::Result& answer) {
    return answer && answer->status == 405 && answer->get_header_value("Allow") == "GET";
  };
  EXPECT_TRUE(refused(client.Post("/", server.cookie(), "", "text/plain")));
  EXPECT_TRUE(refused(client.Put("/metrics", server.cookie(), "x", "text/plain")));
  EXPECT_TRUE(refused(client.Delete("/", server.cookie())));
  EXPECT_TRUE(refused(client.Head("/", server.cookie())));
  EXPECT_TRUE(refused(client.Options("/", server.cookie())));
}

TEST_F(ServeTest, PartsOfThePageAreThere) {
  const Server server(job);
  EXPECT_EQ(server.get("/page.css")->get_header_value("Content-Type"), "text/css; charset=utf-8");
  EXPECT_EQ(server.get("/page.js")->get_header_value("Content-Type"),
            "text/javascript; charset=utf-8");
  EXPECT_EQ(nlohmann::json::parse(server.get("/timeline?after=-5")->body).at("schema"),
            "weft.timeline/1");
  EXPECT_EQ(nlohmann::json::parse(server.get("/timeline?after=x")->body).at("schema"),
            "weft.timeline/1");
  EXPECT_EQ(nlohmann::json::parse(server.get("/curves")->body).at("schema"), "weft.curves/1");
  EXPECT_EQ(server.get("/no_such_page")->status, 404);
}

/// Reads the messages of /events in a thread, until this object is destroyed or `wants_more`
/// returns false.
class Reader {
 public:
  using WantsMore = std::function<bool(const nlohmann::json&)>;

  Reader(const Server& server, WantsMore wants_more)
      : client_(server.client()), thread_([this, wants_more, headers = server.cookie()] {
          std::string text;
          const auto answer = client_.Get(
              "/events", headers,
              [&](const httplib::Response& response) {
                status_ = response.status;
                return true;
              },
              [&](const char* data, std::size_t size) {
                text.append(data, size);
                for (std::size_t end; (end = text.find("\n\n")) != text.npos;) {
                  const std::string message = text.substr(0, end);
                  text.erase(0, end + 2);
                  if (!message.starts_with("data: ")) continue;
                  if (!wants_more(nlohmann::json::parse(message.substr(6)))) return false;
                }
                return !ends_;
              });
          done_ = true;
        }) {}
  ~Reader() {
    ends_ = true;
    thread_.join();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  int status() const { return status_; }  ///< 0 until the answer comes
  bool done() const { return done_; }

 private:
  httplib::Client client_;
  std::atomic<int> status_{0};
  std::atomic<bool> done_{false};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST_F(ServeTest, EventsShowAStoppedWorker) {
  const Server server(job);
  std::atomic<bool> runs{false}, stopped{false};
  const Reader reader(server, [&](const nlohmann::json& message) {
    if (!message.contains("state")) return true;
    for (const auto& actor : message["state"].at("actors")) {
      if (actor.at("name") != "worker 0") continue;
      (actor.at("state") == "stopped" ? stopped : runs) = true;
    }
    return !stopped;
  });
  wait_until([&] { return runs.load(); });
  ::kill(worker.pid(), SIGSTOP);
  wait_until([&] { return stopped.load(); });
}

/// A state is sent again only after a change. All other messages only show that the server lives.
TEST_F(ServeTest, AStateIsSentOnceWhileItStays) {
  const Server server(job);
  board->worker(0).state(ActorState::idle);
  std::atomic<int> states{0}, messages{0};
  const Reader reader(server, [&](const nlohmann::json& message) {
    // The first message may have an earlier state, and the verdict on a job at rest changes after a
    // while.
    if (message.contains("state") && message["state"].at("why").at("verdict") == "well") ++states;
    EXPECT_TRUE(message.contains("at"));
    return ++messages < 8;
  });
  wait_until([&] { return reader.done(); });
  EXPECT_LE(states, 2);
}

TEST_F(ServeTest, ANinthReaderOfEventsIsToldSoAndAGoneOneMakesRoom) {
  const Server server(job);
  const auto all = [](const nlohmann::json&) { return true; };
  std::list<Reader> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back(server, all);
    wait_until([&] { return readers.back().status() != 0; });
    EXPECT_EQ(readers.back().status(), 200);
  }
  EXPECT_EQ(server.get("/events")->status, 503);
  EXPECT_EQ(server.get("/metrics")->status, 200);
  readers.pop_front();
  std::list<Reader> later;
  wait_until([&] {
    later.emplace_back(server, all);
    wait_until([&] { return later.back().status() != 0; });
    return later.back().status() == 200;
  });
}

TEST_F(ServeTest, GoesOnWithWhatItSawLastWhenTheJobHasGone) {
  const Server server(job);
  board->set_status(JobStatus::succeeded);
  board.reset();
  JobMemory::remove(job);
  std::atomic<bool> over{false};
  const Reader reader(server, [&](const nlohmann::json& message) {
    over = message.contains("state") && message["state"].at("over") == true &&
           message["state"].at("step") == 7;
    return !over;
  });
  wait_until([&] { return over.load(); });
  EXPECT_EQ(server.get("/")->status, 200);
}

TEST_F(ServeTest, ASignalEndsItWithReadersToo) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Server server(job);
    const Reader reader(server, [](const nlohmann::json&) { return true; });
    wait_until([&] { return reader.status() != 0; });
    ::kill(server.app().pid(), signal);
    EXPECT_EQ(server.app().wait(), 0) << server.app().output();
  }
}

TEST_F(ServeTest, APortThatIsTakenIsSaid) {
  const Server server(job);
  AppProcess other({WEFT, "inspect", "serve", job, "--port", std::to_string(server.port())});
  EXPECT_EQ(other.wait(), 1);
  EXPECT_NE(other.output().find("--port 0"), std::string::npos) << other.output();
}

TEST_F(ServeTest, ExportsOneFileThatNeedsNothingElse) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/job.html";
  AppProcess app({WEFT, "inspect", "serve", job, "--export", file});
  EXPECT_EQ(app.wait(), 0) << app.output();
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  const std::string page = text.str();
  EXPECT_NE(page.find(job), std::string::npos);
  EXPECT_FALSE(std::regex_search(page, std::regex(R"((src|href)\s*=)")));
  AppProcess nowhere({WEFT, "inspect", "serve", job, "--export", folder.path() + "/no/job.html"});
  EXPECT_EQ(nowhere.wait(), 3);
  EXPECT_NE(nowhere.output().find("can't create"), std::string::npos) << nowhere.output();
}

TEST(ServeFolder, ShowsHowAJobEnded) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() + "/result.json")
      << R"({"job": "ab", "name": "digits", "ended_by": "failure", "num_workers": 3,
             "failures": [], "error": {"code": "peer_lost", "message": "gone", "worker": 1,
             "pid": 5, "signal": 9, "exit_code": 0, "step": 3, "collective": ""}})";
  const Server server(folder.path());
  nlohmann::json state;
  std::atomic<bool> has_state{false};
  const Reader reader(server, [&](const nlohmann::json& message) {
    if (!message.contains("state")) return true;
    state = message["state"];
    has_state = true;
    return false;
  });
  wait_until([&] { return has_state.load(); });
  EXPECT_EQ(state.at("state"), "failed");
  EXPECT_EQ(state.at("why").at("roots")[0].at("class"), "KILLED");
  AppProcess none({WEFT, "inspect", "serve", folder.path() + "/no"});
  EXPECT_EQ(none.wait(), 2) << none.output();
}

}  // namespace
}  // namespace weft::serve_test
