#include <weft/data/tokenizer.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"

namespace weft::tokenizer_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::expect_error;

std::string golden(const std::string& name) {
  return testing::golden_path("tokenizers/" + name).string();
}

json read_json(const fs::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

/// Returns a tokenizer of the words "a", "b" and "[UNK]", whose parts a test may replace.
json small_tokenizer() {
  return json::parse(R"({
    "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1, "b": 2}, "unk_token": "[UNK]"},
    "post_processor": null, "decoder": null})");
}

void expect_vector(const Tokenizer& tokenizer, const json& vector, const std::string& where) {
  SCOPED_TRACE(where + ": " + vector["text"].dump());
  const EncodeOptions options{.special_tokens = !vector.contains("no_special_tokens")};
  const std::string text = vector["text"];
  const Encoding encoding = vector.contains("pair")
                                ? tokenizer.encode(text, vector["pair"].get<std::string>(), options)
                                : tokenizer.encode(text, options);
  EXPECT_EQ(json(encoding.ids), vector["ids"]);
  EXPECT_EQ(json(encoding.type_ids), vector["type_ids"]);
  EXPECT_EQ(json(encoding.attention_mask), vector["attention_mask"]);
  EXPECT_EQ(json(encoding.special_mask), vector["special_mask"]);
  EXPECT_EQ(json(tokenizer.decode(encoding.ids)), vector["decoded"]);
  EXPECT_EQ(json(tokenizer.decode(encoding.ids, false)), vector["decoded_whole"]);
}

/// Compares tokenizers with the results that tests/golden/tokenizers/make.py wrote to their folder.
void expect_folder(const fs::path& folder) {
  int num_tokenizers = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".vectors.json")) continue;
    const std::string stem = name.substr(0, name.find('.'));
    const TokenizerPtr tokenizer = Tokenizer::load((folder / (stem + ".json")).string());
    for (const json& vector : read_json(entry.path())) {
      expect_vector(*tokenizer, vector, stem);
      if (::testing::Test::HasFailure()) return;
    }
    ++num_tokenizers;
  }
  EXPECT_GE(num_tokenizers, 1);
}

TEST(Tokenizers, EncodeAndDecodeAsHuggingFaces) {
  expect_folder(testing::golden_path("tokenizers"));
}

TEST(Tokenizers, EncodeAndDecodeAsHuggingFacesInAFolderOfManyTexts) {
  const char* const folder = std::getenv("WEFT_TOKENIZER_VECTORS");
  if (folder == nullptr) GTEST_SKIP() << "WEFT_TOKENIZER_VECTORS names no folder of make.py";
  expect_folder(folder);
}

TEST(Tokenizers, OptionsReplaceThoseOfTheFile) {
  const TokenizerPtr tokenizer = Tokenizer::load(golden("roberta.json"));
  ASSERT_TRUE(tokenizer->truncation() && tokenizer->padding());
  EXPECT_EQ(tokenizer->padding()->id, 1);
  const Encoding encoding =
      tokenizer->encode("many words of text",
                        {.truncation = Truncation{.max_length = 6, .side = TextSide::left},
                         .padding = Padding{.multiple_of = 4, .id = 3, .side = TextSide::left}});
  ASSERT_EQ(encoding.ids.size(), 8U);
  EXPECT_EQ(encoding.attention_mask, (std::vector<std::uint8_t>{0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(encoding.ids[1], 3);
  EXPECT_EQ(encoding.ids[2], tokenizer->token_to_id("<s>"));
  EXPECT_EQ(tokenizer->decode(encoding.ids).substr(tokenizer->decode(encoding.ids).size() - 4),
            "text");
  expect_error(Errc::invalid_argument, {"max_length = 1", "expected at least 2"},
               [&] { (void)tokenizer->encode("a", {.truncation = Truncation{.max_length = 1}}); });
  expect_error(Errc::invalid_argument, {"multiple_of = 0"},
               [&] { (void)tokenizer->encode("a", {.padding = Padding{.multiple_of = 0}}); });
}

TEST(Tokenizers, KnowTheirTokens) {
  const TokenizerPtr tokenizer = Tokenizer::load(golden("bert_uncased.json"));
  EXPECT_EQ(tokenizer->token_to_id("[CLS]"), 2);
  EXPECT_EQ(tokenizer->id_to_token(2), "[CLS]");
  EXPECT_FALSE(tokenizer->token_to_id("[NOTHING]"));
  EXPECT_FALSE(tokenizer->id_to_token(-1));
  // The ids of added tokens follow those of the model.
  const std::int32_t added = tokenizer->token_to_id("newword").value();
  EXPECT_LT(added, tokenizer->vocab_size());
  EXPECT_EQ(tokenizer->id_to_token(added), "newword");
  const std::vector<std::int32_t> outside{2, static_cast<std::int32_t>(tokenizer->vocab_size())};
  expect_error(Errc::invalid_argument, {"no token has the id"},
               [&] { (void)tokenizer->decode(outside); });
}

TEST(Tokenizers, AFolderMayBeNamed) {
  const fs::path folder = fs::temp_directory_path() / "weft-tokenizer-folder";
  fs::create_directories(folder);
  fs::copy_file(golden("gpt2.json"), folder / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(Tokenizer::load(folder.string())->vocab_size(),
            Tokenizer::load(golden("gpt2.json"))->vocab_size());
  fs::remove_all(folder);
  expect_error(Errc::not_found, {"tokenizer-folder"},
               [&] { (void)Tokenizer::load(folder.string()); });
}

TEST(Tokenizers, BadTextIsRefusedWithItsPlace) {
  const TokenizerPtr tokenizer = Tokenizer::parse(small_tokenizer().dump());
  EXPECT_EQ(tokenizer->encode("a b c").ids, (std::vector<std::int32_t>{1, 2, 0}));
  for (const std::string text : {"ab\xff", "ab\xc0\x80", "ab\xed\xa0\x80", "ab\xe2\x82"}) {
    expect_error(Errc::invalid_argument, {"byte 2 of", "isn't UTF-8"},
                 [&] { (void)tokenizer->encode(text); });
  }
}

TEST(Tokenizers, ComponentsThatAreNotReadAreRefusedByName) {
  const auto expect_refused = [](const json& file, Errc code,
                                 std::initializer_list<std::string_view> parts) {
    expect_error(code, parts, [&] { (void)Tokenizer::parse(file.dump()); });
  };
  json file = small_tokenizer();
  file["model"]["type"] = "Unigram";
  expect_refused(file, Errc::version, {"model: type 'Unigram'", "BPE, WordLevel, WordPiece"});
  for (const std::string part : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    file = small_tokenizer();
    file[part] = {{"type", "Strange"}};
    expect_refused(file, Errc::version, {part + ": type 'Strange' isn't one that weft reads"});
    file[part] = "Strange";
    expect_refused(file, Errc::corrupt, {part + ": found \"Strange\"; expected an object"});
  }
  file = small_tokenizer();
  file["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {{{"type", "NFC"}}, {{"type", "Precompiled"}}}}};
  expect_refused(file, Errc::version, {"normalizer.normalizers.1: type 'Precompiled'"});
  file = small_tokenizer();
  file["model"] = {
      {"type", "BPE"}, {"vocab", {{"a", 0}}}, {"merges", json::array()}, {"dropout", 0.1}};
  expect_refused(file, Errc::version, {"model.dropout", "set it to null"});
}

TEST(Tokenizers, DamagedFilesAreRefusedWithThePlace) {
  const auto expect_corrupt = [](const json& file, std::initializer_list<std::string_view> parts) {
    expect_error(Errc::corrupt, parts, [&] { (void)Tokenizer::parse(file.dump()); });
  };
  expect_error(Errc::corrupt, {"isn't valid JSON"}, [] { (void)Tokenizer::parse("{\"model\":"); });
  expect_error(Errc::corrupt, {"levels deep"},
               [] { (void)Tokenizer::parse(std::string(100000, '[')); });
  json file = small_tokenizer();
  file["model"]["vocab"]["b"] = 1;
  expect_corrupt(file, {"model.vocab: id 1 belongs to two tokens"});
  file["model"]["vocab"]["b"] = 60'000'000;
  expect_corrupt(file, {"model.vocab: found 60000000; expected an integer from 0 to 4287"});
  file["model"]["vocab"]["b"] = -1;
  expect_corrupt(file, {"found -1; expected an integer from 0 to"});
  file = small_tokenizer();
  file["model"]["unk_token"] = "c";
  expect_corrupt(file, {"model.unk_token: found \"c\"; expected a token of the vocabulary"});
  file = small_tokenizer();
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
  expect_corrupt(file, {"regular expression '(a'"});
  file = small_tokenizer();
  file["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"s", 7}}, {"cls", {"c", 1}}};
  expect_corrupt(file, {"post_processor: token 7 isn't in the vocabulary"});
  file = small_tokenizer();
  file["model"] = {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", {"a b"}}};
  expect_corrupt(file, {"model.merges.0: found \"a b\""});
}

TEST(Tokenizers, ExpressionsThatTakeTooLongAreRefused) {
  json file = small_tokenizer();
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(a|a)*c"}}}, {"behavior", "Isolated"}};
  const TokenizerPtr tokenizer = Tokenizer::parse(file.dump());
  expect_error(Errc::corrupt, {"regular expression fails on a text of 64 bytes"},
               [&] { (void)tokenizer->encode(std::string(64, 'a')); });
}

TEST(Tokenizers, LongTextsTakeTimeInProportion) {
  // The text is one word of 200,000 letters: the joining of pairs must not be quadratic, nor the
  // cutting of words recursive.
  const TokenizerPtr tokenizer = Tokenizer::load(golden("llama.json"));
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "the \n";
  const std::vector<std::int32_t> ids = tokenizer->encode(text).ids;
  EXPECT_EQ(tokenizer->decode(ids), text);
  const std::string spaces(1 << 18, ' ');
  const TokenizerPtr gpt2 = Tokenizer::load(golden("gpt2.json"));
  EXPECT_EQ(gpt2->decode(gpt2->encode(spaces).ids), spaces);
}

}  // namespace
}  // namespace weft::tokenizer_test
