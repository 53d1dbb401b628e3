#include "inspect/programs/job_programs.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "chips/cpu/cpu_target.hpp"
#include "inspect/programs/chip_memory.hpp"
#include "inspect/programs/program_diff.hpp"
#include "inspect/programs/shards.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/inspect/described.hpp"
#include "tests/unit/inspect/made_job.hpp"

namespace weft::job_programs_test {
namespace {

using testing::MadeJob;

const Mesh kMesh({1}, {"data"});

/// Returns the listing of a program that applies `op` to x and x.
std::string listing(const std::string& op, int rows = 4) {
  return "program(%0: f32[" + std::to_string(rows) + "] data \"x\" [{}]) {\n  %1 = " + op +
         " %0, %0 : f32[" + std::to_string(rows) +
         "]  // train.cpp:7\n  return %1 \"out.0\" [{?}]\n}\n";
}

/// Makes the run folder of a job of two workers, with the programs that they have compiled.
class JobProgramsTest : public ::testing::Test {
 protected:
  JobProgramsTest() {
    job.snapshot.header.run_dir = runs.path();
    job.snapshot.header.mesh_shape = {1};
    job.snapshot.header.axis_names = {"data"};
  }

  void compiles(int worker, std::uint32_t number, const std::string& text,
                const std::string& reason = "") {
    const Program program = parse_program(text, kMesh);
    const ProgramEntry entry{.worker = worker,
                             .number = number,
                             .step = number,
                             .fingerprint = fingerprint(program).to_string(),
                             .site = "the sync at train.cpp:9",
                             .reason = reason,
                             .seconds = 0.002 * (worker + 1),
                             .arena_bytes = 1 << 20,
                             .keeps_state = true};
    ProgramList(runs.path()).add(entry, text, compile(program, kMesh, kCpuTarget));
  }
  std::vector<ProgramEntry> entries() const { return read_program_list(runs.path()); }

  const testing::TemporaryFolder runs;
  MadeJob job{2, 1};
};

TEST_F(JobProgramsTest, EqualProgramsOfSeveralWorkersAreOne) {
  for (const int worker : {1, 0}) compiles(worker, 0, listing("add"));
  for (const int worker : {0, 1}) compiles(worker, 1, listing("add", 3), "data 'x' is smaller");
  const std::vector<JobProgram> programs = programs_of(entries());
  ASSERT_EQ(programs.size(), 2U);
  EXPECT_EQ(programs[0].workers, (std::vector{0, 1}));
  EXPECT_EQ(programs[0].entry.seconds, 0.004);
  const std::string text = programs_text(job.snapshot, programs);
  EXPECT_TRUE(text.starts_with("program  generation  step  workers  compiled in  from")) << text;
  EXPECT_NE(text.find("  0, 1  "), std::string::npos) << text;
  EXPECT_NE(text.find("4.00 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("program 1 of workers 0, 1: data 'x' is smaller\n"), std::string::npos)
      << text;
  testing::expect_described(programs_json(job.snapshot, programs));
  const auto json = nlohmann::json::parse(programs_json(job.snapshot, programs));
  EXPECT_EQ(json.at("schema"), "weft.programs/1");
  EXPECT_EQ(json.at("programs").at(1).at("reason"), "data 'x' is smaller");
}

TEST_F(JobProgramsTest, ALineThatIsNotWholeIsLeftOut) {
  compiles(0, 0, listing("add"));
  std::ofstream(runs.path() + "/programs/list.jsonl", std::ios::app) << "{\"worker\": 1, \"gen";
  EXPECT_EQ(entries().size(), 1U);
  EXPECT_TRUE(read_program_list("/nowhere").empty());
}

/// A fingerprint becomes a part of paths, so it may only have hexadecimal digits.
TEST_F(JobProgramsTest, AFingerprintIsHexadecimal) {
  compiles(0, 0, listing("add"));
  nlohmann::json line = nlohmann::json::parse(std::ifstream(runs.path() + "/programs/list.jsonl"));
  line["fingerprint"] = "../../etc/passwd";
  std::ofstream(runs.path() + "/programs/list.jsonl", std::ios::app) << line.dump() << '\n';
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(JobProgramsTest, ALineWithANumberThatNoWorkerWritesIsLeftOut) {
  compiles(0, 0, listing("add"));
  const std::string file = runs.path() + "/programs/list.jsonl";
  const nlohmann::json line = nlohmann::json::parse(std::ifstream(file));
  for (const char* name : {"generation", "number", "step", "arena_bytes"}) {
    for (const nlohmann::json& value : {nlohmann::json(-1), nlohmann::json(0.5)}) {
      nlohmann::json other = line;
      other[name] = value;
      std::ofstream(file, std::ios::app) << other.dump() << '\n';
    }
  }
  nlohmann::json other = line;
  other["number"] = std::uint64_t{1} << 32;
  std::ofstream(file, std::ios::app) << other.dump() << '\n';
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(JobProgramsTest, WithoutAProgramItIsSaidWhichAndWhy) {
  testing::expect_error(Errc::not_found, {"no program: ", runs.path() + "/programs/list.jsonl"},
                        [&] { fail_without_program(job.snapshot, {}, {}); });
  testing::expect_error(Errc::not_found, {"no program 7: ", "list.jsonl lists none"},
                        [&] { fail_without_program(job.snapshot, {}, 7); });
  compiles(0, ProgramList::kFilesMax, listing("add"));
  const std::vector<JobProgram> programs = programs_of(entries());
  testing::expect_error(Errc::not_found, {"no program 7: weft inspect programs lists"},
                        [&] { fail_without_program(job.snapshot, programs, 7); });
  testing::expect_error(Errc::not_found, {"its first 64"},
                        [&] { fail_without_program(job.snapshot, programs, {}); });
}

TEST_F(JobProgramsTest, ProgramsBeyondTheFirstHaveNoFiles) {
  compiles(0, ProgramList::kFilesMax, listing("add"));
  const std::vector<JobProgram> programs = programs_of(entries());
  ASSERT_EQ(programs.size(), 1U);
  testing::expect_error(Errc::not_found, {"first 64 programs", "number 64"},
                        [&] { read_plan(job.snapshot, programs[0]); });
  compiles(0, ProgramList::kLinesMax, listing("add"));
  EXPECT_EQ(entries().size(), 1U);
}

TEST_F(JobProgramsTest, MemoryIsThatOfThePlan) {
  compiles(0, 0, listing("add"));
  const JobProgram program = programs_of(entries()).at(0);
  const Plan plan = read_plan(job.snapshot, program);
  const ChipMemory memory = memory_of(plan, true);
  EXPECT_EQ(memory.inputs, 16);
  EXPECT_EQ(memory.versions, 16);
  const std::string text = memory_text(job.snapshot, program, plan, 3 << 20);
  EXPECT_NE(text.find("have 3.0 MiB of /dev/shm now"), std::string::npos) << text;
  testing::expect_described(memory_json(job.snapshot, program, plan, 3 << 20));
  const auto json = nlohmann::json::parse(memory_json(job.snapshot, program, plan, -1));
  EXPECT_EQ(json.at("tensors").at(0).at("chip_bytes"), 16);
  EXPECT_TRUE(json.at("resident_bytes").is_null());
  EXPECT_EQ(json.at("chip_bytes").at("arena"), 1 << 20);
}

TEST_F(JobProgramsTest, WorkersWithTheSameProgramsDoNotDiffer) {
  for (const int worker : {0, 1}) compiles(worker, 0, listing("add"));
  EXPECT_EQ(choose_workers(entries()), std::pair(0, 1));
  const ProgramDiff diff = diff_programs(job.snapshot, entries(), 0, 1);
  EXPECT_TRUE(diff.same());
  EXPECT_EQ(diff_text(job.snapshot, diff), "workers 0 and 1 have the same 1 programs\n");
}

TEST_F(JobProgramsTest, TheFirstProgramThatDiffersIsTold) {
  for (const int worker : {0, 1, 2}) compiles(worker, 0, listing("add"));
  compiles(0, 1, listing("subtract"));
  compiles(1, 1, listing("subtract"));
  compiles(2, 1, listing("multiply"));
  EXPECT_EQ(choose_workers(entries()), std::pair(0, 2));
  const ProgramDiff diff = diff_programs(job.snapshot, entries(), 0, 2);
  EXPECT_EQ(diff.common, 1U);
  EXPECT_FALSE(diff.causes.empty());
  ASSERT_EQ(diff.lines.size(), 2U);
  EXPECT_NE(diff.lines[0].find("subtract"), std::string::npos);
  EXPECT_NE(diff.lines[1].find("multiply"), std::string::npos);
  const std::string text = diff_text(job.snapshot, diff);
  EXPECT_TRUE(text.starts_with("workers 0 and 2 differ from program 1 on\n")) << text;
  testing::expect_described(diff_json(job.snapshot, diff));
  const auto json = nlohmann::json::parse(diff_json(job.snapshot, diff));
  EXPECT_EQ(json.at("first").at("number"), 1);
  EXPECT_EQ(json.at("lines").size(), 2U);
}

TEST_F(JobProgramsTest, AWorkerMayHaveMorePrograms) {
  for (const int worker : {0, 1}) compiles(worker, 0, listing("add"));
  compiles(1, 1, listing("subtract"));
  const ProgramDiff diff = diff_programs(job.snapshot, entries(), 0, 1);
  EXPECT_FALSE(diff.first);
  EXPECT_TRUE(diff.second);
  EXPECT_NE(diff_text(job.snapshot, diff).find("worker 0   has no further program"),
            std::string::npos);
}

TEST_F(JobProgramsTest, ADiffNeedsTwoWorkers) {
  compiles(0, 0, listing("add"));
  testing::expect_error(Errc::not_found, {"expected at least two workers"},
                        [&] { choose_workers(entries()); });
  testing::expect_error(Errc::not_found, {"worker 3"},
                        [&] { diff_programs(job.snapshot, entries(), 0, 3); });
}

TEST(Shards, AreDescribed) {
  const JobShards shards{
      .step = 7,
      .tensors = {{.name = "w",
                   .type = {DType::f32, {4}},
                   .sharding = "[{}]",
                   .shards = {{.chips = {0, 1}, .bytes = 16, .values = {.min = -1, .max = 2}}}}}};
  const Snapshot job = MadeJob(2, 1).snapshot;
  testing::expect_described(shards_json(job, shards));
  const std::string text = shards_text(job, shards);
  EXPECT_NE(text.find("  0, 1  "), std::string::npos) << text;
}

TEST(Shards, OfAJobThatKeepsNoneSayWhatKeepsThem) {
  testing::expect_error(Errc::not_found, {"max_failures", "keep_for_rescue_s"},
                        [] { read_shards(MadeJob(2, 1).snapshot, ""); });
}

}  // namespace
}  // namespace weft::job_programs_test
