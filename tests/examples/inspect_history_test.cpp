/// Tests `weft inspect late`, `trace` and `logs` of running jobs and of jobs that have ended.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/support/app_process.hpp"
#include "tests/support/sweep.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace_grammar.hpp"
#include "transport/board/board.hpp"

namespace weft::inspect_history_test {
namespace {

using Json = nlohmann::json;
using testing::AppProcess;
using testing::TemporaryFolder;
using testing::TraceGrammar;
using testing::wait_until;

std::string output_of(const std::vector<std::string>& words, int code = 0) {
  AppProcess process(words);
  EXPECT_EQ(process.wait(), code) << process.output();
  return process.output();
}

Json trace_in(const std::string& file) { return Json::parse(std::ifstream(file)); }

int count(const Json& trace, const std::string& phase, const std::string& category) {
  int found = 0;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase && event.at("cat") == category) ++found;
  }
  return found;
}

void wait_for_step(const std::string& job, std::uint64_t step) {
  const Board board = Board::open(job, true);
  wait_until([&] {
    for (const ActorRow& row : board.readable_rows()) {
      if (row.kind == ActorKind::device && row.step < step) return false;
    }
    return true;
  });
}

/// Runs a job that doesn't end by itself. The destructor kills it and removes its shared memory.
class EndlessApp : public AppProcess {
 public:
  using AppProcess::AppProcess;
  ~EndlessApp() {
    const std::string job = id();
    ::kill(pid(), SIGKILL);
    wait();
    testing::sweep(job);
  }

  /// Returns the first word of "ID on 4 workers".
  std::string id() { return job().substr(0, job().find(' ')); }
};

/// Runs digits on 4 workers of 4 chips.
class DigitsThatGoOn : public EndlessApp {
 public:
  DigitsThatGoOn() : EndlessApp({DIGITS, "--epochs", "1000000"}) {}
};

/// A job in which worker 1 stops at the beginning of step 3, and all other workers wait for it.
class JobAtRest : public EndlessApp {
 public:
  JobAtRest() : EndlessApp({FAULT_APP, "--json", "{json}", "--mode", "mark"}) {
    const std::string job = id();
    wait_for_line("mark loop");
    wait_for_step(job, 2);
  }
};

TEST(InspectTrace, OfADigitsJobThatRuns) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/trace.json";
  DigitsThatGoOn app;
  const std::string job = app.id();
  wait_for_step(job, 40);
  const std::string text = output_of({WEFT, "inspect", "trace", job, "-o", file});
  EXPECT_NE(text.find(" flows whose other end is missing"), std::string::npos) << text;
  const Json trace = trace_in(file);
  EXPECT_EQ(TraceGrammar::fault_of(trace), "");
  EXPECT_GE(count(trace, "X", "step"), 16 * 40);
  EXPECT_GT(count(trace, "X", "op"), 0);
  EXPECT_GT(count(trace, "X", "collective"), 16 * 40);
  EXPECT_GT(count(trace, "s", "message flow"), 0);
  EXPECT_GT(count(trace, "s", "arrival"), 0);

  output_of({WEFT, "inspect", "trace", job, "-o", file, "--last", "0.01"});
  EXPECT_EQ(TraceGrammar::fault_of(trace_in(file)), "");
}

/// While a job is at rest, no message is in flight, and after so few steps no ring has wrapped
/// around.
TEST(InspectTrace, OfAJobAtRestHasBothEndsOfEveryFlow) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/trace.json";
  JobAtRest app;
  Json trace;
  // The last messages may still be in a mailbox.
  wait_until([&] {
    output_of({WEFT, "inspect", "trace", app.id(), "-o", file});
    trace = trace_in(file);
    return trace.at("otherData").at("dropped_flows") == 0;
  });
  EXPECT_EQ(TraceGrammar::fault_of(trace), "");
  EXPECT_EQ(trace.at("otherData").at("lost_begins"), 0);
  EXPECT_GT(count(trace, "s", "message flow"), 0);
}

TEST(InspectTrace, OfOneStepCompressed) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/trace.json.gz";
  JobAtRest app;
  output_of({WEFT, "inspect", "trace", app.id(), "-o", file, "--steps", "1"});
  const Json trace = Json::parse(output_of({"/bin/gzip", "-dc", file}));
  EXPECT_EQ(TraceGrammar::fault_of(trace), "");
  std::set<int> chips;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "step 1") chips.insert(event.at("tid").get<int>());
  }
  EXPECT_EQ(chips.size(), 6U);
}

TEST(InspectTrace, SaysWhatItCantWrite) {
  JobAtRest app;
  const std::string job = app.id();
  EXPECT_NE(output_of({WEFT, "inspect", "trace", job, "-o", "/no/such/folder/t.json"}, 3)
                .find("/no/such/folder/t.json"),
            std::string::npos);
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/trace.json";
  output_of({WEFT, "inspect", "trace", job, "-o", file, "--steps", "1000..2000"}, 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  AppProcess backwards({WEFT, "inspect", "trace", job, "-o", file, "--steps", "2..1"});
  EXPECT_NE(backwards.wait(), 0);
  EXPECT_NE(backwards.output().find("expected steps, such as"), std::string::npos);
  output_of({WEFT, "inspect", "trace", "no-such-job", "-o", file}, 2);
}

TEST(InspectLate, SumsUpEveryChip) {
  DigitsThatGoOn app;
  const std::string job = app.id();
  wait_for_step(job, 40);
  const Json late = Json::parse(output_of({WEFT, "inspect", "late", job, "--json"}));
  EXPECT_EQ(late.at("remark"), "");
  ASSERT_EQ(late.at("chips").size(), 16U);
  for (const Json& chip : late.at("chips")) EXPECT_GE(chip.at("collectives"), 40) << chip;
  ASSERT_FALSE(late.at("calls").empty());
  EXPECT_NE(late.at("calls")[0].at("place").get<std::string>().find("digits.cpp:"),
            std::string::npos);
  const std::string text = output_of({WEFT, "inspect", "late", job});
  EXPECT_NE(text.find("own above median"), std::string::npos) << text;
}

/// Runs fault_app and returns its run folder.
std::string run_in(const TemporaryFolder& runs, const std::string& mode, int code) {
  AppProcess app({FAULT_APP, "--json", "{json}", "--mode", mode, "--storage", runs.path()});
  EXPECT_EQ(app.wait(), code) << app.output();
  std::string run_dir;
  for (const auto& entry : std::filesystem::directory_iterator(runs.path())) {
    if (entry.is_directory() && !entry.is_symlink()) run_dir = entry.path().string();
  }
  return run_dir;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string line; std::getline(words, line);) lines.push_back(line);
  return lines;
}

TEST(InspectFolder, OfAJobThatHasFailed) {
  const TemporaryFolder runs;
  const TemporaryFolder folder;
  const std::string run_dir = run_in(runs, "throw", 1);
  const std::string file = folder.path() + "/trace.json";
  output_of({WEFT, "inspect", "trace", run_dir, "-o", file});
  const Json trace = trace_in(file);
  EXPECT_EQ(TraceGrammar::fault_of(trace), "");
  EXPECT_GE(count(trace, "X", "step"), 6);
  const Json late = Json::parse(output_of({WEFT, "inspect", "late", run_dir, "--json"}));
  EXPECT_EQ(late.at("chips").size(), 6U);
  for (const Json& chip : late.at("chips")) EXPECT_GT(chip.at("collectives"), 0) << chip;

  std::set<int> workers;
  for (const std::string& line :
       lines_of(output_of({WEFT, "inspect", "logs", run_dir, "--json"}))) {
    workers.insert(Json::parse(line).at("worker").get<int>());
  }
  EXPECT_EQ(workers, (std::set{-1, 0, 1, 2}));
  const std::string errors = output_of({WEFT, "inspect", "logs", run_dir, "--level", "error"});
  EXPECT_EQ(lines_of(errors).size(), 1U) << errors;
  EXPECT_NE(errors.find("boom"), std::string::npos) << errors;
  for (const std::string& line :
       lines_of(output_of({WEFT, "inspect", "logs", run_dir, "--worker", "1", "--worker", "2"}))) {
    EXPECT_TRUE(line.find("  worker 1 ") != line.npos || line.find("  worker 2 ") != line.npos)
        << line;
  }
  EXPECT_EQ(lines_of(output_of({WEFT, "inspect", "logs", run_dir, "--last", "2"})).size(), 2U);
  // The job has ended, so --since counts back from the job's last record.
  const std::string all = output_of({WEFT, "inspect", "logs", run_dir});
  EXPECT_EQ(output_of({WEFT, "inspect", "logs", run_dir, "--since", "100"}), all);
  const std::string end = output_of({WEFT, "inspect", "logs", run_dir, "--since", "0.000001"});
  EXPECT_GE(lines_of(end).size(), 1U);
  EXPECT_LT(lines_of(end).size(), lines_of(all).size());
}

/// The log files are gone; the job's black box has the same lines.
TEST(InspectFolder, LogsWithoutFiles) {
  const TemporaryFolder runs;
  const std::string run_dir = run_in(runs, "throw", 1);
  for (const char* file : {"trainer", "worker-0", "worker-1", "worker-2"}) {
    ASSERT_TRUE(std::filesystem::remove(fmt::format("{}/{}.log", run_dir, file)));
  }
  const std::string text = output_of({WEFT, "inspect", "logs", run_dir});
  EXPECT_NE(text.find("boom"), std::string::npos) << text;
  EXPECT_NE(text.find("joined"), std::string::npos) << text;
}

TEST(InspectFolder, OfAJobThatHasEndedWell) {
  const TemporaryFolder runs;
  const TemporaryFolder folder;
  const std::string run_dir = run_in(runs, "none", 0);
  EXPECT_NE(output_of({WEFT, "inspect", "late", run_dir}).find("ended well"), std::string::npos);
  output_of({WEFT, "inspect", "trace", run_dir, "-o", folder.path() + "/t.json"}, 3);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const std::string text = output_of({WEFT, "inspect", "logs", run_dir});
  EXPECT_NE(text.find("loop ended: well"), std::string::npos) << text;
}

TEST(InspectLogs, FollowAJobToItsEnd) {
  const TemporaryFolder runs;
  AppProcess app(
      {FAULT_APP, "--json", "{json}", "--mode", "mark", "--storage", runs.path(), "--grace", "0"});
  const std::string job = app.job();
  app.wait_for_line("mark loop");
  AppProcess logs({WEFT, "inspect", "logs", job, "--follow"});
  EXPECT_NE(logs.wait_for_line(" joined"), "");
  ::kill(app.pid(), SIGTERM);
  app.wait();
  EXPECT_EQ(logs.wait(), 0);
  EXPECT_NE(logs.output().find("lost the link to worker"), std::string::npos) << logs.output();
}

}  // namespace
}  // namespace weft::inspect_history_test
