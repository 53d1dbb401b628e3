/// Compares the JSON documents of `weft inspect` with their schemas in schema/inspect/.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "inspect/history/late.hpp"
#include "inspect/history/log_entry.hpp"
#include "inspect/systems/system_blocks.hpp"
#include "inspect/systems/system_views.hpp"
#include "inspect/systems/system_why.hpp"
#include "inspect/views/job_views.hpp"
#include "inspect/why/explain.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/inspect/described.hpp"
#include "tests/unit/inspect/history/made_events.hpp"
#include "tests/unit/inspect/systems/made_system.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/job_record.hpp"

namespace weft::schemas_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::expect_described;
using testing::JsonSchema;
using testing::kSchemas;
using testing::MadeJob;

/// Returns a job whose worker 1 is stopped, so that all other workers wait for it.
MadeJob stopped_job() {
  MadeJob job(2, 2);
  job.pass("a");
  job.wait_for(1, "b");
  job.process(1).state = 'T';
  job.look_at(1, {{.function = "main", .file = "app.cpp", .line = 3}});
  return job;
}

Snapshot failed_job() {
  Snapshot job = MadeJob(1, 1).snapshot;
  job.status = JobStatus::failed;
  job.control.reset();
  job.end = JobEnd{.job = job.job, .error = JobFailure{.code = "internal", .message = "boom"}};
  return job;
}

/// Returns a system in which an actor waits for another one.
testing::MadeSystem busy_system() {
  testing::MadeSystem system(2);
  const auto a = system.add("a", {"f"}, {0});
  const auto b = system.add("b", {"g"}, {1, 1});
  system.run(a, 0, 0, 20);
  system.run(b, 0, 0, 10);
  system.wait_for(a, b, 0);
  system.wait_for(a, b + 1, 0);
  system.actor(b + 1).position.process = {};  // the actor isn't in a process
  const std::size_t job = system.add_job(1, {1});
  system.wait_for_rows(job, 3);
  system.wait_for_job(a, job, true, 2);
  return system;
}

TEST(InspectSchemas, DescribeSystems) {
  const SystemSnapshot system = busy_system().snapshot;
  expect_described(system_json(system));
  expect_described(to_json(explain_system(system, system)));
  expect_described(system_blocks_json(
      system, {.processes = {{.slot = 1, .heap_bytes = 4096}},
               .held = {{.owner = 1, .holders = {0, 1}, .block_bytes = 4096, .blocks = {3}}},
               .remarks = {"a remark"}}));
}

TEST(InspectSchemas, DescribePs) {
  const Json systems = systems_json(std::vector{busy_system().snapshot});
  ASSERT_EQ(systems.size(), 1);
  expect_described(ps_json(std::vector{stopped_job().snapshot, failed_job()}, systems));
}

TEST(InspectSchemas, DescribeShow) {
  expect_described(show_json(stopped_job().snapshot));
  expect_described(show_json(failed_job()));
}

TEST(InspectSchemas, DescribeActorsAndMesh) {
  expect_described(actors_json(stopped_job().snapshot));
  expect_described(mesh_json(stopped_job().snapshot));
}

TEST(InspectSchemas, DescribeWhy) {
  const Snapshot stopped = stopped_job().snapshot;
  const Why why = explain(stopped, stopped);
  ASSERT_FALSE(why.roots.empty());
  ASSERT_FALSE(why.waits.empty());
  expect_described(to_json(why));
  const Snapshot failed = failed_job();
  expect_described(to_json(explain(failed, failed)));
}

TEST(InspectSchemas, DescribeLate) {
  Snapshot job = testing::step_of_two_chips();
  job.waits = {{.chip = 0,
                .calls = {{.text = "a", .count = 1, .waits = {{0, 1}, {256, 0}}}},
                .waited_for_ns = {0, 1000}},
               {.chip = 1,
                .calls = {{.text = "a", .count = 1, .times_last = 1, .waits = {{0, 0}, {256, 1}}}},
                .waited_for_ns = {0, 0}}};
  expect_described(late_json(job));
  expect_described(late_json(MadeJob(1, 1).snapshot));
}

TEST(InspectSchemas, DescribeLogs) {
  expect_described(log_json({.unix_ns = 1, .worker = 2, .logger = "weft.worker", .text = "text"}));
  expect_described(log_json({.level = 6, .is_event = true}));
}

TEST(InspectSchemas, DescribeTheSummaryOfAJobThatEndedWell) {
  const testing::TemporaryFolder run;
  const std::string job = testing::unique_job();
  {
    Board board =
        Board::create({.job = job, .name = "digits", .run_dir = run.path(), .num_chips = 1});
    BlackBoxWriter box = BlackBoxWriter::create({.job = job, .num_workers = 1, .num_chips = 1});
    box.chip(0, 0).put(EventKind::step, {.number = 1});
    board.set_status(JobStatus::succeeded);
    keep_record(job);
  }
  JobMemory::remove(job);
  std::ifstream file(run.path() + "/summary.json");
  expect_described({std::istreambuf_iterator<char>(file), {}});
}

/// Each schema has the name of its documents, and a description.
TEST(InspectSchemas, AreNamedAsTheirDocuments) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kSchemas)) {
    const std::string name = entry.path().stem().string();
    const JsonSchema schema(name);
    const std::string id = "weft." + name + (name == "why" ? "/2" : "/1");
    EXPECT_EQ(schema.json().at("title"), id);
    EXPECT_EQ(schema.json().at("properties").at("schema").at("enum")[0], id);
    EXPECT_FALSE(schema.json().at("description").get<std::string>().empty());
    names.insert(name);
  }
  for (const char* name :
       {"ps", "show", "actors", "mesh", "why", "late", "logs", "summary", "system", "blocks"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

}  // namespace
}  // namespace weft::schemas_test
