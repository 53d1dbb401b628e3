#include "tools/weft/export.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "data/files/file_bytes.hpp"
#include "data/formats/npy.hpp"
#include "data/formats/npz.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tools/weft/inspect/show_tensors.hpp"
#include "transport/format/saved_notes.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::export_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;
using testing::Tree;

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

class Export : public ::testing::Test {
 protected:
  std::string save(const Tree& tree) const {
    testing::Random random(3);
    const Mesh mesh({2, 2}, {"data", "model"});
    return testing::save_tree(posix_file_system(), folder_.path(), tree, mesh,
                              testing::random_shardings(random, mesh, tree), {.workers = 2});
  }
  static void export_to(const std::vector<std::string>& arguments) {
    CLI::App app;
    int code = -1;
    add_export(app, code);
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    reversed.push_back("export");
    app.parse(reversed);
    EXPECT_EQ(code, 0);
  }

  TemporaryFolder folder_;
};

TEST_F(Export, WritesSafetensorsThatHaveTheSameElements) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    testing::Random random(seed);
    const Tree tree = testing::random_tree(random);
    const std::string path = save(tree);
    const std::string out = folder_.path() + "/out.safetensors";
    export_to({path, "-o", out});
    const auto file = StateFile::open(out);
    ASSERT_EQ(file->tensors().size(), tree.size());
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const FileTensor& tensor = file->tensors()[i];
      const auto is_it = [&](const auto& other) { return other.name == tensor.name; };
      const auto found = std::ranges::find_if(tree, is_it);
      ASSERT_NE(found, tree.end()) << tensor.name;
      EXPECT_EQ(tensor.shape, found->type.shape);
      std::vector<std::byte> elements(found->elements.size());
      const TensorSource::Target target{whole_box(tensor.shape), elements.data()};
      file->source(i, found->type.dtype)->read({&target, 1});
      EXPECT_EQ(elements, found->elements) << "seed " << seed << " " << tensor.name;
    }
    EXPECT_EQ(show_tensors(out, true, false), 0);
  }
}

TEST_F(Export, WritesAFileOfNumPyForEachTensor) {
  Tree tree{{"a.weight", {DType::f32, {3, 5}}, std::vector<std::byte>(60, std::byte{7})},
            {"half", {DType::bf16, {2}}, {std::byte{0x80}, std::byte{0x3f}, {}, {}}}};
  const std::string out = folder_.path() + "/npy";
  export_to({save(tree), "--format", "npy", "-o", out});
  const auto bytes = read_file_bytes(out + "/a.weight.npy", kFileBytesMax);
  const NpyHeader header = read_npy_header(bytes, bytes.size());
  EXPECT_EQ(header.dtype, DType::f32);
  EXPECT_EQ(header.shape, (Shape{3, 5}));
  EXPECT_TRUE(std::ranges::equal(std::span(bytes).subspan(header.data_begin), tree[0].elements));
  const auto half = read_file_bytes(out + "/half.npy", kFileBytesMax);
  const NpyHeader half_header = read_npy_header(half, half.size());
  EXPECT_EQ(half_header.dtype, DType::f32);
  float first = 0;
  std::memcpy(&first, half.data() + half_header.data_begin, sizeof first);
  EXPECT_EQ(first, 1.0F);

  tree[0].name = "../a";
  expect_error(Errc::invalid_argument, {"'../a'", "safetensors"}, [&] {
    export_to({save(tree), "--format", "npy", "-o", out});
  });
}

TEST_F(Export, WritesAnNpzOfAllTensors) {
  const Tree tree{{"a.weight", {DType::f32, {3, 5}}, std::vector<std::byte>(60, std::byte{7})},
                  {"a/half", {DType::bf16, {2}}, {std::byte{0x80}, std::byte{0x3f}, {}, {}}}};
  const std::string out = folder_.path() + "/out.npz";
  export_to({save(tree), "--format", "npz", "-o", out});
  const auto bytes = read_file_bytes(out, kFileBytesMax);
  const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> to) {
    std::ranges::copy(std::span(bytes).subspan(offset, to.size()), to.begin());
  };
  const std::vector<ZipEntry> entries = npz_arrays(read_zip_directory(bytes.size(), read));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a.weight");
  EXPECT_EQ(entries[1].name, "a/half");
  const auto weight = read_zip_entry(entries[0], read);
  const NpyHeader header = read_npy_header(weight, weight.size());
  EXPECT_EQ(header.shape, (Shape{3, 5}));
  EXPECT_TRUE(std::ranges::equal(std::span(weight).subspan(header.data_begin), tree[0].elements));
  const auto half = read_zip_entry(entries[1], read);
  float first = 0;
  std::memcpy(&first, half.data() + read_npy_header(half, half.size()).data_begin, sizeof first);
  EXPECT_EQ(first, 1.0F);
}

/// Changes the manifest of a checkpoint, but not the bytes of its tensors.
void change_manifest(const std::string& checkpoint,
                     const std::function<void(CheckpointManifest&)>& change) {
  CheckpointManifest manifest = read_manifest(checkpoint);
  change(manifest);
  const std::vector<std::byte> bytes = encode_manifest(manifest);
  std::ofstream(checkpoint + "/manifest.weft", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  const auto file = StateFile::open(path);
  for (const FileTensor& tensor : file->tensors()) names.push_back(tensor.name);
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

TEST_F(Export, TakesRenamesAndCastsWhatIsAskedFor) {
  const std::vector<std::byte> one{{}, {}, std::byte{0x80}, std::byte{0x3f}};
  const std::string path = save({{"model.a.weight", {DType::f32, {1}}, one},
                                 {"model.b.weight", {DType::f32, {1}}, one},
                                 {"model.steps", {DType::i32, {1}}, one}});
  const std::string out = folder_.path() + "/out.safetensors";
  export_to({path, "-o", out, "--filter", "a\\.", "--filter", "steps$", "--rename",
             "^model\\.=", "--rename", "(.)\\.weight=$1.kernel", "--cast", "bf16"});
  EXPECT_EQ(names_in(out), (Names{"a.kernel", "steps"}));
  const auto file = StateFile::open(out);
  for (const FileTensor& tensor : file->tensors()) {
    EXPECT_EQ(tensor.dtype_name, tensor.name == "steps" ? "i32" : "bf16");
  }
  expect_error(Errc::invalid_argument, {"'model.a.weight' and 'model.b.weight'", "'w'"}, [&] {
    export_to({path, "-o", out, "--rename", ".*weight=w"});
  });
  expect_error(Errc::invalid_argument, {"--rename", "PATTERN=TEXT"}, [&] {
    export_to({path, "-o", out, "--rename", "x"});
  });
  expect_error(Errc::invalid_argument, {"--filter \"(\"", "regular expression"}, [&] {
    export_to({path, "-o", out, "--filter", "("});
  });
  expect_error(Errc::invalid_argument, {"makes the name 'model.steps' empty"}, [&] {
    export_to({path, "-o", out, "--filter", "steps", "--rename", ".*="});
  });
}

TEST_F(Export, GivesAveragesTheNamesOfTheirParameters) {
  const auto elements = [](int value) {
    return std::vector<std::byte>(4, static_cast<std::byte>(value));
  };
  const std::string path = save({{"w", {DType::f32, {1}}, elements(1)},
                                 {"w.average", {DType::f32, {1}}, elements(2)},
                                 {"frozen", {DType::f32, {1}}, elements(3)}});
  const std::string out = folder_.path() + "/out.safetensors";
  expect_error(Errc::not_found, {"--averages", "state_dict(net, optimizer, average)"}, [&] {
    export_to({path, "-o", out, "--averages"});
  });
  change_manifest(
      path, [](CheckpointManifest& manifest) { manifest.tensors[1].kind = StateKind::opt_state; });
  export_to({path, "-o", out, "--averages"});
  EXPECT_EQ(names_in(out), (Names{"frozen", "w"}));
  const auto file = StateFile::open(out);
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<std::byte> read(4);
    const TensorSource::Target target{whole_box({1}), read.data()};
    file->source(i, DType::f32)->read({&target, 1});
    EXPECT_EQ(read, elements(file->tensors()[i].name == "w" ? 2 : 3));
  }
}

TEST_F(Export, TakesAFileOfTorchSave) {
  const std::string out = folder_.path() + "/out.safetensors";
  export_to({testing::golden_path("pytorch/training.pt"), "-o", out, "--filter", "^model\\.",
             "--rename", "^model\\.="});
  EXPECT_EQ(names_in(out), (Names{"fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"}));
  expect_error(Errc::unavailable, {"'complex' is C64[2]", "--filter"}, [&] {
    export_to({testing::golden_path("pytorch/kinds.pt"), "-o", out, "--filter", "complex"});
  });
}

TEST_F(Export, InspectShowsMetricsUserAndTheBest) {
  const Tree tree{{"w", {DType::f32, {4}}, std::vector<std::byte>(16)}};
  const std::string path = save(tree);
  change_manifest(path, [](CheckpointManifest& manifest) {
    manifest.user_json =
        to_user_json({.metrics = {{"loss", 0.5}}, .user = {{"epoch", 7}}, .best_by = "loss"});
  });
  const auto shown = [](const std::string& what, bool json) {
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(show_tensors(what, json, false), 0);
    std::fflush(stdout);
    return ::testing::internal::GetCapturedStdout();
  };
  const std::string text = shown(path, false);
  EXPECT_NE(text.find(R"(metrics {"loss":0.5})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(user {"epoch":7})"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(shown(path, true));
  EXPECT_EQ(json["metrics"]["loss"], 0.5);
  EXPECT_EQ(json["user"]["epoch"], 7);
  const std::string all = shown(folder_.path(), false);
  EXPECT_NE(all.find("best by loss"), std::string::npos) << all;
  const auto list = nlohmann::json::parse(shown(folder_.path(), true));
  ASSERT_EQ(list["checkpoints"].size(), 1U);
  EXPECT_EQ(list["checkpoints"][0]["best"], true);
}

TEST_F(Export, InspectShowsWhereTheLoadersAre) {
  const std::string path = save({{"w", {DType::f32, {4}}, std::vector<std::byte>(16)}});
  change_manifest(path, [](CheckpointManifest& manifest) {
    manifest.loaders = {{.dataset = "digits",
                         .num_items = 100,
                         .batch_size = 10,
                         .batches_per_step = 1,
                         .site = "train.cpp:41",
                         .origin = 5,
                         .passes = 3,
                         .taken = 7,
                         .step = manifest.step,
                         .is_over = false}};
  });
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(show_tensors(path, true, false), 0);
  std::fflush(stdout);
  const auto json = nlohmann::json::parse(::testing::internal::GetCapturedStdout());
  ASSERT_EQ(json["loaders"].size(), 1U);
  EXPECT_EQ(json["loaders"][0]["made_at_step"], 5);
  EXPECT_EQ(json["loaders"][0]["batches"], 7);
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(show_tensors(path, false, false), 0);
  std::fflush(stdout);
  const std::string text = ::testing::internal::GetCapturedStdout();
  for (const char* word : {"digits", "train.cpp:41", "made at step"}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

TEST_F(Export, LeavesNothingWhereItFails) {
  const Tree tree{{"w", {DType::f32, {4}}, std::vector<std::byte>(16)}};
  const std::string path = save(tree);
  std::filesystem::remove(path + "/part-00001-of-00002.weft");
  const std::string out = folder_.path() + "/out.safetensors";
  expect_error(Errc::not_found, {"part-00001-of-00002.weft"}, [&] {
    export_to({path, "-o", out});
  });
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().filename().string().find("out."), std::string::npos) << entry.path();
  }
}

TEST_F(Export, InspectVerifiesEveryByte) {
  const Tree tree{{"w", {DType::f32, {4}}, std::vector<std::byte>(16)}};
  const std::string path = save(tree);
  EXPECT_EQ(show_tensors(path, false, true), 0);
  std::fstream(path + "/part-00000-of-00002.weft", std::ios::in | std::ios::out | std::ios::binary)
      .put('x');
  EXPECT_EQ(show_tensors(path, false, true), 1);
  EXPECT_EQ(show_tensors(path, true, true), 1);
  const std::string out = folder_.path() + "/out.safetensors";
  export_to({save(tree), "-o", out});
  expect_error(Errc::invalid_argument, {"--verify", out},
               [&] { (void)show_tensors(out, false, true); });
}

}  // namespace
}  // namespace weft::export_test
