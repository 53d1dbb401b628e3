#include "tools/weft/import.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tools/weft/export.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/checkpoint_reader.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::import_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;
using testing::Tree;

class Import : public ::testing::Test {
 protected:
  static void run(std::vector<std::string> words) {
    CLI::App app;
    int code = -1;
    add_import(app, code);
    add_export(app, code);
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
    EXPECT_EQ(code, 0);
  }
  static std::vector<std::byte> elements(const StateFile& file, std::size_t tensor) {
    const FileTensor& of = file.tensors()[tensor];
    std::vector<std::byte> bytes(static_cast<std::size_t>(of.bytes()));
    const TensorSource::Target target{whole_box(of.shape), bytes.data()};
    file.source(tensor, static_cast<DType>(of.dtype))->read({&target, 1});
    return bytes;
  }
  /// Saves a tree on a mesh, exports and imports it, and expects the same tree.
  void expect_same_after(const std::string& format) const {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      testing::Random random(seed);
      const Tree tree = testing::random_tree(random);
      const Mesh mesh({2, 2}, {"data", "model"});
      const std::string saved =
          testing::save_tree(posix_file_system(), folder_.path(), tree, mesh,
                             testing::random_shardings(random, mesh, tree), {.workers = 2});
      const std::string out = folder_.path() + "/out." + format;
      const std::string to = fmt::format("{}/imported-{}", folder_.path(), seed);
      run({"export", saved, "--optimizer-state", "--format", format, "-o", out});
      run({"import", out, "-o", to, "--step", "7", "--seed", "9"});
      const auto entries = list_checkpoints(to);
      ASSERT_EQ(entries.size(), 1U);
      EXPECT_EQ(entries[0].step, 7U);
      const CheckpointManifest manifest = read_manifest(entries[0].path);
      EXPECT_EQ(manifest.seed, 9U);
      EXPECT_TRUE(manifest.partial);
      EXPECT_TRUE(verify_checkpoint(entries[0].path, manifest).empty());
      const auto before = StateFile::open(saved);
      const auto after = StateFile::open(entries[0].path);
      ASSERT_EQ(after->tensors().size(), before->tensors().size());
      for (std::size_t i = 0; i < before->tensors().size(); ++i) {
        const FileTensor& tensor = before->tensors()[i];
        const auto found = std::ranges::find(after->tensors(), tensor.name, &FileTensor::name);
        ASSERT_NE(found, after->tensors().end()) << tensor.name;
        if (found->dtype != tensor.dtype) continue;  // bf16 is exported to NumPy as f32
        EXPECT_EQ(elements(*after, static_cast<std::size_t>(found - after->tensors().begin())),
                  elements(*before, i))
            << tensor.name;
      }
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Import, HasWhatWasExportedAsSafetensors) { expect_same_after("safetensors"); }

TEST_F(Import, HasWhatWasExportedAsNpz) { expect_same_after("npz"); }

TEST_F(Import, TakesRenamesAndCastsAFileOfTorchSave) {
  const std::string to = folder_.path() + "/to";
  run({"import", testing::golden_path("pytorch/training.pt"), "-o", to, "--step", "3", "--filter",
       "^model\\.", "--rename", "^model\\.=", "--cast", "f64"});
  const auto entries = list_checkpoints(to);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].step, 3U);
  const auto file = StateFile::open(entries[0].path);
  ASSERT_EQ(file->tensors().size(), 4U);
  EXPECT_EQ(file->tensors()[0].name, "fc1.weight");
  EXPECT_EQ(file->tensors()[0].label(), "f64[4,3]");
}

TEST_F(Import, LeavesOutWhatItCannotReadIfAskedTo) {
  const std::string to = folder_.path() + "/to";
  const std::string kinds = testing::golden_path("pytorch/kinds.pt");
  expect_error(Errc::unavailable, {"'complex' is C64[2]", "--filter"}, [&] {
    run({"import", kinds, "-o", to});
  });
  run({"import", kinds, "-o", to, "--filter", "^(f32|f64|f16|bf16|i.*|u.*|bool)$", "--filter",
       "none"});
  expect_error(Errc::unavailable, {"gs://bucket", "is a URL"}, [&] {
    run({"import", kinds, "-o", "gs://bucket", "--filter", "f32"});
  });
}

TEST_F(Import, IsMadeAfterOneThatWasKilled) {
  const std::string to = folder_.path() + "/to";
  const std::string left = to + "/.tmp-000000-import-0";
  std::filesystem::create_directories(left);
  std::ofstream(left + "/part-00000-of-00001.weft") << "a part";
  run({"import", testing::golden_path("pytorch/kinds.pt"), "-o", to, "--filter", "f32"});
  EXPECT_EQ(list_checkpoints(to).size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(left));
}

TEST_F(Import, LeavesNothingWhereItFails) {
  const std::string to = folder_.path() + "/to";
  expect_error(Errc::not_found, {"nowhere"}, [&] { run({"import", "/nowhere", "-o", to}); });
  EXPECT_TRUE(list_checkpoints(to).empty());
}

}  // namespace
}  // namespace weft::import_test
