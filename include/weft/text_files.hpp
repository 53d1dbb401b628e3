#pragma once
/// Datasets of text: lines, and JSON lines.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/tokenizer.hpp>

namespace weft {

/// A text becomes fields of one shape: its tokens are cut or filled up to `length`.
struct TokenField {
  TokenizerPtr tokenizer{};
  std::int64_t length = 512;
  std::string name = "tokens";  ///< i32[length]
  /// Names of further fields. Default: there is no such field.
  std::string mask{};      ///< pred[length]: true for tokens, false for what is filled up
  std::string type_ids{};  ///< i32[length]: of a pair, which text each token is of
  bool special_tokens = true;
  /// The token that fills a short text up. Default: tokenizer.json's; an error if it has none.
  std::optional<std::int32_t> pad_id{};
};

/// Each line of a text file is an item; an empty line, too. Opening reads the file once for where
/// lines begin, 8 bytes for each; texts become tokens as items are read. Throws as <data_files.hpp>
/// says, and invalid_argument for a field without tokenizer or pad_id. A line that isn't UTF-8 is
/// corrupt when it is read.
DatasetPtr text_file(const std::string& path, const TokenField& tokens);

/// Numbers of a JSON object. A key is a member's name, or, if it begins with a slash, a pointer
/// (RFC 6901): "/meta/scores/0". Lists are nested as `shape` says.
struct JsonNumbers {
  std::string key{};
  std::string name{};  ///< default: the key
  DType dtype = DType::f32;
  Shape shape{};     ///< default: one number
  double scale = 1;  ///< as FileField's
  double offset = 0;
  /// Stands for every element where the value is null or missing; a number that the dtype has.
  /// Default: that is an error.
  std::optional<double> missing{};
};
/// Text as tokens, or two texts as a pair.
struct JsonTokens {
  std::string key = "text";
  std::string second{};
  TokenField tokens{};
};
/// Text as bytes: u8[length], filled up with zeros. A longer one is an error.
struct JsonBytes {
  std::string key{};
  std::string name{};  ///< default: the key
  std::int64_t length = 0;
};
using JsonField = std::variant<JsonNumbers, JsonTokens, JsonBytes>;

/// Each line is a JSON object and an item; lines of white space alone are none. Opening reads the
/// file once, as text_file() does. What an object doesn't have, or has with another type or shape,
/// is corrupt, with line and key.
DatasetPtr json_lines(const std::string& path, std::vector<JsonField> fields);

struct TokenFileOptions {
  /// The token that ends each document, for token_file()'s `separator`: "<|endoftext|>".
  std::string separator{};
  /// The key of the text in files of JSON lines. Default: each file is plain text, one document.
  std::string json_key{};
};
struct TokenFileSummary {
  std::int64_t num_tokens = 0;
  std::int64_t num_documents = 0;
  int token_bytes = 2;  ///< 4 if the vocabulary is larger than 65,536
};
/// Writes the tokens of texts, one behind the other without special ones, to a file from which
/// token_file() makes windows for a language model. For a program that runs before a job. The file
/// appears at `path` whole, or not at all. Throws invalid_argument for a separator that is no
/// token.
TokenFileSummary write_token_file(const std::string& path, const std::vector<std::string>& texts,
                                  const Tokenizer& tokenizer, const TokenFileOptions& options = {});

}  // namespace weft
