#include "actors/data/run_folder.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/expect_error.hpp"

namespace weft::run_folder_test {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_); }
  static std::string text(const std::string& file) {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
  }
  const std::string root_ = fs::temp_directory_path() / fmt::format("weft-run-{}", ::getpid());
};

TEST_F(RunFolderTest, ProgressGetsAColumnPerKeyOfAnyReport) {
  RunFolder folder(root_, "run", "0123456789");
  for (const Metrics& metrics :
       {Metrics{{"loss", 0.5}, {"step", 1}}, Metrics{{"loss", 0.375}, {"step", 2}},
        Metrics{{"step", 3}, {"loss", 0.25}, {"note", "a,\"b\"\nc"}},
        Metrics{{"step", 4}, {"x", 1}, {"y", 2}}}) {
    folder.add(metrics);
  }
  EXPECT_EQ(text(folder.path() + "/progress.csv"),
            "loss,step,note,x,y\n0.5,1,,,\n0.375,2,,,\n0.25,3,\"a,\"\"b\"\"\nc\",,\n,4,,1,2\n");
}

TEST_F(RunFolderTest, SaysThatItWasRemoved) {
  RunFolder folder(root_, "run", "0123456789");
  folder.require();
  fs::remove_all(folder.path());
  const std::string was_removed = folder.path() + " was removed while the job ran";
  testing::expect_error(Errc::io, {was_removed.c_str()}, [&] { folder.require(); });
  testing::expect_error(Errc::io, {"progress.csv", was_removed.c_str()}, [&] {
    folder.add({{"a", 1}});
  });
}

TEST_F(RunFolderTest, AResultReadsBackAsItWasWritten) {
  RunFolder folder(root_, "run", "0123456789");
  Result result;
  result.metrics = {{"loss", 0.5}};
  result.metrics_history = {{{"loss", 1.0}}, {{"loss", 0.5}}};
  result.job = {.id = "0123456789",
                .name = "run",
                .path = folder.path(),
                .num_workers = 2,
                .mesh = Mesh({2, 2}, {"data", "model"})};
  result.error = Failure{.code = Errc::peer_lost,
                         .message = "gone",
                         .worker = 1,
                         .pid = 4,
                         .signal = 9,
                         .exit_code = 0,
                         .step = 7,
                         .collective = "all_reduce #3"};
  folder.write_result(result, 7);
  const Result back = Result::load(folder.path());
  EXPECT_EQ(back.metrics, result.metrics);
  EXPECT_EQ(back.metrics_history, result.metrics_history);
  EXPECT_EQ(back.job.mesh, result.job.mesh);
  ASSERT_TRUE(back.error);
  EXPECT_EQ(back.error->code, Errc::peer_lost);
  EXPECT_EQ(back.error->collective, "all_reduce #3");
}

TEST_F(RunFolderTest, ADamagedResultIsCorrupt) {
  std::ofstream(root_ + "/result.json") << "{\"metrics\": ";
  testing::expect_error(Errc::corrupt, {"result.json"}, [&] { Result::load(root_); });
}

TEST_F(RunFolderTest, AFolderWithoutAResultIsNamed) {
  testing::expect_error(Errc::not_found, {root_, "result.json", "weft inspect show"},
                        [&] { Result::load(root_); });
}

TEST_F(RunFolderTest, KeepsTheNewestCheckpoints) {
  RunFolder folder(root_, "run", "0123456789");
  fs::create_directories(root_ + "/made/sub");
  std::ofstream(root_ + "/made/sub/weights") << "w";
  for (std::uint64_t step = 0; step < 3; ++step) {
    store_checkpoint(folder.path(), step, 0, 1, root_ + "/made");
  }
  EXPECT_EQ(text(folder.path() + "/checkpoint_000002/sub/weights"), "w");
  folder.keep_checkpoints(1, 2);
  EXPECT_FALSE(fs::exists(folder.path() + "/checkpoint_000001"));
  EXPECT_TRUE(fs::exists(folder.path() + "/checkpoint_000002"));
}

TEST_F(RunFolderTest, KeepsTheCheckpointThatIsNeededAndCountsByStep) {
  RunFolder folder(root_, "run", "0123456789");
  const auto path = [&](const std::string& name) { return folder.path() + "/checkpoint_" + name; };
  for (const auto* name : {"999998", "999999-2", "999999-10", "1000000", "1000001"}) {
    fs::create_directories(path(name));
  }
  fs::create_directories(path("best"));  // a folder that the program made
  folder.keep_checkpoints(1, 999999);
  EXPECT_FALSE(fs::exists(path("999998")));
  EXPECT_TRUE(fs::exists(path("999999-10")));
  EXPECT_TRUE(fs::exists(path("1000000")));
  folder.keep_checkpoints(1, 1000001);
  EXPECT_FALSE(fs::exists(path("999999-2")));
  EXPECT_FALSE(fs::exists(path("999999-10")));
  EXPECT_TRUE(fs::exists(path("best")));
  EXPECT_FALSE(fs::exists(path("1000000")));
  EXPECT_TRUE(fs::exists(path("1000001")));
}

TEST_F(RunFolderTest, NamesAFolderThatCantBeMade) {
  std::ofstream(root_ + "/file") << "x";
  testing::expect_error(Errc::io, {"run.storage_path", "/file/"},
                        [&] { RunFolder(root_ + "/file", "run", "0123456789"); });
}

}  // namespace
}  // namespace weft::run_folder_test
