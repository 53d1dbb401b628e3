#include "tools/weft/plan.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/text/text.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tools/weft/plan/tiers_text.hpp"
#include "transport/format/plan_file.hpp"

namespace weft::plan_test {
namespace {

/// Returns the output of `weft plan ARGS`.
std::string output_of(const std::vector<std::string>& args) {
  CLI::App app;
  int code = 1;
  add_plan(app, code);
  std::vector<std::string> reversed(args.rbegin(), args.rend());
  reversed.push_back("plan");
  ::testing::internal::CaptureStdout();
  app.parse(reversed);
  EXPECT_EQ(code, 0);
  return ::testing::internal::GetCapturedStdout();
}

std::string golden_file(const char* name) { return testing::golden_path(name).string(); }

TEST(PlanCommand, ShowsMeshShardingsMemoryAndCollectives) {
  testing::expect_golden("weft-plan.txt", output_of({golden_file("plan-v2.bin")}));
}

TEST(PlanCommand, SaysTheSameAsJson) {
  testing::expect_golden("weft-plan.json", output_of({golden_file("plan-v2.bin"), "--json"}));
}

TEST(PlanCommand, WritesStableHlo) {
  const std::string text = output_of({golden_file("plan-v2.bin"), "--stablehlo"});
  testing::expect_golden("stablehlo/weft-plan.mlir", text);
  EXPECT_EQ(text, output_of({"--stablehlo", golden_file("plan-v2.bin")}));
  CLI::App app;
  int code = 1;
  add_plan(app, code);
  testing::expect_error(Errc::invalid_argument, {"--json", "--stablehlo", "exclude"}, [&] {
    app.parse(std::vector<std::string>{"--json", "--stablehlo", golden_file("plan-v2.bin"),
                                       "plan"});  // CLI11 parses the words from last to first
  });
}

/// Writes a plan of data parallelism over 2 hosts of 2 x 2 chips to a file, and returns its path.
std::string plan_of_hosts() {
  const Mesh mesh = HybridMesh{{2, 2}, {2, 1}, {"data", "model"}}.mesh();
  const Program program = parse_program(R"(program(%0: f32[16,96] data "x" [{"data"}, {}],
      %1: f32[16,96] data "y" [{"data"}, {"model"}], %2: f32[96,96] param "w" [{}, {"model"}],
      %3: f32[7] data "v" [{}]) {
  %4 = dot_general %0, %1 {contracting = [0] x [0]} : f32[96,96]
  %5 = subtract %2, %4 : f32[96,96]
  %6 = reduce %0 {kind = max, dims = [0, 1]} : f32[]
  return %5 "w" [{}, {"model"}] updates 2, %6 "most" [], %5 "whole" [{}, {}]
})",
                                        mesh);
  const std::vector<std::byte> bytes = encode_plan(compile(program, mesh, kCpuTarget));
  const std::string path = ::testing::TempDir() + fmt::format("weft-hosts-{}.weftplan", ::getpid());
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

TEST(PlanCommand, ShowsTheTiersOfAPlanForSeveralHosts) {
  const std::string path = plan_of_hosts();
  testing::expect_golden("weft-plan-hosts.txt", output_of({path}));
  testing::expect_golden("weft-plan-hosts.json", output_of({path, "--json"}));
  std::filesystem::remove(path);
}

TEST(PlanCommand, ShowsWhereACollectiveBeginsAndEnds) {
  CollectiveSummary collective{};
  collective.start = collective.end = 7;
  EXPECT_EQ(steps_of(collective), "7");
  collective.end = 12;
  EXPECT_EQ(steps_of(collective), "7 to 12");
}

TEST(PlanCommand, RefusesAnotherFile) {
  CLI::App app;
  int code = 0;
  add_plan(app, code);
  testing::expect_error(Errc::corrupt, {"plan file"},
                        [&] { app.parse("plan " + golden_file("shard-v1.bin")); });
  testing::expect_error(Errc::not_found, {"no-such-file"}, [&] { app.parse("plan no-such-file"); });
}

TEST(PlanCommand, RefusesRatesThatNoChipHas) {
  for (const std::string option : {"--gflops", "--gbytes"}) {
    for (const std::string rate : {"nan", "inf", "0", "-1", "0.0009", "1.1e9", "1e305", "fast"}) {
      CLI::App app;
      int code = 0;
      add_plan(app, code);
      try {
        app.parse("plan --profile no-such-job " + option + "=" + rate);
        ADD_FAILURE() << option << " " << rate;
      } catch (const CLI::ValidationError& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("\"" + rate + "\": expected 0.001 to 1e9"), std::string::npos) << text;
      }
    }
  }
}

/// A user may name a fifo, which would wait for a writer, or /dev/zero, which never ends.
TEST(PlanCommand, RefusesWhatIsNoPlainFile) {
  const std::string folder = ::testing::TempDir() + fmt::format("weft-plan-{}", ::getpid());
  std::filesystem::create_directory(folder);
  ASSERT_EQ(::mkfifo((folder + "/fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("loop", folder + "/loop");
  std::ofstream(folder + "/huge");
  std::filesystem::resize_file(folder + "/huge", std::uintmax_t{1} << 40);
  CLI::App app;
  int code = 0;
  add_plan(app, code);
  const auto expect_refused = [&](Errc errc, const std::string& file, const char* why) {
    testing::expect_error(errc, {file, why}, [&] { app.parse("plan " + file); });
  };
  expect_refused(Errc::invalid_argument, "/dev/zero", "is a device");
  expect_refused(Errc::invalid_argument, folder + "/fifo", "is a fifo");
  expect_refused(Errc::invalid_argument, folder, "is a folder");
  expect_refused(Errc::invalid_argument, folder + "/huge", "more than 1073741824 bytes");
  expect_refused(Errc::io, folder + "/loop", "Too many levels of symbolic links");
  expect_refused(Errc::not_found, folder + "/huge/x", "Not a directory");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft::plan_test
