#include "transport/storage/state_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::state_file_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden_path;
using testing::TemporaryFolder;

std::size_t index_of(const StateFile& file, const std::string& name) {
  const auto found = std::ranges::find(file.tensors(), name, &FileTensor::name);
  EXPECT_NE(found, file.tensors().end()) << name;
  return static_cast<std::size_t>(found - file.tensors().begin());
}

template <typename T>
std::vector<T> elements_of(const StateFile& file, const std::string& name, DType dtype) {
  const std::size_t tensor = index_of(file, name);
  const Shape& shape = file.tensors()[tensor].shape;
  std::vector<T> elements(static_cast<std::size_t>(shape.num_elements()));
  const TensorSource::Target target{whole_box(shape),
                                    reinterpret_cast<std::byte*>(elements.data())};
  file.source(tensor, dtype)->read({&target, 1});
  return elements;
}

std::vector<float> floats_of(const StateFile& file, const std::string& name) {
  return elements_of<float>(file, name, DType::f32);
}

/// Returns the numbers -factor, 0, factor, 2 * factor, and so on.
std::vector<float> rising(std::size_t count, double factor) {
  std::vector<float> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>((static_cast<double>(i) - 1) * factor));
  }
  return numbers;
}

TEST(StateFile, OfTorchSaveHasElementsOfAllKinds) {
  const auto file = StateFile::open(golden_path("pytorch/kinds.pt"));
  EXPECT_EQ(file->checkpoint(), nullptr);
  EXPECT_EQ(floats_of(*file, "f32"), rising(8, 1.1));
  EXPECT_EQ(floats_of(*file, "f16"), rising(12, 0.125));
  EXPECT_EQ(floats_of(*file, "bf16"), rising(6, 0.75));
  EXPECT_EQ(floats_of(*file, "parameter"), rising(3, 1));
  EXPECT_EQ(elements_of<double>(*file, "f64", DType::f64), (std::vector<double>{-1e-3, 0, 1e-3}));
  EXPECT_EQ(elements_of<std::int64_t>(*file, "i64", DType::i64),
            (std::vector<std::int64_t>{-(std::int64_t{1} << 40), std::int64_t{1} << 40}));
  EXPECT_EQ(elements_of<std::int32_t>(*file, "i32", DType::i32),
            (std::vector<std::int32_t>{-70000}));
  EXPECT_EQ(elements_of<std::int32_t>(*file, "i16", DType::i32),
            (std::vector<std::int32_t>{-300, 300}));
  EXPECT_EQ(elements_of<std::int32_t>(*file, "u16", DType::i32),
            (std::vector<std::int32_t>{0, 65535}));
  EXPECT_EQ(elements_of<std::uint32_t>(*file, "u32", DType::u32),
            (std::vector<std::uint32_t>{0, 0xffffffff}));
  EXPECT_EQ(elements_of<std::uint8_t>(*file, "bool", DType::pred),
            (std::vector<std::uint8_t>{1, 0, 0, 1, 1}));
  EXPECT_TRUE(floats_of(*file, "none").empty());
}

/// Tensors that weft can't read are listed, and cause an error only if a program asks for them.
TEST(StateFile, ListsTensorsThatItCannotRead) {
  const auto file = StateFile::open(golden_path("pytorch/kinds.pt"));
  for (const auto& [name, label] : {std::pair("complex", "C64[2]"), std::pair("f8", "F8_E4M3[4]"),
                                    std::pair("nine_dims", "F32[1,1,1,1,1,1,1,1,2]")}) {
    const FileTensor& tensor = file->tensors()[index_of(*file, name)];
    EXPECT_EQ(tensor.dtype, FileDType::other) << name;
    EXPECT_EQ(tensor.label(), label);
    EXPECT_GT(tensor.bytes(), 0);
    EXPECT_FALSE(StateFile::can_cast(tensor.dtype, DType::f32));
  }
}

TEST(StateFile, OfTorchSaveHasViewsRowMajor) {
  const auto file = StateFile::open(golden_path("pytorch/views.pt"));
  std::vector<float> base(24);
  for (std::size_t i = 0; i < base.size(); ++i) base[i] = static_cast<float>(i);
  std::vector<float> transposed;
  for (std::size_t c = 0; c < 6; ++c) {
    for (std::size_t r = 0; r < 4; ++r) transposed.push_back(base[6 * r + c]);
  }
  EXPECT_EQ(floats_of(*file, "base"), base);
  EXPECT_EQ(floats_of(*file, "same"), base);
  EXPECT_EQ(floats_of(*file, "row"), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(floats_of(*file, "column"), (std::vector<float>{2, 8, 14, 20}));
  EXPECT_EQ(floats_of(*file, "transposed"), transposed);
  EXPECT_EQ(floats_of(*file, "strided"), (std::vector<float>{1, 3, 5, 13, 15, 17}));
  EXPECT_EQ(floats_of(*file, "expanded"), (std::vector<float>{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(elements_of<std::uint8_t>(*file, "flags", DType::pred),
            (std::vector<std::uint8_t>{1, 0, 0, 0}));
  EXPECT_TRUE(file->is_same_place(index_of(*file, "base"), index_of(*file, "same")));
  EXPECT_FALSE(file->is_same_place(index_of(*file, "base"), index_of(*file, "row")));
}

/// Reads a box of a tensor, as chips read their shards, and converts its dtype.
TEST(StateFile, OfTorchSaveGivesBoxesOfViews) {
  const auto file = StateFile::open(golden_path("pytorch/views.pt"));
  std::vector<double> elements(12, -1);
  PlacedBox box{.box = {{2, 1}, {3, 2}}, .room = {4, 3}};
  const TensorSource::Target target{box, reinterpret_cast<std::byte*>(elements.data())};
  file->source(index_of(*file, "transposed"), DType::f64)->read({&target, 1});
  EXPECT_EQ(elements, (std::vector<double>{8, 14, -1, 9, 15, -1, 10, 16, -1, -1, -1, -1}));
}

TEST(StateFile, OfAFolderMayBeTorchs) {
  const auto file = StateFile::open(golden_path("pytorch"));
  EXPECT_EQ(floats_of(*file, "fc1.weight"), rising(12, 0.5));
  const TemporaryFolder folder;
  fs::copy(golden_path("pytorch/pytorch_model.bin"), folder.path() + "/one.bin");
  std::ofstream(folder.path() + "/pytorch_model.bin.index.json")
      << R"({"metadata":{},"weight_map":{"fc1.weight":"one.bin","fc1.bias":"one.bin",)"
      << R"("fc2.weight":"one.bin","fc2.bias":"one.bin"}})";
  EXPECT_EQ(floats_of(*StateFile::open(folder.path()), "fc2.bias"), rising(2, 0.5));
}

TEST(StateFile, SaysWhatOtherFilesAreAndWhatToDo) {
  const TemporaryFolder folder;
  const auto expect_refused = [&](const std::string& name, const std::string& bytes,
                                  std::initializer_list<std::string_view> words) {
    const std::string path = folder.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    const std::string what = expect_error(Errc::version, words, [&] { StateFile::open(path); });
    EXPECT_NE(what.find(path), std::string::npos) << what;
  };
  const std::string zeros(600, '\0');
  expect_refused("model", "GGUF" + zeros, {"GGUF", "safetensors"});
  expect_refused("weights.h5", "\x89HDF\r\n\x1a\n" + zeros, {"HDF5", "weft import"});
  expect_refused("net.onnx", "\x08\x07" + zeros, {"ONNX", "weft import"});
  expect_refused("x.npy", "\x93NUMPY" + zeros, {"NumPy", "savez"});
  expect_refused("x.safetensors.gz", "\x1f\x8b" + zeros, {"gzip", "unpack"});
  expect_refused("x.pkl", "\x80\x04N.", {"pickle", "torch.save"});
  expect_error(Errc::version, {"old.pt", "before PyTorch 1.6", "torch.save(torch.load"},
               [] { StateFile::open(golden_path("pytorch/old.pt")); });
  expect_error(Errc::version, {"module.pt", "Sequential"},
               [] { StateFile::open(golden_path("pytorch/module.pt")); });
  expect_error(Errc::corrupt, {"stored.npz", "weft import"},
               [] { StateFile::open(golden_path("data/stored.npz")); });
}

/// Opening a path never waits, whatever is there in place of a file.
TEST(StateFile, NamesWhatStandsWhereAFileIsExpected) {
  for (const char* name : {"manifest.weft", "model.safetensors", "pytorch_model.bin",
                           "model.safetensors.index.json"}) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/" + name;
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_error(Errc::invalid_argument, {path, "is a fifo"},
                 [&] { StateFile::open(folder.path()); });
    fs::remove(path);
    fs::create_directory(path);
    expect_error(Errc::invalid_argument, {path, "is a folder"},
                 [&] { StateFile::open(folder.path()); });
    fs::remove(path);
    fs::create_symlink(path, path);
    expect_error(Errc::io, {path, "symbolic links"}, [&] { StateFile::open(folder.path()); });
  }
  expect_error(Errc::invalid_argument, {"/dev/zero", "is a device"},
               [] { StateFile::open("/dev/zero"); });
  expect_error(Errc::unavailable, {"gs://bucket/x", "is a URL"},
               [] { StateFile::open("gs://bucket/x"); });
}

}  // namespace
}  // namespace weft::state_file_test
