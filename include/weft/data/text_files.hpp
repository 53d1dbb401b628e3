#pragma once
/// Datasets of text: lines and JSON lines.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <weft/data/dataset.hpp>
#include <weft/data/tokenizer.hpp>

namespace weft {

/// A text as fields of one shape: its tokens are cut or padded to `length`.
struct TokenField {
  TokenizerPtr tokenizer{};
  std::int64_t length = 512;
  std::string name = "tokens";  ///< i32[length]
  /// The names of further fields. Default: there is no such field.
  std::string mask{};      ///< pred[length]: true for tokens, false for padding
  std::string type_ids{};  ///< i32[length]: for a pair, the number of the text that a token is from
  bool special_tokens = true;
  /// The token that pads a short text. Default: the one in tokenizer.json; it is an error if the
  /// file has none.
  std::optional<std::int32_t> pad_id{};
};

/// Reads a text file; each line is an item, even an empty one. Opening reads the file once to find
/// where lines begin, and keeps 8 bytes in memory for each line; texts become tokens when items are
/// read. Throws as data/files.hpp says, and throws invalid_argument for a field without tokenizer
/// or pad_id. A line that isn't UTF-8 throws corrupt when it is read.
DatasetPtr text_file(const std::string& path, const TokenField& tokens);

/// Numbers of a JSON object. A key is the name of a member; a key that begins with a slash is a
/// JSON pointer (RFC 6901), such as "/meta/scores/0". Lists are nested as `shape` says.
struct JsonNumbers {
  std::string key{};
  std::string name{};  ///< default: the key
  DType dtype = DType::f32;
  Shape shape{};     ///< default: one number
  double scale = 1;  ///< as in FileField
  double offset = 0;
  /// The value of every element if the key's value is null or missing; the dtype must be able to
  /// represent it. Default: null or a missing value is an error.
  std::optional<double> missing{};
};
/// Text as tokens, or two texts as a pair.
struct JsonTokens {
  std::string key = "text";
  std::string second{};
  TokenField tokens{};
};
/// Text as bytes: u8[length], padded with zeros. A longer text is an error.
struct JsonBytes {
  std::string key{};
  std::string name{};  ///< default: the key
  std::int64_t length = 0;
};
using JsonField = std::variant<JsonNumbers, JsonTokens, JsonBytes>;

/// Reads JSON lines: each line is an object and an item; lines with only white space are skipped.
/// Opening reads the file once, as text_file() does. A value that is missing, or has another type
/// or shape, throws corrupt, with line and key.
DatasetPtr json_lines(const std::string& path, std::vector<JsonField> fields);

struct TokenFileOptions {
  /// The token that ends each document, such as "<|endoftext|>"; pass it to token_file() as
  /// `separator`.
  std::string separator{};
  /// The key of the text in files of JSON lines. Default: each file is plain text and one document.
  std::string json_key{};
};
struct TokenFileSummary {
  std::int64_t num_tokens = 0;
  std::int64_t num_documents = 0;
  int token_bytes = 2;  ///< 4 if the vocabulary is larger than 65,536
};
/// Writes the tokens of all texts to one file, one text after another, without special tokens.
/// token_file() makes windows of this file for a language model. Run it in a program before the
/// job. The file appears at `path` complete, or not at all. Throws invalid_argument for a separator
/// that is no token.
TokenFileSummary write_token_file(const std::string& path, const std::vector<std::string>& texts,
                                  const Tokenizer& tokenizer, const TokenFileOptions& options = {});

}  // namespace weft
