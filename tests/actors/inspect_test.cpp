/// Tests `weft inspect` on actor systems that live, hang or are dead.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_grammar.hpp"
#include "transport/lanes/peer_table.hpp"

namespace weft::inspect_test {
namespace {

using testing::AppProcess;
using testing::wait_until;
using Json = nlohmann::json;

std::string output_of(const std::vector<std::string>& words, int code = 0) {
  std::vector<std::string> command{WEFT, "inspect"};
  command.insert(command.end(), words.begin(), words.end());
  // LeakSanitizer stops the threads at exit, and crashes at times in a program that traces others.
  AppProcess process(command, {"ASAN_OPTIONS=detect_leaks=0"});
  EXPECT_EQ(process.wait(), code) << process.output();
  return process.output();
}

Json json_of(std::vector<std::string> words, int code = 0) {
  words.emplace_back("--json");
  return Json::parse(output_of(words, code));
}

void expect_in(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

/// Runs inspected_app in a control root of its own, so that no other system removes its memory when
/// it is dead. The destructor removes the memory.
class Inspected {
 public:
  explicit Inspected(const std::string& what)
      : name_("inspected-" + testing::unique_job()),
        app_({INSPECTED_APP, name_, what}, {"XDG_RUNTIME_DIR=" + root_.path()}),
        pid_(app_.pid()),
        id_(app_.wait_for_line("the id ").substr(7)) {}
  ~Inspected() {
    const Json jobs = tree().at("jobs");
    if (app_.pid() > 0) kill();
    PeerTable::remove(id_);
    for (const Json& job : jobs) testing::sweep(job.at("job"));
  }
  Inspected(const Inspected&) = delete;
  Inspected& operator=(const Inspected&) = delete;

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  void kill() {
    ::kill(pid_, SIGKILL);
    app_.wait();
  }

  Json tree() const { return json_of({"actors", id_, "--tree"}); }
  Json actor(const std::string& mesh, std::size_t index) const {
    const Json system = tree();
    for (const Json& each : system.at("meshes")) {
      if (each.at("name") == mesh) return each.at("actors").at(index);
    }
    ADD_FAILURE() << mesh << "\n" << system.dump(1);
    return {};
  }

 private:
  testing::TemporaryFolder root_;
  std::string name_;
  AppProcess app_;
  pid_t pid_;
  std::string id_;
};

TEST(InspectOfActors, ListsSystemsBesideJobs) {
  const Inspected system("keeps");
  const Json listed = json_of({"ps"});
  const auto is_it = [&](const Json& each) { return each.at("system") == system.id(); };
  const auto found = std::ranges::find_if(listed.at("systems"), is_it);
  ASSERT_NE(found, listed.at("systems").end()) << listed.dump(1);
  EXPECT_EQ(found->at("name"), system.name());
  EXPECT_EQ(found->at("state"), "running");
  EXPECT_EQ(found->at("pid"), system.pid());
  EXPECT_EQ(found->at("processes"), 3);
  EXPECT_EQ(found->at("meshes"), 2);
  EXPECT_EQ(found->at("actors"), 4);
  expect_in(output_of({}), {system.id() + "  " + system.name() + "  running"});
}

TEST(InspectOfActors, ShowsRatesOnTop) {
  const Inspected system("keeps");
  const std::string top = output_of({"top", system.name()});
  expect_in(top, {system.name() + "  " + system.id() + "  running", "4 actors", "begun/s",
                  "keeps[2]", "idle"});
}

TEST(InspectOfActors, ShowsMeshesAndActors) {
  const Inspected system("keeps");
  const std::string tree = output_of({"actors", system.name(), "--tree"});
  expect_in(tree, {fmt::format("{}  {}  running  pid {}  3 processes\n", system.name(), system.id(),
                               system.pid()),
                   "+ keeps  inspected.keeps x 3  restart actor, 0 of 5 used\n",
                   "+ asks  inspected.asks x 1  restart actor, 0 of 0 used\n",
                   fmt::format("  + [0] pid {}  idle  mailbox 0/64\n", system.pid())});
  EXPECT_EQ(output_of({system.id()}), tree) << "as without a subcommand";
  const Json keeper = system.actor("keeps", 2);
  EXPECT_EQ(keeper.at("phase"), "alive");
  EXPECT_EQ(keeper.at("incarnation"), 1);
  EXPECT_EQ(keeper.at("begun"), 2) << "the constructor and keep()";
  expect_in(output_of({"actors", system.id().substr(0, 20)}), {"keeps[2]", "asks[0]", "idle"});
  expect_in(output_of({"why", system.id()}), {"well", "4 actors in 2 meshes"});
}

/// Returns whether the loop of the system's job has waited for a while for a row of its second
/// step.
bool waits_for_rows(const Json& tree) {
  const Json& job = tree.at("jobs").at(0);
  return job.at("step") == 1 && !job.at("waits").empty() &&
         job.at("waits")[0].at("rows") == "3 of 4 rows" && job.at("waits")[0].at("for_s") > 0.1;
}

TEST(InspectOfActors, ShowsTheJobWithWhichAMeshEnds) {
  const Inspected system("learns");
  wait_until([&] { return waits_for_rows(system.tree()); });
  const Json tree = system.tree();
  ASSERT_EQ(tree.at("jobs").size(), 1) << tree.dump(1);
  const std::string job = tree.at("jobs")[0].at("job");
  EXPECT_EQ(tree.at("jobs")[0].at("name"), system.name() + "-job");
  EXPECT_EQ(tree.at("meshes").back().at("job"), job);
  expect_in(output_of({"actors", system.id(), "--tree"}),
            {fmt::format("+ job {}-job  ", system.name()),
             "  step 1  worker 0's loader has 3 of 4 rows in \"steps\"\n"});
  expect_in(output_of({"why", system.id(), "--patience", "0.001"}, 10),
            {"BUSY     rollouts[0, 1] (pid ", "without a function to run, while job ",
             "-job for rows of \"steps\" (3 of 4 rows of step 1)"});
  const Json rollout = system.actor("rollouts", 0);
  EXPECT_EQ(rollout.at("versions").at(0).at("name"), "policy");
  EXPECT_LE(rollout.at("versions")[0].at("version"), 1);
  expect_in(output_of({"actors", system.id(), "--tree"}), {"mailbox 0/64  v"});
  expect_in(output_of({"why", job, "--patience", "0.001"}, 10),
            {"waits for item 7 of experience(steps)", "3 of 4 rows of step 1 have come",
             fmt::format("pid {}, silent for ", system.pid())});
}

TEST(InspectOfActors, NamesACircleOfALoopAndTheWriterOfItsRows) {
  const Inspected system("follows");
  const auto waits_for_version = [&] {
    const Json actor = system.actor("rollouts", 0);
    return !actor.at("job_wait").is_null() && actor.at("runs").at("for_s") > 0.1;
  };
  wait_until([&] { return waits_for_version() && waits_for_rows(system.tree()); });
  const Json actor = system.actor("rollouts", 0);
  EXPECT_EQ(actor.at("job_wait"), Json({{"writes", false},
                                        {"job", system.tree().at("jobs")[0].at("job")},
                                        {"name", "policy"}}));
  expect_in(actor.at("doing"), {"wait_for_version() for ", ", waits for a version of \"policy\""});
  expect_in(output_of({"why", system.id(), "--patience", "0.001"}, 10),
            {"DEADLOCK", "a circle of waits: job ", "-job > rollouts[0] > job "});
}

TEST(InspectOfActors, ShowsWhoHoldsWhichBlocks) {
  const Inspected system("keeps");
  const Json blocks = json_of({"blocks", system.id()});
  ASSERT_EQ(blocks.at("held").size(), 1) << blocks.dump(1);
  const Json& held = blocks.at("held")[0];
  EXPECT_EQ(held.at("owner"), 0);
  // The sender releases a block that was taken only when it sends the next message.
  const Json holders = held.at("holders");
  EXPECT_EQ(holders.back(), system.actor("keeps", 2).at("process")) << held.dump();
  EXPECT_EQ(held.at("blocks").size(), 1);
  EXPECT_GE(held.at("block_bytes"), 1 << 20);
  expect_in(output_of({"blocks", system.id()}), {"held by", "the program", "1.0 MiB"});
}

TEST(InspectOfActors, SaysWhoseFunctionDoesntReturn) {
  const Inspected system("endless");
  wait_until([&] {
    return !system.actor("keeps", 1).at("runs").is_null() &&
           !system.actor("asks", 0).at("awaits").is_null();
  });
  const Json busy = system.actor("keeps", 1);
  EXPECT_EQ(busy.at("runs").at("function"), "endless");
  EXPECT_EQ(busy.at("runs").at("kind"), "call");
  EXPECT_EQ(busy.at("runs").at("caller"), 0);
  EXPECT_TRUE(busy.at("runs").at("awaited"));
  EXPECT_EQ(busy.at("unread"), 1);
  EXPECT_EQ(busy.at("box"), 1);
  EXPECT_EQ(system.actor("asks", 0).at("awaits"),
            Json({{"actor", "keeps[1]"}, {"endpoint", "quick"}}));

  expect_in(output_of({"why", system.id(), "--patience", "1000"}),
            {"waits", "keeps[1]", "no hang yet"});
  const std::vector<std::string> why{"why", system.id(), "--patience", "0.001"};
  const std::string text = output_of(why, 10);
  expect_in(text, {"BUSY", "keeps[1] (pid ", "in endless() for ", "asks[0] in keeps.quick",
                   "the program in keeps.endless", "fix:", "kill -9 "});
  const bool lacks_stacks =
      text.find("\n  stack ") != std::string::npos;  // the system forbids them
  // The builds with sanitizers are clang's, for which stacks have functions without lines.
#ifdef __clang__
  const std::string at = "  at     Keeps::endless()";
#else
  const std::string at = "  at     Keeps::endless(...) inspected_app.cpp:";
#endif
  if (!lacks_stacks) expect_in(text, {at});
  const Json answer = json_of(why, 10);
  EXPECT_EQ(answer.at("verdict"), "hung");
  ASSERT_EQ(answer.at("roots").size(), 1) << answer.dump(1);
  EXPECT_EQ(answer.at("roots")[0].at("pid"), busy.at("pid"));
}

TEST(InspectOfActors, SaysWhichProcessIsStopped) {
  const Inspected system("endless");
  wait_until([&] { return !system.actor("asks", 0).at("awaits").is_null(); });
  const pid_t pid = system.actor("keeps", 1).at("pid").get<pid_t>();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  wait_until([&] {
    const std::string doing = system.actor("keeps", 1).at("doing");
    return doing.starts_with("stopped in endless()");
  });
  expect_in(output_of({"why", system.id()}, 10),
            {"STOPPED", fmt::format("(pid {}) is stopped", pid), "asks[0] in keeps.quick",
             fmt::format("kill -CONT {}", pid)});
}

TEST(InspectOfActors, NamesACircleOfPipes) {
  const Inspected system("pipes");
  const auto waits_for = [&](std::size_t writer, const std::string& other) {
    const Json pipe = system.actor("writes", writer).at("pipe");
    return !pipe.is_null() && pipe.at("writes") == true && pipe.at("other") == other;
  };
  wait_until([&] { return waits_for(0, "writes[1]") && waits_for(1, "writes[0]"); });
  expect_in(output_of({"why", system.id(), "--patience", "0.001"}, 10),
            {"DEADLOCK", "a circle of waits: writes[0].start > writes[1].start > writes[0], for",
             "writes[0] waits for room in a pipe that writes[1] reads", "try_write()"});
  expect_in(output_of({"actors", system.id()}), {"waits for room in a pipe that writes[0] reads"});
}

TEST(InspectOfActors, SaysWhyAMeshHasFailed) {
  const Inspected system("fails");
  expect_in(output_of({"why", system.id()}, 10),
            {"FAILED   mesh failing ended", "failing[0].fail: told to fail"});
  expect_in(output_of({"actors", system.id(), "--tree"}),
            {"+ failing  inspected.keeps x 1", "failed: failing[0].fail: told to fail"});
}

TEST(InspectOfActors, ShowsAProgramThatWasKilled) {
  Inspected system("endless");
  wait_until([&] { return !system.actor("asks", 0).at("awaits").is_null(); });
  system.kill();
  const Json shown = json_of({"actors", system.id()});
  EXPECT_EQ(shown.at("state"), "dead");
  EXPECT_EQ(shown.at("meshes").size(), 2);
  expect_in(output_of({"why", system.id()}, 10),
            {"LOST", fmt::format("the program (pid {}) is gone", system.pid()),
             "keeps[1] in endless()", "asks[0] in ask()"});
  expect_in(output_of({"blocks", system.id()}), {"the program"});
}

TEST(InspectOfActors, WritesAPage) {
  const Inspected system("keeps");
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/page.html";
  output_of({"serve", system.id(), "--export", file});
  std::ostringstream page;
  page << std::ifstream(file).rdbuf();
  expect_in(page.str(), {system.name(), "keeps[2]", "asks[0]", "nobody waits for a function"});
}

/// Writes the trace of a system, and returns it after a check of its grammar.
Json trace_of(const std::string& system, const std::vector<std::string>& options = {}) {
  const testing::TemporaryFolder folder;
  std::vector<std::string> words{"trace", system, "-o", folder.path() + "/trace.json"};
  words.insert(words.end(), options.begin(), options.end());
  output_of(words);
  Json trace = Json::parse(std::ifstream(folder.path() + "/trace.json"));
  EXPECT_EQ(testing::TraceGrammar::fault_of(trace), "") << trace.dump(1);
  return trace;
}

/// Returns the names of an event's process and track, such as "the program: a[0]".
std::string track_of(const Json& trace, const Json& event) {
  std::string process;
  std::string thread;
  for (const Json& each : trace.at("traceEvents")) {
    if (each.at("ph") != "M" || each.at("pid") != event.at("pid")) continue;
    const std::string name = each.at("args").value("name", "");
    if (each.at("name") == "process_name") process = name.substr(0, name.find(" (pid"));
    if (each.at("name") == "thread_name" && each.at("tid") == event.at("tid")) thread = name;
  }
  return process + ": " + thread;
}

/// Returns the arrows of one kind as "FROM > TO NAME", sorted.
std::vector<std::string> arrows_of(const Json& trace, const std::string& category) {
  std::map<int, std::string> from;
  std::vector<std::string> arrows;
  for (const Json& each : trace.at("traceEvents")) {
    if (each.value("cat", "") != category) continue;
    const std::string track = track_of(trace, each);
    if (each.at("ph") == "s") from[each.at("id")] = track;
    if (each.at("ph") == "f") {
      arrows.push_back(from.at(each.at("id")) + " > " + track + " " +
                       each.at("name").get<std::string>());
    }
  }
  std::ranges::sort(arrows);
  return arrows;
}

void expect_trace_of_calls(const Json& trace) {
  EXPECT_EQ(arrows_of(trace, "call flow"),
            (std::vector<std::string>{"the program: asks[0] calls > process 1: keeps[0] quick",
                                      "the program: calls > process 1: keeps[0] keep",
                                      "the program: calls > process 1: keeps[0] later",
                                      "the program: calls > process 1: keeps[0] quick",
                                      "the program: calls > process 1: keeps[1] endless",
                                      "the program: calls > the program: asks[0] ask"}));
  EXPECT_EQ(arrows_of(trace, "reply flow"),
            (std::vector<std::string>{"process 1: keeps[0] > the program: asks[0] calls quick",
                                      "process 1: keeps[0] > the program: calls later",
                                      "process 1: keeps[0] > the program: calls quick",
                                      "the program: asks[0] > the program: calls ask"}));
  int unfinished = 0;
  bool has_reply = false;
  for (const Json& each : trace.at("traceEvents")) {
    if (each.at("ph") != "X") continue;
    if (each.at("cat") == "reply") has_reply = each.at("name") == "keeps[0].later";
    if (!each.at("args").value("unfinished", false)) continue;
    ++unfinished;
    EXPECT_TRUE(each.at("name") == "endless" || each.at("name") == "keeps[1].endless") << each;
  }
  EXPECT_EQ(unfinished, 2) << "the call, and its function";
  EXPECT_TRUE(has_reply);
}

TEST(InspectOfActors, TracesCallsWhileTheSystemLivesHangsAndIsDead) {
  Inspected system("calls");
  wait_until([&] { return !system.actor("keeps", 1).at("runs").is_null(); });
  const Json live = trace_of(system.name());
  expect_trace_of_calls(live);
  EXPECT_EQ(live.at("otherData").at("system"), system.id());
  EXPECT_EQ(live.at("otherData").at("dropped_flows"), 0);
  const pid_t pid = system.actor("keeps", 1).at("pid").get<pid_t>();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  expect_trace_of_calls(trace_of(system.id()));
  system.kill();
  expect_trace_of_calls(trace_of(system.id()));
  EXPECT_LT(trace_of(system.id(), {"--last", "1e-9"}).at("traceEvents").size(),
            live.at("traceEvents").size());
  expect_in(output_of({"trace", system.id(), "-o", "trace.json", "--steps", "1"}, 1),
            {"--steps is for jobs"});
}

TEST(InspectOfActors, TracesTheCallsOfAProcessThatHasDied) {
  const Inspected system("again");
  const Json trace = trace_of(system.id());
  const std::vector<std::string> arrows = arrows_of(trace, "reply flow");
  const auto count_of = [&](const std::string& text) {
    return std::ranges::count_if(
        arrows, [&](const std::string& each) { return each.find(text) != std::string::npos; });
  };
  EXPECT_EQ(count_of("keeps[0] > the program: calls quick"), 2) << trace.dump(1);
}

TEST(InspectOfActors, SaysThatThereIsNoSuchSystem) {
  expect_in(output_of({"blocks", "nosuchsystem"}, 2), {"there is no actor system"});
}

}  // namespace
}  // namespace weft::inspect_test
