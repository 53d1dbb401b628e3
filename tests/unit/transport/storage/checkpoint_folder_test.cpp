#include "transport/storage/checkpoint_folder.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::checkpoint_folder_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

const Mesh kMesh({2}, {"data"});

testing::Tree small_tree() {
  return {{"w", {DType::f32, {2, 3}}, std::vector<std::byte>(24, std::byte{1})}};
}

std::string save(const std::string& folder, std::uint64_t step) {
  const testing::Tree tree = small_tree();
  return testing::save_tree(posix_file_system(), folder, tree, kMesh, {Sharding::closed()},
                            {.step = step, .workers = 2});
}

std::vector<std::uint64_t> steps_in(const std::string& folder) {
  std::vector<std::uint64_t> steps;
  for (const CheckpointEntry& entry : list_checkpoints(folder)) steps.push_back(entry.step);
  return steps;
}

TEST(CheckpointFolder, ListsWholeCheckpointsByStep) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_checkpoints(folder.path() + "/absent").empty());
  save(folder.path(), 1'000'000);
  save(folder.path(), 20);
  save(folder.path(), 3);
  // None of these names is a checkpoint's.
  for (const char* name : {"checkpoint_000004", ".tmp-000005-x-0", ".trash-checkpoint_000006",
                           "checkpoint_", "checkpoint_7x", "checkpoint_8-0", "notes"}) {
    std::filesystem::create_directory(folder.path() + "/" + name);
  }
  EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{3, 20, 1'000'000}));
  EXPECT_EQ(list_checkpoints(folder.path())[0].path, folder.path() + "/checkpoint_000003");
}

TEST(CheckpointFolder, AStepThatIsSavedAgainGetsAnotherName) {
  const TemporaryFolder folder;
  save(folder.path(), 5);
  save(folder.path(), 5);
  const std::string third = save(folder.path(), 5);
  EXPECT_EQ(third, folder.path() + "/checkpoint_000005-2");
  ASSERT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{5}));
  EXPECT_EQ(list_checkpoints(folder.path())[0].path, third);
}

TEST(CheckpointFolder, TheLastSaveOfAStepHasTheLastName) {
  const TemporaryFolder folder;
  remove_checkpoint(posix_file_system(), [&] {
    const std::string first = save(folder.path(), 5);
    save(folder.path(), 5);
    return first;
  }());
  EXPECT_EQ(save(folder.path(), 5), folder.path() + "/checkpoint_000005-2");
  // A link to itself is no checkpoint, and doesn't hide the others.
  std::filesystem::create_symlink("checkpoint_000009", folder.path() + "/checkpoint_000009");
  EXPECT_EQ(list_checkpoints(folder.path()).back().path, folder.path() + "/checkpoint_000005-2");
}

TEST(CheckpointFolder, RemovesWhatWasLeftUnfinished) {
  const TemporaryFolder folder;
  const std::string kept = save(folder.path(), 1);
  const std::string removed = save(folder.path(), 2);
  const std::string unfinished = begin_checkpoint(posix_file_system(), folder.path(), 3, "job", 0);
  std::ofstream(unfinished + "/part-00000-of-00001.weft") << "half";
  std::filesystem::rename(removed, folder.path() + "/.trash-checkpoint_000002");
  std::filesystem::create_directories(unfinished + "/tokenizer/en");
  std::ofstream(folder.path() + "/.tmp-notes") << "no folder";
  remove_unfinished(posix_file_system(), folder.path());
  const auto entries = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2);
  std::filesystem::remove(folder.path() + "/.tmp-notes");
  remove_checkpoint(posix_file_system(), kept);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CheckpointFolder, DropsAnUnfinishedCheckpointAndNoOther) {
  const TemporaryFolder folder;
  const std::string kept = save(folder.path(), 1);
  const auto begin = [&](std::uint64_t attempt) {
    return begin_checkpoint(posix_file_system(), folder.path(), 3, "job", attempt);
  };
  const std::string failed = begin(0), next = begin(1);
  std::ofstream(failed + "/part-00000-of-00001.weft") << "half";
  drop_checkpoint(posix_file_system(), failed);
  drop_checkpoint(posix_file_system(), failed);
  EXPECT_FALSE(std::filesystem::exists(failed));
  EXPECT_TRUE(std::filesystem::exists(next));
  EXPECT_TRUE(std::filesystem::exists(kept));
}

TEST(CheckpointFolder, ListsTheEarlierSavesOfAStepApart) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_replaced_checkpoints(folder.path()).empty());
  const std::string first = save(folder.path(), 5), second = save(folder.path(), 5);
  save(folder.path(), 5);
  save(folder.path(), 6);
  EXPECT_EQ(list_replaced_checkpoints(folder.path()), (std::vector<std::string>{first, second}));
}

TEST(CheckpointFolder, WhatSomebodyReadsStays) {
  const TemporaryFolder folder;
  const std::string path = save(folder.path(), 5);
  {
    const ReadLock first(path), second(path);
    EXPECT_FALSE(remove_checkpoint(posix_file_system(), path));
    EXPECT_EQ(steps_in(folder.path()), (std::vector<std::uint64_t>{5}));
  }
  EXPECT_TRUE(remove_checkpoint(posix_file_system(), path));
  expect_error(Errc::not_found, {path, "removed"}, [&] { const ReadLock late(path); });
}

TEST(StateFile, IsReadThoughItsFilesAreRemovedBeforeTheFirstUse) {
  const TemporaryFolder folder;
  const std::string path = save(folder.path(), 5);
  const auto file = StateFile::open(path);
  EXPECT_FALSE(remove_checkpoint(posix_file_system(), path)) << "while it is open";
  std::filesystem::remove_all(path);
  std::vector<std::byte> memory(24);
  const TensorSource::Target target{{{{0, 0}, {2, 3}}, {2, 3}}, memory.data()};
  file->source(0, DType::f32)->read({&target, 1});
  EXPECT_EQ(memory, small_tree()[0].elements);
}

TEST(CheckpointFolder, SaysWhatIsNoCheckpoint) {
  const TemporaryFolder folder;
  save(folder.path(), 7);
  expect_error(Errc::not_found, {folder.path(), "no manifest.weft", "checkpoint_000007"},
               [&] { (void)read_manifest(folder.path()); });
  const std::string path = folder.path() + "/checkpoint_000007";
  std::ofstream(path + "/manifest.weft") << "not one";
  expect_error(Errc::corrupt, {path + "/manifest.weft"}, [&] { (void)read_manifest(path); });
}

TEST(CheckpointFolder, HasOneWriterAtATime) {
  const TemporaryFolder parent;
  const std::string folder = parent.path() + "/runs/digits";
  {
    const CheckpointLock lock(folder, "job 4711");
    expect_error(Errc::unavailable, {folder, "job 4711", "folder of its own"},
                 [&] { const CheckpointLock second(folder, "job 4712"); });
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        const CheckpointLock second(folder, "job 4713");
      } catch (const Error&) {
        ::_exit(0);
      }
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const CheckpointLock again(folder, "job 4714");
}

TEST(CheckpointReader, FindsMissingAndShortFilesWithoutReadingThem) {
  const TemporaryFolder folder;
  const std::string path = save(folder.path(), 1);
  const CheckpointManifest manifest = read_manifest(path);
  require_files(path, manifest);
  const std::string part = path + "/part-00001-of-00002.weft";
  std::filesystem::resize_file(part, std::filesystem::file_size(part) - 1);
  expect_error(Errc::corrupt, {part}, [&] { require_files(path, manifest); });
  std::filesystem::remove(part);
  expect_error(Errc::not_found, {part}, [&] { require_files(path, manifest); });
}

TEST(CheckpointReader, NamesTheTensorOfAMissingOrShortFile) {
  const TemporaryFolder folder;
  const std::string path = save(folder.path(), 1);
  const CheckpointManifest manifest = read_manifest(path);
  std::vector<std::byte> memory(24);
  const std::vector<WantedBox> wanted{
      {.tensor = 0, .placed = {{{0, 0}, {2, 3}}, {2, 3}}, .memory = memory.data()}};
  const ReadBytes read = read_boxes(path, manifest, wanted);
  EXPECT_EQ(read.wanted, 24U);
  EXPECT_EQ(memory, small_tree()[0].elements);

  const std::string part = path + "/part-00001-of-00002.weft";
  std::filesystem::resize_file(part, std::filesystem::file_size(part) - 1);
  expect_error(Errc::corrupt, {"'w'", part}, [&] { (void)read_boxes(path, manifest, wanted); });
  EXPECT_FALSE(verify_checkpoint(path, manifest).empty());
  std::filesystem::remove(part);
  expect_error(Errc::not_found, {part}, [&] { (void)read_boxes(path, manifest, wanted); });
}

}  // namespace
}  // namespace weft::checkpoint_folder_test
