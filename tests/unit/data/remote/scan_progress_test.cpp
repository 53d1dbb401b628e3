#include "data/remote/scan_progress.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include <weft/data/files.hpp>
#include <weft/data/packing.hpp>
#include <weft/data/tar_files.hpp>
#include <weft/data/text_files.hpp>
#include <weft/data/transforms.hpp>

#include "tests/support/temporary_folder.hpp"

namespace weft::scan_progress_test {
namespace {

/// A clock that advances by `tick` whenever it is read, and a list of the scans' reports.
class Watched {
 public:
  explicit Watched(double tick)
      : scope_({.seconds = [this, tick] { return now_ += tick; },
                .say = [this](const ScanPlace& place) { lines_.push_back(to_string(place)); },
                .end = [this] { ++ended_; }}) {}

  const std::vector<std::string>& lines() const { return lines_; }
  int ended() const { return ended_; }

 private:
  double now_ = 100;
  std::vector<std::string> lines_;
  int ended_ = 0;
  ScanReportScope scope_;
};

TEST(ScanProgress, ReportsAfterSomeSecondsAndThenAtIntervals) {
  const Watched watched(1);
  {
    ScanProgress progress("a.csv", "bytes", 40'000'000);
    for (int i = 0; i < 40; ++i) progress.advance(1'000'000);
  }
  EXPECT_EQ(watched.lines(),
            (std::vector<std::string>{"reads a.csv: 5.0 of 40.0 MB after 5 s, 1.0 MB a second",
                                      "reads a.csv: 20.0 of 40.0 MB after 20 s, 1.0 MB a second",
                                      "reads a.csv: 35.0 of 40.0 MB after 35 s, 1.0 MB a second"}));
  EXPECT_EQ(watched.ended(), 1);
}

TEST(ScanProgress, OfAShortScanSaysNothing) {
  const Watched watched(0.01);
  {
    ScanProgress progress("a", "files", 0);
    for (int i = 0; i < 100; ++i) progress.advance(1);
  }
  EXPECT_TRUE(watched.lines().empty());
  EXPECT_EQ(watched.ended(), 0);
}

TEST(ScanProgress, IsReadable) {
  EXPECT_EQ(to_string({.what = "x", .unit = "files", .done = 300, .total = 0, .seconds = 6}),
            "reads x: 300 files after 6 s, 50 files a second");
  EXPECT_EQ(
      to_string({.what = "x", .unit = "bytes", .done = 2'500'000'000, .total = 0, .seconds = 5}),
      "reads x: 2.5 GB after 5 s, 500.0 MB a second");
  EXPECT_EQ(to_string({.what = "x", .unit = "items", .done = 7, .total = 9, .seconds = 0}),
            "reads x: 7 of 9 items after 0 s");
}

/// Tests that each dataset that reads all its data when it is opened reports its progress with the
/// name of the file or folder.
class Scans : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  template <typename Open>
  static void expect_line(const std::string& begin, const Open& open) {
    const Watched watched(10);
    open();
    ASSERT_FALSE(watched.lines().empty()) << begin;
    EXPECT_TRUE(watched.lines()[0].starts_with("reads " + begin)) << watched.lines()[0];
    EXPECT_GE(watched.ended(), 1);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(Scans, SayHowFarTheyAre) {
  const std::string csv = file("a.csv", "x\n1\n2\n");
  expect_line(csv + ": 6 of 6 bytes",
              [&] { (void)csv_file(csv, {.fields = {{.columns = {"x"}}}}); });
  const std::string json = file("a.jsonl", "{\"x\":1}\n");
  expect_line(json + ": 8 of 8 bytes", [&] { (void)json_lines(json, {JsonNumbers{.key = "x"}}); });
  const std::string tokens = file("a.tokens", std::string("\1\0\2\0\0\0", 6));
  expect_line(tokens + ": 6 of 6 bytes",
              [&] { (void)token_file(tokens, {.length = 2, .separator = 0}); });
  std::filesystem::create_directories(folder_.path() + "/classes/a");
  std::ofstream(folder_.path() + "/classes/a/1.wav") << "x";
  const std::string classes = folder_.path() + "/classes";
  expect_line(classes + ": 1 files", [&] {
    (void)class_folder(classes, {.extensions = "wav",
                                 .field = {"x", {DType::u8, {1}}},
                                 .decode = [](auto, const auto&, auto&) {}});
  });
  const DatasetPtr numbers = tensors(
      {{"x", std::vector<std::int32_t>{1, 2, 3, 4}, {2}}, {"n", std::vector<std::int32_t>{1, 2}}});
  expect_line("filter(tensors): 1 of 2 items",
              [&] { (void)filter(numbers, [](const ItemView&) { return true; }); });
  expect_line("pack_sequences(tensors, 4): 1 of 2 items",
              [&] { (void)pack_sequences(numbers, {.length = 4, .length_field = "n"}); });
}

TEST_F(Scans, OfArchivesCountAllOfThem) {
  ASSERT_EQ(std::system(("cd " + folder_.path() +
                         " && printf 1 > 0.cls && tar cf a.tar 0.cls && printf 2 > 1.cls && "
                         "tar cf b.tar 1.cls")
                            .c_str()),
            0);
  const std::string a = folder_.path() + "/a.tar";
  const auto bytes =
      std::filesystem::file_size(a) + std::filesystem::file_size(folder_.path() + "/b.tar");
  expect_line(fmt::format("{} and 1 more: ", a), [&] {
    (void)tar_files({a, folder_.path() + "/b.tar"}, {TarNumber{}});
  });
  const Watched watched(3);
  (void)tar_files({a, folder_.path() + "/b.tar"}, {TarNumber{}});
  EXPECT_NE(watched.lines()[0].find(fmt::format("of {:.1f} kB", static_cast<double>(bytes) / 1e3)),
            std::string::npos)
      << watched.lines()[0];
}

}  // namespace
}  // namespace weft::scan_progress_test
