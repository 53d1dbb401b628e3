/// Reads exported files with other readers: Python's json and struct, and NumPy.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data/files/envelope.hpp"
#include "data/files/file_bytes.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tools/weft/export.hpp"

namespace weft::export_readers_test {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using testing::Tree;

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
/// This Python can import NumPy if Debian's package of NumPy is installed.
constexpr const char* kPython = "/usr/bin/python3";

bool python_has(const std::string& module) {
  return std::system(fmt::format("{} -c 'import {}' >/dev/null 2>&1", kPython, module).c_str()) ==
         0;
}

/// Returns tensors of each dtype, scalars, dims of 0, and names that aren't ASCII.
Tree tree_of_all_kinds() {
  Tree tree{{"a.mask", {DType::pred, {3, 3}}},  {"a.weight", {DType::f32, {3, 5}}},
            {"b", {DType::bf16, {2, 1, 4}}},    {"count", {DType::i64, {}}},
            {"é \"字\"", {DType::f64, {2, 2}}}, {"empty", {DType::f32, {0, 4}}},
            {"ids", {DType::i32, {7}}},         {"words", {DType::u32, {1, 2}}},
            {"half", {DType::f16, {5}}},        {"small", {DType::i8, {3}}},
            {"pixels", {DType::u8, {2, 3}}}};
  for (std::size_t t = 0; t < tree.size(); ++t) {
    auto& [name, type, elements] = tree[t];
    elements.resize(static_cast<std::size_t>(type.bytes()));
    for (std::size_t i = 0; i < elements.size(); ++i) {
      // These bytes never form a NaN, which could lose bits in other programs.
      elements[i] =
          static_cast<std::byte>(type.dtype == DType::pred ? (i + t) % 2 : (17 * i + 5 * t) % 113);
    }
  }
  return tree;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

/// Returns bf16 elements as floats, whose upper halves are the bf16, because NumPy has no bf16.
std::vector<std::byte> widened(const std::vector<std::byte>& halves) {
  std::vector<std::byte> floats;
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    floats.insert(floats.end(), {std::byte{0}, std::byte{0}, halves[i], halves[i + 1]});
  }
  return floats;
}

nlohmann::json expected_of(const Tree& tree, const std::string& format) {
  const std::map<DType, std::string> safetensors{
      {DType::pred, "BOOL"}, {DType::i32, "I32"}, {DType::u32, "U32"}, {DType::i64, "I64"},
      {DType::bf16, "BF16"}, {DType::f32, "F32"}, {DType::f64, "F64"}, {DType::f16, "F16"},
      {DType::i8, "I8"},     {DType::u8, "U8"}};
  const std::map<DType, std::string> numpy{
      {DType::pred, "|b1"}, {DType::i32, "<i4"}, {DType::u32, "<u4"}, {DType::i64, "<i8"},
      {DType::bf16, "<f4"}, {DType::f32, "<f4"}, {DType::f64, "<f8"}, {DType::f16, "<f2"},
      {DType::i8, "|i1"},   {DType::u8, "|u1"}};
  const bool is_numpy = format != "safetensors";
  nlohmann::json expected;
  for (const auto& [name, type, elements] : tree) {
    const bool is_widened = is_numpy && type.dtype == DType::bf16;
    nlohmann::json shape = nlohmann::json::array();
    for (const std::int64_t size : type.shape) shape.push_back(size);
    expected[name] = {{"dtype", (is_numpy ? numpy : safetensors).at(type.dtype)},
                      {"shape", shape},
                      {"hex", hex(is_widened ? widened(elements) : elements)}};
  }
  return expected;
}

/// Returns a checksum of a file, or of all files of a folder in the order of their names.
std::uint64_t sum_of(const std::string& path) {
  std::vector<std::string> files{path};
  if (fs::is_directory(path)) {
    files.clear();
    for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path().string());
    std::ranges::sort(files);
  }
  std::vector<std::byte> all;
  for (const std::string& file : files) {
    std::ranges::copy(read_file_bytes(file, kFileBytesMax), std::back_inserter(all));
  }
  return xxh3(all);
}

struct Case {
  const char* format;
  const char* needs;  ///< the Python module that the reader imports
  std::uint64_t sum;  ///< the checksum of files that this reader has read
};

class ExportReaders : public ::testing::TestWithParam<Case> {};

TEST_P(ExportReaders, ReadEveryElement) {
  const auto& [format, needs, sum] = GetParam();
  const TemporaryFolder folder;
  const Tree tree = tree_of_all_kinds();
  testing::Random random(3);
  const Mesh mesh({2, 2}, {"data", "model"});
  const std::string checkpoint =
      testing::save_tree(posix_file_system(), folder.path(), tree, mesh,
                         testing::random_shardings(random, mesh, tree), {.workers = 2});
  const std::string out = folder.path() + "/out." + format;
  CLI::App app;
  int code = -1;
  add_export(app, code);
  app.parse({out, "-o", format, "--format", checkpoint, "export"});
  EXPECT_EQ(code, 0);
  EXPECT_EQ(sum_of(out), sum) << fmt::format("0x{:016x}", sum_of(out));

  if (!python_has(needs)) {
    GTEST_SKIP() << kPython << " has no " << needs << ": only the files' checksum was compared";
  }
  const std::string expected = folder.path() + "/expected.json";
  std::ofstream(expected) << expected_of(tree, format);
  EXPECT_EQ(std::system(fmt::format("{} {}/unit/tools/read_export.py {} {} {}", kPython,
                                    WEFT_TEST_DIR, format, out, expected)
                            .c_str()),
            0);
}

INSTANTIATE_TEST_SUITE_P(Formats, ExportReaders,
                         ::testing::Values(Case{"safetensors", "json", 0x05d360ac61bf28c4},
                                           Case{"npz", "numpy", 0x8c9a84d09d285f0a},
                                           Case{"npy", "numpy", 0xd1e7d875c921b687}),
                         [](const auto& each) { return std::string(each.param.format); });

}  // namespace
}  // namespace weft::export_readers_test
