/// Tests that datasets have the same items from objects of a store as from local files.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>

#include <weft/data/files.hpp>
#include <weft/data/image_files.hpp>
#include <weft/data/storage.hpp>
#include <weft/data/stream.hpp>
#include <weft/data/tar_files.hpp>
#include <weft/data/text_files.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/memory_storage.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::remote_datasets_test {
namespace {

using testing::expect_error;
using testing::golden_path;

class RemoteDatasets : public ::testing::Test {
 protected:
  RemoteDatasets() {
    ::setenv("WEFT_CACHE", cache_.path().c_str(), 1);
    register_storage("mem", storage_);
  }
  ~RemoteDatasets() override { ::unsetenv("WEFT_CACHE"); }

  /// Uploads a file or a folder, and returns its URL.
  std::string uploaded(const std::filesystem::path& path) {
    const std::string url = "mem://b/" + path.filename().string();
    if (!std::filesystem::is_directory(path)) {
      upload(path, url);
      return url;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (!entry.is_regular_file()) continue;
      upload(entry.path(), url + "/" + entry.path().lexically_relative(path).string());
    }
    return url;
  }
  std::string golden(const std::string& name) { return golden_path(name).string(); }
  std::string text(const std::string& name, const std::string& content) {
    const std::string path = files_.path() + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  const testing::TemporaryFolder cache_;
  const testing::TemporaryFolder files_;
  const std::shared_ptr<testing::MemoryStorage> storage_ =
      std::make_shared<testing::MemoryStorage>();

 private:
  void upload(const std::filesystem::path& path, const std::string& url) {
    std::ifstream file(path, std::ios::binary);
    storage_->put_text(url, std::string(std::istreambuf_iterator<char>(file), {}));
  }
};

void expect_equal(const Dataset& a, const Dataset& b) {
  ASSERT_EQ(a.fields(), b.fields());
  ASSERT_EQ(a.size(), b.size());
  ASSERT_GT(a.size(), 0);
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const ItemBuffer first = read_item(a, {.index = i});
    const ItemBuffer second = read_item(b, {.index = i});
    for (std::size_t field = 0; field < a.fields().size(); ++field) {
      EXPECT_TRUE(std::ranges::equal(first.view().bytes(field), second.view().bytes(field)))
          << a.name() << " item " << i << ", field " << a.fields()[field].name;
    }
  }
}

TEST_F(RemoteDatasets, OfArraysAndNumbersAreThoseOfTheFiles) {
  const std::string csv = text("rows.csv", "a,b\n1,2\n3,4\n");
  expect_equal(*csv_file(csv, {.fields = {{.name = "x", .columns = {"a", "b"}}}}),
               *csv_file(uploaded(csv), {.fields = {{.name = "x", .columns = {"a", "b"}}}}));
  const std::string lines = text("rows.jsonl", "{\"y\": 1}\n{\"y\": 2.5}\n");
  expect_equal(*json_lines(lines, {JsonNumbers{.key = "y"}}),
               *json_lines(uploaded(lines), {JsonNumbers{.key = "y"}}));
  const std::string idx = text("labels", std::string("\0\0\x08\x01\0\0\0\x03\x07\x08\x09", 11));
  expect_equal(*idx_file(idx, {.name = "y"}), *idx_file(uploaded(idx), {.name = "y"}));
}

TEST_F(RemoteDatasets, OfPicturesAreThoseOfTheFolder) {
  const std::string folder = golden("pictures/folder");
  const ImageFolderOptions options{.image = {.height = 16, .width = 24, .dtype = DType::i32}};
  const std::string url = uploaded(folder);
  EXPECT_EQ(image_classes(url), image_classes(folder));
  expect_equal(*image_folder(folder, options), *image_folder(url, options));
  const int reads = storage_->reads();
  const int calls = storage_->calls();
  const DatasetPtr again = image_folder(url, options);
  const int listed = storage_->calls() - calls;
  for (std::int64_t i = 0; i < again->size(); ++i) (void)read_item(*again, {.index = i});
  EXPECT_EQ(storage_->reads(), reads) << "the files are there";
  EXPECT_EQ(storage_->calls() - calls, listed) << "an item that is there asks the store nothing";
  expect_error(Errc::not_found, {"mem://b/absent"},
               [&] { (void)image_folder("mem://b/absent", options); });
}

TEST_F(RemoteDatasets, OfArchivesAreThoseOfTheFiles) {
  std::vector<std::string> archives;
  for (const auto& entry : std::filesystem::directory_iterator(golden("tar"))) {
    if (entry.path().extension() == ".tar") archives.push_back(entry.path());
  }
  ASSERT_FALSE(archives.empty());
  std::size_t read = 0;
  for (const std::string& archive : archives) {
    DatasetPtr files;
    try {
      files = tar_files({archive}, {TarNumber{}});
    } catch (const Error&) {
      continue;  // some archives in the folder are invalid
    }
    ++read;
    expect_equal(*files, *tar_files({uploaded(archive)}, {TarNumber{}}));
    const StreamPtr local = tar_stream({archive}, {TarNumber{}});
    const StreamPtr remote = tar_stream({uploaded(archive)}, {TarNumber{}});
    const ItemBuffer first(local->fields());
    const ItemBuffer second(remote->fields());
    while (local->next(first.memory())) {
      ASSERT_TRUE(remote->next(second.memory()));
      EXPECT_EQ(first.view().get<std::int32_t>("label")[0],
                second.view().get<std::int32_t>("label")[0]);
    }
    EXPECT_FALSE(remote->next(second.memory()));
  }
  EXPECT_GT(read, 0U);
}

TEST_F(RemoteDatasets, OfTextsAreThoseOfTheFiles) {
  std::string tokenizer;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(golden_path("tokenizers"))) {
    if (entry.path().filename() == "tokenizer.json" || entry.path().extension() == ".json") {
      try {
        (void)Tokenizer::load(entry.path());
        tokenizer = entry.path();
      } catch (const Error&) {
        // Some files in the folder aren't tokenizers.
      }
    }
  }
  ASSERT_FALSE(tokenizer.empty());
  const TokenizerPtr local = Tokenizer::load(tokenizer);
  const TokenizerPtr remote = Tokenizer::load(uploaded(tokenizer));
  const std::string path = text("text.txt", "some words\nand some more of the words\n");
  const TokenField field{.tokenizer = local, .length = 8, .pad_id = 0};
  expect_equal(*text_file(path, field),
               *text_file(uploaded(path), {.tokenizer = remote, .length = 8, .pad_id = 0}));
  const std::string tokens = files_.path() + "/tokens";
  write_token_file(tokens, {path}, *local);
  write_token_file("mem://b/tokens-there", {uploaded(path)}, *remote);
  expect_equal(*token_file(tokens, {.length = 2}),
               *token_file("mem://b/tokens-there", {.length = 2}));
}

TEST_F(RemoteDatasets, OfASchemeThatNobodyHasAreRefused) {
  expect_error(Errc::unavailable, {"gs://b/rows.csv", "no storage is registered for gs://"},
               [] { (void)csv_file("gs://b/rows.csv", {.fields = {{.name = "x"}}}); });
  expect_error(Errc::unavailable, {"http://host/x"},
               [] { (void)image_folder("http://host/x", {}); });
}

}  // namespace
}  // namespace weft::remote_datasets_test
