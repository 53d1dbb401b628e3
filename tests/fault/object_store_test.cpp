/// Tests jobs of several processes that keep checkpoints in S3 and are killed.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <csignal>
#include <filesystem>

#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/moto_server.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/board/board.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_objects.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::object_store_test {
namespace {

using testing::AppProcess;
using testing::finished;
using testing::MotoServer;
using testing::processes_of;
using testing::wait_until;
using Json = nlohmann::json;

constexpr std::uint64_t kSteps = 44;

/// Returns the command line that runs examples/digits with a checkpoint every 4 steps.
std::vector<std::string> digits(const std::string& folder, const std::string& workers = "2",
                                const std::string& chips = "2") {
  return {DIGITS, "--epochs",       "1",      "--workers",          workers, "--chips",
          chips,  "--json",         "{json}", "--checkpoint-every", "4",     "--resume",
          "auto", "--max-failures", "-1",     "--checkpoint-dir",   folder};
}

const Json& undisturbed() {
  static const Json result = [] {
    const testing::TemporaryFolder folder;
    AppProcess app(digits(folder.path()));
    return finished(app);
  }();
  return result;
}

/// Expects that all listed checkpoints are complete.
void expect_whole(const std::string& folder) {
  for (const CheckpointEntry& entry : list_checkpoints(folder)) {
    EXPECT_EQ(verify_checkpoint(entry.path, read_manifest(entry.path)), std::vector<std::string>())
        << entry.path;
  }
}

class ObjectStore : public ::testing::Test {
 protected:
  /// Returns the server that all tests share; each test has its own prefix.
  static MotoServer& server() {
    static MotoServer server(MOTO_FOLDER);
    return server;
  }
  void SetUp() override {
    if (!server().why_not().empty()) GTEST_SKIP() << server().why_not();
    ASSERT_TRUE(server().is_there()) << "moto is installed and doesn't start";
  }
  static std::string folder() {
    return std::string("s3://bucket/") +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
};

/// Kills the processes of a job, beginning with its trainer.
void kill_all(AppProcess& app, const std::string& job) {
  std::vector<pid_t> pids = processes_of(job);
  pids.insert(pids.begin(), app.pid());
  for (const pid_t pid : pids) ::kill(pid, SIGKILL);
  app.wait();
  wait_until([&] { return processes_of(job).empty(); });
}

/// Runs a job on 2 workers of 2 chips and expects that it ends like an undisturbed one.
void expect_that_the_curve_goes_on(const std::string& folder) {
  const auto entries = list_checkpoints(folder);
  const std::uint64_t step = entries.empty() ? 0 : entries.back().step;
  AppProcess last(digits(folder));
  const Json result = finished(last);
  const Json& own = result.at("loss_history");
  ASSERT_EQ(own.size(), kSteps - step);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const double expected = undisturbed().at("loss_history")[i + step];
    EXPECT_NEAR(own[i].get<double>(), expected, 1e-4 * (1 + expected)) << "step " << i + step;
  }
  EXPECT_EQ(list_checkpoints(folder).back().step, kSteps);
  expect_whole(folder);
}

TEST_F(ObjectStore, TheLossOfAWorkerThatSavesChangesNothing) {
  AppProcess app(digits(folder()));
  const Board board = Board::open(app.job().substr(0, 32), true);
  for (const std::uint64_t step : {5, 16}) {
    wait_until([&] { return board.read(1).step >= step; });
    const pid_t pid = board.read(step == 5 ? 1 : 2).pid;
    ASSERT_GT(pid, 0);
    ::kill(pid, SIGKILL);
  }
  const Json result = finished(app);
  EXPECT_NE(app.output().find("was killed by signal 9"), std::string::npos) << app.output();
  EXPECT_EQ(result.at("params_digest"), undisturbed().at("params_digest"));
  EXPECT_EQ(result.at("loss_history"), undisturbed().at("loss_history"));
  const auto entries = list_checkpoints(folder());
  ASSERT_EQ(entries.size(), 3U) << "max_to_keep";
  EXPECT_EQ(entries.back().step, kSteps);
  EXPECT_TRUE(list_checkpoint_objects(folder()).unfinished.empty());
  expect_whole(folder());
}

TEST_F(ObjectStore, AKilledJobGoesOnOnAnotherMesh) {
  AppProcess app(digits(folder(), "2", "4"));
  const std::string job = app.job().substr(0, 32);
  const Board board = Board::open(job, true);
  wait_until([&] { return board.read(1).step >= 20; });
  kill_all(app, job);
  expect_whole(folder());
  ASSERT_FALSE(list_checkpoints(folder()).empty());
  expect_that_the_curve_goes_on(folder());
}

/// Kills all processes at once, when the store has parts but no manifest.
TEST_F(ObjectStore, AKillWhileACheckpointIsPutLeavesNone) {
  std::string place;
  int attempt = 0;
  // If the save ends between the check of the store and the kill, the test tries again.
  for (bool was_putting = false; !was_putting; ++attempt) {
    ASSERT_LT(attempt, 50) << "no kill came while a checkpoint was put";
    place = folder() + std::to_string(attempt);
    AppProcess app(digits(place));
    const std::string job = app.job().substr(0, 32);
    const Board board = Board::open(job, true);
    wait_until([&] {
      return board.read(1).step + 3 >= kSteps || !list_checkpoint_objects(place).unfinished.empty();
    });
    kill_all(app, job);
    was_putting = !list_checkpoint_objects(place).unfinished.empty();
  }
  expect_whole(place);
  expect_that_the_curve_goes_on(place);
  EXPECT_TRUE(list_checkpoint_objects(place).unfinished.empty()) << "the next job removes them";
}

TEST_F(ObjectStore, TheCommandShowsVerifiesAndExports) {
  AppProcess app(digits(folder()));
  finished(app);
  const std::string newest = list_checkpoints(folder()).back().path;
  AppProcess list({WEFT, "inspect", folder()});
  EXPECT_EQ(list.wait(), 0) << list.output();
  EXPECT_NE(list.output().find(newest), std::string::npos) << list.output();
  AppProcess verify({WEFT, "inspect", newest, "--verify"});
  EXPECT_EQ(verify.wait(), 0) << verify.output();
  EXPECT_NE(verify.output().find("all bytes are as they were written"), std::string::npos);
  const std::string exported = "s3://bucket/exported/digits.safetensors";
  AppProcess to({WEFT, "export", newest, "-o", exported});
  EXPECT_EQ(to.wait(), 0) << to.output();
  EXPECT_FALSE(StateFile::open(exported)->tensors().empty());
  AppProcess from({WEFT, "import", exported, "-o", "s3://bucket/imported"});
  EXPECT_EQ(from.wait(), 0) << from.output();
  EXPECT_EQ(list_checkpoints("s3://bucket/imported").size(), 1U);
  expect_whole("s3://bucket/imported");
}

TEST_F(ObjectStore, OneFolderIsOfOneJobAtATime) {
  AppProcess first(digits(folder()));
  (void)first.job();
  AppProcess second(digits(folder()));
  EXPECT_EQ(second.wait(), 2) << second.output();
  EXPECT_NE(second.output().find("is in use: job"), std::string::npos) << second.output();
  finished(first);
}

/// The largest object is uploaded in parts, and keys have characters that a URL must encode. The
/// moto server checks the signatures of all requests.
TEST_F(ObjectStore, HasObjectsOfAllSizesAndNames) {
  const testing::TemporaryFolder files;
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, std::size_t{20'000'003}}) {
    const std::string url = fmt::format("{}/a b+c/\u00fc%&=?#'~*{}", folder(), size);
    const auto byte_at = [](std::uint64_t i) { return static_cast<std::byte>(i * 31 % 251); };
    const auto source = [&](std::uint64_t offset, std::span<std::byte> out) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = byte_at(offset + i);
    };
    const StoragePtr storage = find_storage(url);
    EXPECT_TRUE(storage->put(url, size, source, PutMode::create));
    EXPECT_FALSE(storage->put(url, size, source, PutMode::create));
    EXPECT_TRUE(storage->put(url, size, source, PutMode::replace));
    const auto listed = storage->list(url);
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0], storage->open(url));
    EXPECT_EQ(listed[0].bytes, size);
    const std::vector<std::byte> bytes = read_object(url, std::size_t{1} << 30);
    ASSERT_EQ(bytes.size(), size);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], byte_at(i)) << i;
    storage->remove(url);
    storage->remove(url);
    EXPECT_EQ(storage->open(url), std::nullopt);
  }
}

TEST_F(ObjectStore, WrongKeysAreAnErrorWithTheVariable) {
  std::vector<std::string> words = digits(folder());
  AppProcess app(words, {"AWS_SECRET_ACCESS_KEY=wrong"});
  EXPECT_EQ(app.wait(), 2) << app.output();
  for (const char* word : {"HTTP 403", "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"}) {
    EXPECT_NE(app.output().find(word), std::string::npos) << app.output();
  }
}

}  // namespace
}  // namespace weft::object_store_test
