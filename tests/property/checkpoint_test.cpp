/// Tests that checkpoints of random trees of tensors are complete or absent, and load on any mesh.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include <weft/tensor/error.hpp>

#include "tests/property/seeds.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/power_cut_files.hpp"
#include "tests/support/watched_files.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"

namespace weft::checkpoint_test {
namespace {

using testing::differing;
using testing::random_mesh;
using testing::random_shardings;
using testing::random_tree;
using testing::save_tree;
using testing::SaveOptions;
using testing::seeds;
using testing::TemporaryFolder;
using testing::Tree;
using testing::WatchedFiles;

/// A tree of tensors on a mesh, before and after a step.
struct Case {
  Mesh mesh{{1}, {"data"}};
  Tree before;
  Tree after;
  std::vector<Sharding> shardings;
  int workers = 1;

  explicit Case(std::uint64_t seed) {
    testing::Random random(seed);
    mesh = random_mesh(random);
    before = random_tree(random);
    after = before;
    for (auto& tensor : after) {
      for (std::byte& b : tensor.elements) b = static_cast<std::byte>(random());
    }
    shardings = random_shardings(random, mesh, before);
    workers = mesh.size() % 2 == 0 && seed % 2 == 0 ? 2 : 1;
  }

  std::string save(FileSystem& files, const std::string& folder, std::uint64_t step,
                   int attempt = 0) const {
    const Tree& tree = step == 1 ? before : after;
    const bool is_on_disk = dynamic_cast<testing::PowerCutFiles*>(&files) == nullptr;
    return save_tree(files, folder, tree, mesh, shardings,
                     {.step = step,
                      .workers = workers,
                      .threads = 1,
                      .attempt = attempt,
                      .has_tables = is_on_disk});
  }

  /// Expects that all checkpoints in the folder are complete. Step 1 must have a checkpoint and, if
  /// `new_too`, so must step 2.
  void expect_whole(const std::string& folder, bool new_too, const std::string& when) const {
    const auto found = list_checkpoints(folder);
    std::vector<std::uint64_t> steps;
    for (const CheckpointEntry& entry : found) {
      steps.push_back(entry.step);
      const Tree& tree = entry.step == 1 ? before : after;
      EXPECT_TRUE(differing(entry.path, tree, mesh, shardings).empty()) << when << entry.path;
      EXPECT_TRUE(verify_checkpoint(entry.path, read_manifest(entry.path)).empty())
          << when << entry.path;
    }
    EXPECT_TRUE(!steps.empty() && steps.front() == 1) << when;
    if (new_too) {
      EXPECT_EQ(steps, (std::vector<std::uint64_t>{1, 2})) << when;
    }
  }
};

TEST(CheckpointProperty, LoadsOnAnyMeshWhatAnyMeshSaved) {
  for (const std::uint64_t seed : seeds(1200)) {
    testing::Random random(seed);
    const Tree tree = random_tree(random);
    const Mesh saved_on = random_mesh(random);
    const auto saved_as = random_shardings(random, saved_on, tree);
    const Mesh loaded_on = random_mesh(random);
    const auto loaded_as = random_shardings(random, loaded_on, tree);
    const TemporaryFolder folder;
    const std::string path = save_tree(posix_file_system(), folder.path(), tree, saved_on, saved_as,
                                       {.step = seed, .workers = saved_on.size() % 2 == 0 ? 2 : 1});
    ASSERT_EQ(differing(path, tree, loaded_on, loaded_as), std::vector<std::string>())
        << "seed " << seed << ": " << saved_on.to_string() << " to " << loaded_on.to_string();
    ASSERT_EQ(verify_checkpoint(path, read_manifest(path)), std::vector<std::string>())
        << "seed " << seed;
  }
}

/// The tensors have several MiB, so that chunks begin and end within rows.
TEST(CheckpointProperty, LoadsLargeTensorsOnAnyMesh) {
  constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::u8};
  for (const std::uint64_t seed : seeds(12)) {
    testing::Random random(seed);
    Tree tree;
    for (std::uint64_t t = 0; t < 2; ++t) {
      const auto rows = static_cast<std::int64_t>(500 + random() % 700);
      const auto columns = static_cast<std::int64_t>(500 + random() % 700);
      testing::TreeTensor tensor{
          .name = fmt::format("large{}", t),
          .type = {kDTypes[(seed + t) % std::size(kDTypes)], {rows, columns}}};
      tensor.elements.resize(static_cast<std::size_t>(tensor.type.bytes()));
      for (std::byte& b : tensor.elements) b = static_cast<std::byte>(random());
      tree.push_back(std::move(tensor));
    }
    const Mesh saved_on = random_mesh(random);
    const auto saved_as = random_shardings(random, saved_on, tree);
    const Mesh loaded_on = random_mesh(random);
    const TemporaryFolder folder;
    const std::string path =
        save_tree(posix_file_system(), folder.path(), tree, saved_on, saved_as, {.threads = 3});
    ASSERT_TRUE(differing(path, tree, loaded_on, random_shardings(random, loaded_on, tree)).empty())
        << "seed " << seed;
  }
}

/// Each call to the storage fails in turn, once because the disk is broken and once because it is
/// full.
TEST(CheckpointCrash, AFailedCallLeavesTheOldCheckpointAndTheNextSaveWorks) {
  std::size_t points = 0;
  for (const std::uint64_t seed : seeds(24)) {
    const Case example(seed);
    for (const Errc code : {Errc::io, Errc::no_space}) {
      for (std::uint64_t fails = 1;; ++fails) {
        const TemporaryFolder folder;
        example.save(posix_file_system(), folder.path(), 1);
        std::string failed;
        WatchedFiles files([&](const char* call, std::uint64_t number) {
          if (number != fails) return;
          failed = call;
          fail(code, "{}: injected", call);
        });
        try {
          example.save(files, folder.path(), 2);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), code);
        }
        if (failed.empty()) break;  // the save makes fewer calls than `point`
        ++points;
        const std::string when = fmt::format("seed {}: {} (call {}) failed: ", seed, failed, fails);
        example.expect_whole(folder.path(), false, when);
        remove_unfinished(posix_file_system(), folder.path());
        example.save(posix_file_system(), folder.path(), 2, 1);
        example.expect_whole(folder.path(), true, when + "then saved again: ");
      }
    }
  }
  RecordProperty("points", static_cast<int>(points));
  std::cout << points << " failed calls\n";
}

TEST(CheckpointCrash, AKilledWriterLeavesTheOldCheckpointAndTheNextSaveWorks) {
  std::size_t points = 0;
  for (const std::uint64_t seed : seeds(16)) {
    const Case example(seed);
    bool killed = true;
    for (std::uint64_t dies = 1; killed; ++dies) {
      const TemporaryFolder folder;
      example.save(posix_file_system(), folder.path(), 1);
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        WatchedFiles files([&](const char*, std::uint64_t number) {
          if (number == dies) ::raise(SIGKILL);
        });
        example.save(files, folder.path(), 2);
        ::_exit(0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      killed = WIFSIGNALED(status);
      points += killed ? 1 : 0;
      const std::string when = fmt::format("seed {}: killed at call {}: ", seed, dies);
      example.expect_whole(folder.path(), !killed, when);
      remove_unfinished(posix_file_system(), folder.path());
      example.save(posix_file_system(), folder.path(), 2, 1);
      example.expect_whole(folder.path(), true, when + "then saved again: ");
    }
  }
  std::cout << points << " kills\n";
}

TEST(CheckpointCrash, ALossOfPowerLeavesTheOldCheckpointAndOnceSavedTheNew) {
  std::size_t points = 0;
  for (const std::uint64_t seed : seeds(12)) {
    const Case example(seed);
    bool cut = true;
    for (std::uint64_t at = 1; cut; ++at) {
      const std::string root = "/files";
      testing::PowerCutFiles files(root);
      example.save(files, root, 1);
      files.cut_at(files.calls() + at);
      cut = false;
      try {
        example.save(files, root, 2);
      } catch (const testing::PowerCut&) {
        cut = true;
      }
      testing::Random random(seed * 1000 + at);
      for (int subset = 0; subset < 6; ++subset, ++points) {
        const TemporaryFolder left;
        files.survive(random, left.path());
        example.expect_whole(left.path(), !cut,
                             fmt::format("seed {}: power lost at call {}: ", seed, at));
      }
    }
  }
  std::cout << points << " losses of power\n";
}

/// Makes a folder with two checkpoints. A test removes the first.
class Pruning : public ::testing::Test {
 protected:
  /// Expects that the second checkpoint is complete, and that the first is either complete or not
  /// listed.
  void expect_second_whole(const std::string& folder, const std::string& when) const {
    std::vector<std::uint64_t> steps;
    for (const CheckpointEntry& entry : list_checkpoints(folder)) {
      steps.push_back(entry.step);
      EXPECT_TRUE(verify_checkpoint(entry.path, read_manifest(entry.path)).empty())
          << when << entry.path;
    }
    EXPECT_TRUE(!steps.empty() && steps.back() == 2) << when;
  }
  static std::string first(const std::string& folder) { return folder + "/checkpoint_000001"; }

  const Case example_{2};
};

TEST_F(Pruning, AFailedCallLeavesNoHalfCheckpoint) {
  std::string failed = "none yet";
  for (std::uint64_t fails = 1; !failed.empty(); ++fails) {
    const TemporaryFolder folder;
    example_.save(posix_file_system(), folder.path(), 1);
    example_.save(posix_file_system(), folder.path(), 2);
    failed.clear();
    WatchedFiles files([&](const char* call, std::uint64_t number) {
      if (number != fails) return;
      failed = call;
      fail(Errc::io, "{}: injected", call);
    });
    try {
      remove_checkpoint(files, first(folder.path()));
    } catch (const Error&) {
    }
    expect_second_whole(folder.path(), fmt::format("{} (call {}): ", failed, fails));
    remove_unfinished(posix_file_system(), folder.path());
    expect_second_whole(folder.path(), fmt::format("{} (call {}), then swept: ", failed, fails));
  }
}

TEST_F(Pruning, AKilledWriterLeavesNoHalfCheckpoint) {
  bool killed = true;
  for (std::uint64_t dies = 1; killed; ++dies) {
    const TemporaryFolder folder;
    example_.save(posix_file_system(), folder.path(), 1);
    example_.save(posix_file_system(), folder.path(), 2);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      WatchedFiles files([&](const char*, std::uint64_t number) {
        if (number == dies) ::raise(SIGKILL);
      });
      remove_checkpoint(files, first(folder.path()));
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed = WIFSIGNALED(status);
    expect_second_whole(folder.path(), fmt::format("killed at call {}: ", dies));
    remove_unfinished(posix_file_system(), folder.path());
    expect_second_whole(folder.path(), fmt::format("killed at call {}, then swept: ", dies));
  }
}

TEST_F(Pruning, ALossOfPowerLeavesNoHalfCheckpoint) {
  bool cut = true;
  for (std::uint64_t at = 1; cut; ++at) {
    const std::string root = "/files";
    testing::PowerCutFiles files(root);
    example_.save(files, root, 1);
    example_.save(files, root, 2);
    files.cut_at(files.calls() + at);
    cut = false;
    try {
      remove_checkpoint(files, first(root));
    } catch (const testing::PowerCut&) {
      cut = true;
    }
    testing::Random random(at);
    for (int subset = 0; subset < 32; ++subset) {
      const TemporaryFolder left;
      files.survive(random, left.path());
      expect_second_whole(left.path(), fmt::format("power lost at call {}: ", at));
    }
  }
}

TEST(CheckpointDamage, AnyFlippedBitIsFoundAndAWantedOneIsNotLoaded) {
  const std::uint64_t flips = 1000;
  const Case example(4);
  const TemporaryFolder folder;
  const std::string path = example.save(posix_file_system(), folder.path(), 1);
  std::vector<std::string> names;
  std::vector<std::uint64_t> ends;  // the ends of the files in their concatenation
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().string());
    ends.push_back(entry.file_size() + (ends.empty() ? 0 : ends.back()));
  }
  std::size_t refused = 0;
  for (const std::uint64_t seed : seeds(flips)) {
    testing::Random random(seed);
    const std::uint64_t at = random() % ends.back();
    const auto file = static_cast<std::size_t>(std::ranges::upper_bound(ends, at) - ends.begin());
    const auto offset = static_cast<std::streamoff>(at - (file == 0 ? 0 : ends[file - 1]));
    const auto flip = [&, bit = 1 << (random() % 8)] {
      std::fstream stream(names[file], std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(offset);
      const int byte = stream.get();
      stream.seekp(offset);
      stream.put(static_cast<char>(byte ^ bit));
    };
    flip();
    bool found = false;
    try {
      found = !verify_checkpoint(path, read_manifest(path)).empty();
    } catch (const Error&) {
      found = true;  // the damaged byte is in the manifest
    }
    EXPECT_TRUE(found) << "byte " << offset << " of " << names[file];
    try {
      // Bytes that belong to no tensor may be damaged without harm.
      EXPECT_TRUE(differing(path, example.before, example.mesh, example.shardings).empty())
          << "byte " << offset << " of " << names[file];
    } catch (const Error& e) {
      ++refused;
      EXPECT_TRUE(e.code() == Errc::corrupt || e.code() == Errc::version) << e.what();
    }
    flip();
  }
  EXPECT_GT(refused, seeds(flips).size() / 4);
  example.expect_whole(folder.path(), false, "repaired: ");
}

}  // namespace
}  // namespace weft::checkpoint_test
