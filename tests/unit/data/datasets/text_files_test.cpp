#include <weft/data/text_files.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include <weft/data/files.hpp>
#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::text_files_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using Ids = std::vector<std::int32_t>;

TokenizerPtr golden(const std::string& name) {
  return Tokenizer::load(testing::golden_path("tokenizers/" + name + ".json").string());
}

template <typename T>
std::vector<T> read(const Dataset& dataset, std::int64_t index, std::string_view field) {
  const ItemBuffer item = read_item(dataset, {.index = index});
  const auto elements = item.view().get<T>(field);
  return {elements.begin(), elements.end()};
}

class TextFiles : public ::testing::Test {
 protected:
  TextFiles() { fs::create_directories(folder_); }
  ~TextFiles() override { fs::remove_all(folder_); }

  std::string file(const std::string& bytes, const std::string& name = "file") const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  const fs::path folder_ = fs::temp_directory_path() / fmt::format("weft-text-{}", ::getpid());
};

TEST_F(TextFiles, LinesAreTokensOfOneLength) {
  const TokenizerPtr bert = golden("bert_uncased");
  const DatasetPtr dataset =
      text_file(file("\xef\xbb\xbfThe quick fox\r\n\nThe dog is lazy and lazy and lazy"),
                {.tokenizer = bert, .length = 8, .mask = "mask", .type_ids = "types", .pad_id = 0});
  ASSERT_EQ(dataset->size(), 3);
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"tokens", {DType::i32, {8}}},
                                                   {"mask", {DType::pred, {8}}},
                                                   {"types", {DType::i32, {8}}}}));
  Ids expected = bert->encode("The quick fox").ids;
  ASSERT_LT(expected.size(), 9U);
  const auto count = expected.size();
  expected.resize(8, 0);
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "tokens"), expected);
  const auto mask = read<bool>(*dataset, 0, "mask");
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(mask, true)), count);
  // An empty line is an item too, so that files of corresponding lines stay aligned in a zip().
  EXPECT_EQ(read<std::int32_t>(*dataset, 1, "tokens"), (Ids{2, 3, 0, 0, 0, 0, 0, 0}));
  const Ids cut = read<std::int32_t>(*dataset, 2, "tokens");
  EXPECT_EQ(cut[0], 2);
  EXPECT_EQ(cut[7], 3);
}

TEST_F(TextFiles, WhatATokenFieldLacksIsSaid) {
  const std::string path = file("text\n");
  expect_error(Errc::invalid_argument, {"tokenizer is null"}, [&] { (void)text_file(path, {}); });
  expect_error(Errc::invalid_argument, {"pad_id is set neither"},
               [&] { (void)text_file(path, {.tokenizer = golden("gpt2")}); });
  expect_error(Errc::invalid_argument, {"pad_id = 70000: expected a token"},
               [&] { (void)text_file(path, {.tokenizer = golden("gpt2"), .pad_id = 70000}); });
  expect_error(Errc::invalid_argument, {"length = 0"},
               [&] { (void)text_file(path, {.tokenizer = golden("gpt2"), .length = 0}); });
  const DatasetPtr dataset =
      text_file(file("good\nbad \xff\n"), {.tokenizer = golden("gpt2"), .pad_id = 0});
  (void)read_item(*dataset, {});
  expect_error(Errc::corrupt, {"item 1 of epoch 0: line 2: byte 4 of 5 (0xff) isn't UTF-8"},
               [&] { (void)read_item(*dataset, {.index = 1}); });
}

TEST_F(TextFiles, JsonLinesHaveNumbersListsAndTexts) {
  const TokenizerPtr bert = golden("bert_uncased");
  const DatasetPtr dataset = json_lines(
      file("{\"text\": \"The fox\", \"y\": 3, \"m\": {\"v\": [[1, 2.5], [3, -4e1]]}, \"id\": "
           "\"ab\"}\n"
           " \t\r\n"
           "{\"m\": {\"v\": [[0, 0], [0, 0]]}, \"y\": 2.0, \"text\": \"\\u00fc\", \"id\": \"\"}"),
      {JsonNumbers{.key = "y", .dtype = DType::i32},
       JsonNumbers{.key = "/m/v", .name = "values", .shape = {2, 2}, .scale = 2},
       JsonNumbers{.key = "/m/v/1/0", .name = "one", .dtype = DType::i64, .missing = -1},
       JsonNumbers{.key = "/m/w", .name = "none", .missing = 0.5},
       JsonTokens{.key = "text",
                  .second = "id",
                  .tokens = {.tokenizer = bert, .length = 12, .type_ids = "types", .pad_id = 0}},
       JsonBytes{.key = "id", .length = 3}});
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "y")[0], 3);
  EXPECT_EQ(read<std::int32_t>(*dataset, 1, "y")[0], 2);
  EXPECT_EQ(read<float>(*dataset, 0, "values"), (std::vector<float>{2, 5, 6, -80}));
  EXPECT_EQ(read<std::int64_t>(*dataset, 0, "one")[0], 3);
  EXPECT_EQ(read<float>(*dataset, 1, "none")[0], 0.5F);
  Ids pair = bert->encode("The fox", "ab").ids;
  pair.resize(12, 0);
  EXPECT_EQ(read<std::int32_t>(*dataset, 0, "tokens"), pair);
  EXPECT_EQ(read<std::uint8_t>(*dataset, 0, "id"), (std::vector<std::uint8_t>{'a', 'b', 0}));
}

TEST_F(TextFiles, JsonLinesNameTheLineAndTheKey) {
  const std::string path = file(
      "{\"y\": 1}\n\n{\"y\": 1.5}\n{\"z\": 1}\n{\"y\": [1]}\n[1]\n{\"y\": \n"
      "{\"y\": 3000000000}\n{\"y\": null}\n{\"y\": \"1\"}\n");
  const DatasetPtr dataset = json_lines(path, {JsonNumbers{.key = "y", .dtype = DType::i32}});
  ASSERT_EQ(dataset->size(), 9);
  const auto refused = [&](std::int64_t index, std::string_view words) {
    expect_error(Errc::corrupt, {path + ": item", fmt::format(": line {}: ", index + 2), words},
                 [&] { (void)read_item(*dataset, {.index = index}); });
  };
  refused(1, "key 'y': is 1.5; expected a number of dtype i32");
  refused(2, "key 'y': isn't there; expected a value; add the key, or set .missing");
  refused(3, "key 'y': is an array; expected a number of dtype i32");
  refused(4, "is an array: expected a JSON object");
  refused(5, "isn't valid JSON");
  refused(6, "key 'y': is 3000000000");
  refused(7, "key 'y': is null");
  refused(8, "key 'y': is \"1\"");
  const DatasetPtr shaped =
      json_lines(file("{\"v\": [1, 2, 3]}", "shaped"), {JsonNumbers{.key = "v", .shape = {2}}});
  expect_error(Errc::corrupt, {"a list of 2 elements in dim 0 of (2), not of 3"},
               [&] { (void)read_item(*shaped, {}); });
  const DatasetPtr deep =
      json_lines(file(std::string(5000, '['), "deep"), {JsonNumbers{.key = "v"}});
  expect_error(Errc::corrupt, {"levels deep"}, [&] { (void)read_item(*deep, {}); });
}

TEST_F(TextFiles, JsonFieldsThatCannotBeAreRefused) {
  const std::string path = file("{}\n");
  const auto refused = [&](const JsonField& field, const std::string& words) {
    expect_error(Errc::invalid_argument, {path, words}, [&] { (void)json_lines(path, {field}); });
  };
  refused(JsonNumbers{}, "key is empty");
  refused(JsonNumbers{.key = "/a~2"}, "isn't a JSON pointer");
  refused(JsonNumbers{.key = "a", .dtype = DType::i32, .scale = 2}, "only floating fields");
  refused(JsonNumbers{.key = "a", .dtype = DType::i32, .missing = 0.5},
          "missing = 0.5: expected a number that i32 can represent");
  for (const auto& [dtype, missing] : std::vector<std::pair<DType, double>>{{DType::i8, 128},
                                                                            {DType::i8, -129},
                                                                            {DType::u8, -1},
                                                                            {DType::pred, 2},
                                                                            {DType::i64, 0x1p63},
                                                                            {DType::i32, INFINITY},
                                                                            {DType::f16, 1e6},
                                                                            {DType::f32, 1e300}}) {
    refused(JsonNumbers{.key = "a", .dtype = dtype, .missing = missing},
            fmt::format("missing = {}: expected a number that {} can represent", missing,
                        to_string(dtype)));
  }
  for (const auto& [dtype, missing] :
       std::vector<std::pair<DType, double>>{{DType::i8, -128},
                                             {DType::u8, 255},
                                             {DType::pred, 1},
                                             {DType::i64, -0x1p63},
                                             {DType::f16, 65504},
                                             {DType::f32, NAN},
                                             {DType::bf16, -INFINITY},
                                             {DType::f32, 0.1}}) {
    EXPECT_NO_THROW(
        (void)json_lines(path, {JsonNumbers{.key = "a", .dtype = dtype, .missing = missing}}));
  }
  refused(JsonBytes{.key = "a"}, "length = 0");
  expect_error(Errc::invalid_argument, {"has no fields"}, [&] { (void)json_lines(path, {}); });
}

TEST_F(TextFiles, TokensOfTextsBecomeWindows) {
  const TokenizerPtr gpt2 = golden("gpt2");
  const std::string out = (folder_ / "tokens").string();
  const TokenFileSummary summary =
      write_token_file(out, {file("{\"t\": \"The quick fox\"}\n{\"t\": \"words\"}\n")}, *gpt2,
                       {.separator = "<|endoftext|>", .json_key = "t"});
  EXPECT_EQ(summary.num_documents, 2);
  EXPECT_EQ(summary.token_bytes, 2);
  const std::int32_t end = gpt2->token_to_id("<|endoftext|>").value();
  Ids first = gpt2->encode("The quick fox").ids;
  const std::int64_t length = std::ssize(first);
  const DatasetPtr windows =
      token_file(out, {.length = length, .separator = static_cast<std::uint32_t>(end)});
  EXPECT_EQ(read<std::int32_t>(*windows, 0, "tokens"), first);
  first.erase(first.begin());
  first.push_back(end);
  EXPECT_EQ(read<std::int32_t>(*windows, 0, "targets"), first);
  EXPECT_EQ(windows->size(), 2);

  expect_error(Errc::invalid_argument, {"separator = 'x y': expected a token"},
               [&] { (void)write_token_file(out, {file("text")}, *gpt2, {.separator = "x y"}); });
  expect_error(Errc::corrupt, {"file: line 2: key 't': expected a text"}, [&] {
    (void)write_token_file(out, {file("{\"t\": \"\"}\n{\"t\": 1}\n")}, *gpt2, {.json_key = "t"});
  });
  // The writes above have failed, so the old file is still there.
  EXPECT_EQ(token_file(out, {.length = length})->fields(), windows->fields());
}

}  // namespace
}  // namespace weft::text_files_test
