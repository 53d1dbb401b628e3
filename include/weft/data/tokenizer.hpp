#pragma once
/// Tokenizer: turns text into tokens and back, as Hugging Face's tokenizers library does with the
/// same tokenizer.json.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class TextSide : std::uint8_t { left, right };

struct Truncation {
  enum class Strategy : std::uint8_t {
    longest_first,  ///< cuts the longer text of a pair, and both once they are equally long
    only_first,
    only_second,
  };
  /// The largest number of tokens, including special tokens.
  std::int64_t max_length = 512;
  Strategy strategy = Strategy::longest_first;
  TextSide side = TextSide::right;  ///< the side where tokens are removed
};

struct Padding {
  /// The smallest number of tokens. Default: the number that the text has.
  std::int64_t length = 0;
  std::int64_t multiple_of = 1;
  std::int32_t id = 0;
  std::int32_t type_id = 0;
  TextSide side = TextSide::right;  ///< the side where tokens are added
};

struct EncodeOptions {
  /// Adds special tokens, such as [CLS] and [SEP].
  bool special_tokens = true;
  /// Default: the options in tokenizer.json, which may have none.
  std::optional<Truncation> truncation{};
  std::optional<Padding> padding{};
};

/// The tokens of a text or a pair. All vectors have the same size.
struct Encoding {
  std::vector<std::int32_t> ids{};
  /// For a pair, the number of the text that a token is from.
  std::vector<std::int32_t> type_ids{};
  std::vector<std::uint8_t> attention_mask{};  ///< 1 for a token, 0 for padding
  std::vector<std::uint8_t> special_mask{};    ///< 1 for tokens that belong to no text
};

/// Immutable: any thread may make any call. Texts must be UTF-8; otherwise calls throw
/// invalid_argument.
///
/// The models are BPE (of bytes, as in GPT-2, or with byte_fallback), WordPiece and WordLevel. Most
/// normalizers, pre-tokenizers, post-processors and decoders work; others are refused by name.
/// Characters that are newer than ICU's version of Unicode may be split differently than by the
/// tokenizers library, which has its own tables.
class Tokenizer {
 public:
  /// Loads a tokenizer.json, or the folder that has it. Throws not_found or io with the path;
  /// corrupt for a file that isn't of the format; version, with the name of the component, for a
  /// component that weft doesn't support.
  static std::shared_ptr<const Tokenizer> load(const std::string& path);
  /// Reads the text of a tokenizer.json.
  static std::shared_ptr<const Tokenizer> parse(std::string_view json);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  /// Throws invalid_argument for options that don't fit, such as a max_length that is too small.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Encodes a pair, such as a question and a passage.
  Encoding encode(std::string_view text, std::string_view second,
                  const EncodeOptions& options = {}) const;
  /// Returns the text of the tokens. Throws invalid_argument for an id that no token has.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;

  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(std::int32_t id) const;
  /// Returns the largest id plus one: the number of rows that an embedding needs.
  std::int64_t vocab_size() const;
  /// Return the options in tokenizer.json; std::nullopt if it has none.
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

}  // namespace weft
