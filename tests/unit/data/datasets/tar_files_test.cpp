#include <weft/data/tar_files.hpp>

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::tar_files_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;

std::string golden(const std::string& name) { return testing::golden_path("tar/" + name).string(); }

std::vector<TarField> all_fields() {
  return {TarImage{.image = {.height = 16, .width = 24, .dtype = DType::i32}}, TarNumber{},
          TarArray{.extension = "emb.npy", .field = {.name = "embedding"}, .shape = {2}}};
}

/// For each item its label and the first number of its embedding.
using Rows = std::vector<std::pair<std::int32_t, float>>;

void add_row(Rows& rows, const ItemView& item) {
  rows.emplace_back(item.get<std::int32_t>("label")[0], item.get<float>("embedding")[0]);
  EXPECT_EQ(item.get<std::int32_t>("x")[0], 0);
  EXPECT_EQ(item.get<std::int32_t>("x")[16 * 24 - 1], 255);
}

Rows rows_of(Stream& stream) {
  Rows rows;
  const ItemBuffer item(stream.fields());
  while (stream.next(item.memory())) add_row(rows, item.view());
  return rows;
}

class TarArchives : public ::testing::Test {
 protected:
  TarArchives() { fs::create_directories(folder_); }
  ~TarArchives() override { fs::remove_all(folder_); }

  /// Makes an uncompressed archive of these files with the machine's tar, and returns its path.
  std::string archive(const std::vector<std::pair<std::string, std::string>>& files) const {
    std::string list;
    for (const auto& [name, content] : files) {
      fs::create_directories((folder_ / name).parent_path());
      std::ofstream(folder_ / name, std::ios::binary) << content;
      list += " '" + name + "'";
    }
    const std::string path = (folder_ / "made.tar").string();
    const std::string command =
        fmt::format("tar -C '{}' -cf '{}' {}", folder_.string(), path, list);
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return path;
  }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft-tar-{}", ::getpid());
};

TEST_F(TarArchives, HaveBytesAndWhatOwnDecodersMakeOfThem) {
  const std::string path =
      archive({{"1.txt", "abc"}, {"1.pair", "4 5"}, {"2.txt", ""}, {"2.pair", "7 x"}});
  const std::vector<TarField> fields{
      TarBytes{.extension = "txt", .name = "text", .length = 4},
      TarDecoder{.extension = "pair",
                 .field = {"pair", {DType::i32, {2}}},
                 .decode = [](std::span<const std::byte> file, const ItemWriter& out, ItemRandom&) {
                   const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
                   const auto pair = out.get<std::int32_t>("pair");
                   pair[0] = std::stoi(text.substr(0, 1));
                   pair[1] = std::stoi(text.substr(2));
                 }}};
  const DatasetPtr dataset = tar_files({path}, fields);
  EXPECT_EQ(dataset->fields(),
            (std::vector<Field>{{"text", {DType::u8, {4}}}, {"pair", {DType::i32, {2}}}}));
  const ItemBuffer item = read_item(*dataset, {});
  EXPECT_TRUE(std::ranges::equal(item.view().get<std::uint8_t>("text"),
                                 std::vector<std::uint8_t>{'a', 'b', 'c', 0}));
  EXPECT_EQ(item.view().get<std::int32_t>("pair")[1], 5);
  // A decoder's error is reported with the name of the file.
  expect_error(Errc::loop_failed, {"item 1 of epoch 0", "made.tar: 2.pair: stoi"},
               [&] { (void)read_item(*dataset, {.index = 1}); });
  const StreamPtr stream = tar_stream({path}, fields);
  const ItemBuffer streamed(stream->fields());
  ASSERT_TRUE(stream->next(streamed.memory()));
  EXPECT_EQ(streamed.view().get<std::int32_t>("pair")[0], 4);
  expect_error(Errc::loop_failed, {"2.pair: stoi"}, [&] { (void)stream->next(streamed.memory()); });
}

TEST_F(TarArchives, BytesAreBounded) {
  const std::string path = archive({{"1.txt", "abcde"}});
  const DatasetPtr dataset = tar_files({path}, {TarBytes{.extension = "txt", .length = 4}});
  expect_error(Errc::corrupt, {"1.txt: has 5 bytes, but length is 4"},
               [&] { (void)read_item(*dataset, {}); });
  expect_error(Errc::invalid_argument, {"field 'bytes': length = 0"},
               [&] { (void)tar_files({path}, {TarBytes{.extension = "txt"}}); });
  expect_error(Errc::invalid_argument, {"there is no function to decode it"}, [&] {
    (void)tar_files({path}, {TarDecoder{.extension = "txt", .field = {"x", {DType::f32, {}}}}});
  });
}

TEST_F(TarArchives, HaveSamplesInAnyOrder) {
  for (const std::string name : {"ustar.tar", "gnu.tar", "pax.tar", "python.tar"}) {
    const DatasetPtr dataset = tar_files({golden(name)}, all_fields());
    ASSERT_EQ(dataset->size(), 3) << name;
    EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"x", {DType::i32, {3, 16, 24}}},
                                                     {"label", {DType::i32, {}}},
                                                     {"embedding", {DType::f32, {2}}}}));
    std::set<std::pair<std::int32_t, float>> rows;
    for (const std::int64_t index : {2, 0, 1}) {
      Rows row;
      add_row(row, read_item(*dataset, {.index = index}).view());
      rows.insert(row[0]);
    }
    EXPECT_EQ(rows, (std::set<std::pair<std::int32_t, float>>{{5, 0}, {6, 1}, {7, 2}})) << name;
  }
}

TEST_F(TarArchives, SeveralAreOneDataset) {
  const DatasetPtr both =
      tar_files({golden("gnu.tar"), golden("ustar.tar")}, {TarNumber{.dtype = DType::f32}});
  ASSERT_EQ(both->size(), 6);
  std::vector<float> labels;
  for (std::int64_t i = 0; i < 6; ++i) {
    labels.push_back(read_item(*both, {.index = i}).view().get<float>("label")[0]);
  }
  EXPECT_EQ(labels, (std::vector<float>{5, 6, 7, 5, 6, 7}));
}

TEST_F(TarArchives, ManyTakeABoundedNumberOfDescriptors) {
  const auto open_files = [] {
    const auto entries = fs::directory_iterator("/proc/self/fd");
    return std::distance(begin(entries), end(entries));
  };
  std::vector<std::string> paths;
  for (int i = 0; i < 400; ++i) {
    paths.push_back((folder_ / fmt::format("{}.tar", i)).string());
    fs::create_symlink(fs::absolute(golden("gnu.tar")), paths.back());
  }
  const auto before = open_files();
  const DatasetPtr dataset = tar_files(paths, {TarNumber{.dtype = DType::f32}});
  ASSERT_EQ(dataset->size(), 1200);
  float sum = 0;
  for (std::int64_t i = 0; i < 1200; ++i) {
    sum += read_item(*dataset, {.index = i}).view().get<float>("label")[0];
  }
  EXPECT_EQ(sum, 400 * 18);
  EXPECT_LE(open_files() - before, 256);
}

TEST_F(TarArchives, FilesOfASampleMayLieApart) {
  const DatasetPtr dataset = tar_files(
      {archive(
          {{"a.cls", "1"}, {"b.cls", "2"}, {"notes.txt", ""}, {"b.id", "20"}, {"a.ID", "10"}})},
      {TarNumber{}, TarNumber{.extension = "id", .name = "id", .dtype = DType::i64}});
  ASSERT_EQ(dataset->size(), 2);
  const ItemBuffer second = read_item(*dataset, {.index = 1});
  EXPECT_EQ(second.view().get<std::int32_t>("label")[0], 2);
  EXPECT_EQ(second.view().get<std::int64_t>("id")[0], 20);
  EXPECT_EQ(read_item(*dataset, {}).view().get<std::int64_t>("id")[0], 10);
}

TEST_F(TarArchives, SamplesThatLackAFileAreRefused) {
  const std::vector<TarField> fields{TarNumber{}, TarNumber{.extension = "id", .name = "id"}};
  const std::string path = archive({{"a.cls", "1"}, {"a.id", "1"}, {"dir/b.cls", "2"}});
  expect_error(Errc::corrupt, {path + ": sample \"dir/b\" has no file of extension id"},
               [&] { (void)tar_files({path}, fields); });
  const StreamPtr stream = tar_stream({path}, fields);
  const ItemBuffer item(stream->fields());
  EXPECT_TRUE(stream->next(item.memory()));
  expect_error(Errc::corrupt, {"item 1 of epoch 0", "sample \"dir/b\" has no file of extension id"},
               [&] { (void)stream->next(item.memory()); });
  const std::string twice = archive({{"a.cls", "1"}, {"a.id", "1"}, {"a.CLS", "2"}});
  expect_error(Errc::corrupt, {"sample \"a\" has two files of extension cls"},
               [&] { (void)tar_files({twice}, fields); });
}

TEST_F(TarArchives, ErrorsNameTheFile) {
  const std::string path = archive({{"a.cls", "one"}});
  const DatasetPtr dataset = tar_files({path}, {TarNumber{}});
  expect_error(Errc::corrupt,
               {path + ": item 0 of epoch 0", "a.cls: is \"one\": expected a number"},
               [&] { (void)read_item(*dataset, {}); });
  const StreamPtr stream = tar_stream({path}, {TarNumber{}});
  const ItemBuffer item(stream->fields());
  expect_error(Errc::corrupt, {"tar_stream(" + path + ")", "a.cls: is \"one\""},
               [&] { (void)stream->next(item.memory()); });
  const DatasetPtr other =
      tar_files({golden("gnu.tar")}, {TarArray{.extension = "emb.npy", .shape = {3}}});
  expect_error(Errc::corrupt, {"train/0001.emb.npy: has shape (2): expected (3)"},
               [&] { (void)read_item(*other, {}); });
}

TEST_F(TarArchives, WhatIsNoneIsRefused) {
  expect_error(Errc::not_found, {"nowhere.tar"},
               [] { (void)tar_files({"nowhere.tar"}, {TarNumber{}}); });
  expect_error(Errc::invalid_argument, {"there are no paths"},
               [] { (void)tar_files({}, {TarNumber{}}); });
  expect_error(Errc::invalid_argument, {"has no fields"},
               [] { (void)tar_files({golden("gnu.tar")}, {}); });
  expect_error(Errc::invalid_argument, {"is compressed by gzip", "tar_stream()"},
               [] { (void)tar_files({golden("gnu.tar.gz")}, {TarNumber{}}); });
  expect_error(Errc::invalid_argument, {"is compressed by xz"},
               [] { (void)tar_files({golden("ustar.tar.xz")}, {TarNumber{}}); });
  expect_error(Errc::invalid_argument, {"has no samples with files of extension json"},
               [] { (void)tar_files({golden("gnu.tar")}, {TarNumber{.extension = "json"}}); });
  expect_error(Errc::invalid_argument,
               {"extension = '.cls': expected the part of a file name after"},
               [] { (void)tar_files({golden("gnu.tar")}, {TarNumber{.extension = ".cls"}}); });
  expect_error(Errc::invalid_argument, {"fields 'label' and 'y' both have files of extension cls"},
               [] {
                 (void)tar_files({golden("gnu.tar")},
                                 {TarNumber{}, TarNumber{.extension = "id;cls", .name = "y"}});
               });
}

TEST_F(TarArchives, CompressedOnesAreStreams) {
  for (const std::string name : {"gnu.tar.gz", "pax.tar.bz2", "ustar.tar.xz", "python.tar"}) {
    const StreamPtr stream = tar_stream({golden(name)}, all_fields());
    const Rows rows = rows_of(*stream);
    EXPECT_EQ(std::set(rows.begin(), rows.end()),
              (std::set<std::pair<std::int32_t, float>>{{5, 0}, {6, 1}, {7, 2}}))
        << name;
    EXPECT_EQ(stream->index(), 3);
    stream->rewind(1);
    EXPECT_EQ(rows_of(*stream), rows) << name;
  }
}

TEST_F(TarArchives, SkippingGivesTheSameItems) {
  const std::vector<std::string> paths{golden("gnu.tar.gz"), golden("pax.tar.bz2")};
  const StreamPtr stream = tar_stream(paths, all_fields());
  const Rows rows = rows_of(*stream);
  ASSERT_EQ(rows.size(), 6U);
  const ItemBuffer item(stream->fields());
  for (std::size_t skipped = 0; skipped < 6; ++skipped) {
    stream->rewind(0);
    for (std::size_t i = 0; i < skipped; ++i) EXPECT_TRUE(stream->skip());
    ASSERT_TRUE(stream->next(item.memory()));
    Rows row;
    add_row(row, item.view());
    EXPECT_EQ(row[0], rows[skipped]);
  }
  EXPECT_FALSE(stream->skip());
}

TEST_F(TarArchives, DamagedStreamsAreCorrupt) {
  const std::string whole = testing::read_golden("tar/gnu.tar.gz");
  const std::string path = (folder_ / "cut.tar.gz").string();
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() / 2);
  const StreamPtr stream = tar_stream({path}, all_fields());
  expect_error(Errc::corrupt, {path}, [&] { (void)rows_of(*stream); });
  std::ofstream(path, std::ios::binary) << "no archive at all";
  stream->rewind(0);
  expect_error(Errc::corrupt, {path}, [&] { (void)rows_of(*stream); });
  const StreamPtr small = tar_stream({golden("gnu.tar.gz")}, all_fields(), {.file_bytes_max = 1});
  expect_error(Errc::no_space, {"file_bytes_max allows 1"}, [&] { (void)rows_of(*small); });
  const StreamPtr absent = tar_stream({"nowhere.tar.gz"}, all_fields());
  expect_error(Errc::not_found, {"nowhere.tar.gz"}, [&] { (void)rows_of(*absent); });
}

TEST(ExpandBraces, AreTheShells) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(expand_braces("a.tar"), (Paths{"a.tar"}));
  EXPECT_EQ(expand_braces("a-{008..011}.tar"),
            (Paths{"a-008.tar", "a-009.tar", "a-010.tar", "a-011.tar"}));
  EXPECT_EQ(expand_braces("{9..10}"), (Paths{"9", "10"}));
  EXPECT_EQ(expand_braces("{0..2}"), (Paths{"0", "1", "2"}));
  EXPECT_EQ(expand_braces("{x,y}/{0..1}.tar"), (Paths{"x/0.tar", "x/1.tar", "y/0.tar", "y/1.tar"}));
  EXPECT_EQ(expand_braces("a{,b}"), (Paths{"a", "ab"}));
  for (const std::string pattern : {"{", "}", "a{1..2", "{1..}", "{..2}", "{2..1}", "{a}", "{}",
                                    "{0..99999999}", "{1..x}", "{0..1048575}{0..1}", "{a,{b}}"}) {
    expect_error(Errc::invalid_argument, {"expand_braces"}, [&] { (void)expand_braces(pattern); });
  }
}

}  // namespace
}  // namespace weft::tar_files_test
