/// Tests checkpoints in an object store in which each call fails in turn.

#include "transport/storage/checkpoint_objects.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>

#include <weft/tensor/error.hpp>

#include "data/remote/object_cache.hpp"
#include "data/remote/output_file.hpp"
#include "data/remote/storages.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/memory_storage.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::checkpoint_objects_test {
namespace {

using testing::expect_error;

const std::string kFolder = "mem://bucket/runs/1";
const Mesh kMesh({2, 2}, {"data", "model"});

class CheckpointObjects : public ::testing::Test {
 protected:
  CheckpointObjects() {
    ::setenv("WEFT_CACHE", cache_.path().c_str(), 1);
    register_storage("mem", storage_);
    testing::Random random(1);
    tree_ = testing::random_tree(random, 300);
    shardings_ = testing::random_shardings(random, kMesh, tree_);
  }
  ~CheckpointObjects() override { ::unsetenv("WEFT_CACHE"); }

  std::string save(std::uint64_t step, int attempt = 0) {
    return testing::save_tree(posix_file_system(), kFolder, tree_, kMesh, shardings_,
                              {.step = step, .workers = 2, .attempt = attempt});
  }
  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> steps;
    for (const CheckpointEntry& entry : list_checkpoints(kFolder)) steps.push_back(entry.step);
    return steps;
  }
  /// Expects that every listed checkpoint can be read completely.
  void expect_whole() const {
    for (const CheckpointEntry& entry : list_checkpoints(kFolder)) {
      const CheckpointManifest manifest = read_manifest(entry.path);
      EXPECT_NO_THROW(require_files(entry.path, manifest)) << entry.path;
      EXPECT_EQ(verify_checkpoint(entry.path, manifest), std::vector<std::string>()) << entry.path;
    }
  }

  const testing::TemporaryFolder cache_;
  const std::shared_ptr<testing::MemoryStorage> storage_ =
      std::make_shared<testing::MemoryStorage>();
  testing::Tree tree_;
  std::vector<Sharding> shardings_;
};

using Steps = std::vector<std::uint64_t>;

TEST_F(CheckpointObjects, AreReadOnAnotherMesh) {
  const std::string path = save(7);
  EXPECT_EQ(path, kFolder + "/checkpoint_000007");
  EXPECT_EQ(steps(), Steps{7});
  const Mesh other({4}, {"data"});
  testing::Random random(2);
  EXPECT_EQ(testing::differing(path, tree_, other, testing::random_shardings(random, other, tree_)),
            std::vector<std::string>());
  expect_whole();
  EXPECT_TRUE(std::filesystem::is_empty(staging_folder(kFolder)) ||
              list_checkpoints(staging_folder(kFolder)).empty());
}

TEST_F(CheckpointObjects, OfAStepThatIsSavedAgainAreTheLast) {
  const std::string first = save(3, 0);
  const std::string second = save(3, 1);
  EXPECT_EQ(second, first + "-1");
  EXPECT_EQ(list_checkpoints(kFolder).back().path, second);
  EXPECT_EQ(list_replaced_checkpoints(kFolder), std::vector<std::string>{first});
  EXPECT_TRUE(remove_checkpoint(posix_file_system(), first));
  EXPECT_EQ(list_checkpoints(kFolder).size(), 1U);
  expect_whole();
}

/// Kills the process at each call of a save in turn.
TEST_F(CheckpointObjects, AreThereWholeOrNotAtAll) {
  (void)save(1);
  bool has_failed = true;
  for (int call = 0; has_failed; ++call) {
    storage_->fail_from(call);
    has_failed = false;
    try {
      (void)save(2, call);
    } catch (const Error&) {
      has_failed = true;
    }
    storage_->fail_from(-1);
    expect_whole();
    const Steps found = steps();
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front(), 1U) << "call " << call;
    if (!has_failed) {
      EXPECT_EQ(found, (Steps{1, 2}));
    }
    // The next job removes the unfinished save.
    remove_unfinished(posix_file_system(), kFolder);
    for (const CheckpointEntry& entry : list_checkpoints(kFolder)) {
      if (entry.step == 2) remove_checkpoint(posix_file_system(), entry.path);
    }
    EXPECT_EQ(storage_->urls().size(), 3U) << "two parts and a manifest; call " << call;
  }
  has_failed = true;
  for (int call = 0; has_failed; ++call) {
    const std::string path = save(5, 100 + call);
    storage_->fail_from(call);
    has_failed = false;
    try {
      (void)remove_checkpoint(posix_file_system(), path);
    } catch (const Error&) {
      has_failed = true;
    }
    storage_->fail_from(-1);
    expect_whole();
    remove_unfinished(posix_file_system(), kFolder);
    if (steps().size() == 2) remove_checkpoint(posix_file_system(), path);
    EXPECT_EQ(steps(), Steps{1});
  }
}

TEST_F(CheckpointObjects, OfTwoSavesNeverMix) {
  const std::string path = save(1);
  const CheckpointManifest first = read_manifest(path);
  (void)save(1, 1);
  const CheckpointManifest second = read_manifest(path + "-1");
  for (const std::string& name : first.files) {
    EXPECT_EQ(std::ranges::count(second.files, name), 0) << name;
  }
}

TEST_F(CheckpointObjects, AreRefusedWhereAnotherJobHasPutOneMeanwhile) {
  class Overtaken : public testing::MemoryStorage {
   public:
    bool put(const std::string& url, std::uint64_t bytes, const ByteSource& source,
             PutMode mode) override {
      if (mode == PutMode::create) put_text(url, "another job's");
      return testing::MemoryStorage::put(url, bytes, source, mode);
    }
  };
  register_storage("mem", std::make_shared<Overtaken>());
  expect_error(Errc::unavailable, {"checkpoint_000001", "another job", "folder"},
               [&] { (void)save(1); });
}

TEST_F(CheckpointObjects, WithoutAPartAreNotReadable) {
  const std::string path = save(1);
  const CheckpointManifest manifest = read_manifest(path);
  storage_->put_text(path + "/" + manifest.files[0], "short");
  expect_error(Errc::corrupt, {path, "has 5 bytes"}, [&] { require_files(path, manifest); });
  storage_->remove(path + "/" + manifest.files[0]);
  expect_error(Errc::not_found, {path, "doesn't exist"}, [&] { require_files(path, manifest); });
  expect_error(Errc::not_found, {path, "doesn't exist"}, [&] { (void)StateFile::open(path); });
  expect_error(Errc::not_found, {kFolder, "isn't a checkpoint", path},
               [&] { (void)read_manifest(kFolder); });
}

TEST_F(CheckpointObjects, AreOfOneJobOfThisMachineAtATime) {
  const CheckpointLock lock(kFolder, "job 1");
  expect_error(Errc::unavailable, {kFolder, "job 1"},
               [] { const CheckpointLock second(kFolder, "job 2"); });
  const CheckpointLock other(kFolder + "0", "job 3");
}

TEST_F(CheckpointObjects, KeepOneCopyOnThisMachine) {
  for (const std::uint64_t step : {1, 2, 3}) {
    const auto file = StateFile::open(save(step));
    EXPECT_EQ(file->checkpoint()->step, step);
  }
  std::size_t manifests = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(cache_.path() + "/copies")) {
    manifests += entry.path().filename() == kManifestName &&
                 entry.path().parent_path().filename() == "files";
  }
  EXPECT_EQ(manifests, 1U);
}

/// Files that other programs have written are read too, alone or in a folder.
TEST_F(CheckpointObjects, OtherFilesOfTensorsAreReadAsWell) {
  const auto upload = [&](const std::string& golden, const std::string& url) {
    std::ifstream file(testing::golden_path(golden), std::ios::binary);
    storage_->put_text(url, std::string(std::istreambuf_iterator<char>(file), {}));
  };
  upload("pytorch/kinds.pt", "mem://b/kinds.pt");
  EXPECT_EQ(StateFile::open("mem://b/kinds.pt")->tensors().size(),
            StateFile::open(testing::golden_path("pytorch/kinds.pt"))->tensors().size());
  for (const auto& entry : std::filesystem::directory_iterator(testing::golden_path("pytorch"))) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file()) upload("pytorch/" + name, "mem://b/model/" + name);
  }
  const auto sharded = StateFile::open("mem://b/model/");
  EXPECT_EQ(sharded->path(), "mem://b/model");
  EXPECT_EQ(sharded->tensors().size(),
            StateFile::open(testing::golden_path("pytorch"))->tensors().size());
  expect_error(Errc::not_found, {"mem://b/absent", "manifest.weft"},
               [] { (void)StateFile::open("mem://b/absent"); });
  expect_error(Errc::version, {"gz", "gzip"}, [&] {
    storage_->put_text("mem://b/x.gz", "\x1f\x8b...");
    (void)StateFile::open("mem://b/x.gz");
  });
}

TEST_F(CheckpointObjects, OutputFilesArePutWhenTheyAreFinished) {
  {
    OutputFile dropped("mem://b/out");
    dropped.write(std::as_bytes(std::span(std::string_view("dropped"))));
  }
  EXPECT_TRUE(storage_->urls().empty());
  OutputFile file("mem://b/out");
  file.write(std::as_bytes(std::span(std::string_view("text"))));
  EXPECT_TRUE(storage_->urls().empty());
  file.finish();
  EXPECT_EQ(storage_->urls(), std::vector<std::string>{"mem://b/out"});
  EXPECT_EQ(read_object("mem://b/out", 100).size(), 4U);
  EXPECT_TRUE(std::filesystem::is_empty(staging_folder("mem://b")));
}

}  // namespace
}  // namespace weft::checkpoint_objects_test
