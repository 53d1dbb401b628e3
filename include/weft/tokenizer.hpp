#pragma once
/// Tokenizer: text to tokens and back, as Hugging Face's tokenizers does it, of its tokenizer.json.

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
    longest_first,  ///< of a pair, the longer text is cut, and then both alike
    only_first,
    only_second,
  };
  /// Tokens that remain, special ones counted.
  std::int64_t max_length = 512;
  Strategy strategy = Strategy::longest_first;
  TextSide side = TextSide::right;  ///< where tokens are removed
};

struct Padding {
  /// Tokens there are at least. Default: as many as the text has.
  std::int64_t length = 0;
  std::int64_t multiple_of = 1;
  std::int32_t id = 0;
  std::int32_t type_id = 0;
  TextSide side = TextSide::right;  ///< where tokens are added
};

struct EncodeOptions {
  /// Adds special tokens, such as [CLS] and [SEP].
  bool special_tokens = true;
  /// Default: the file's, which may have none.
  std::optional<Truncation> truncation{};
  std::optional<Padding> padding{};
};

/// The tokens of a text, or of a pair. All vectors have one size.
struct Encoding {
  std::vector<std::int32_t> ids{};
  std::vector<std::int32_t> type_ids{};        ///< of a pair, which text each token is of
  std::vector<std::uint8_t> attention_mask{};  ///< 1, or 0 for padding
  std::vector<std::uint8_t> special_mask{};    ///< 1 for tokens that are of no text
};

/// Immutable: every call may come from any thread. Texts are UTF-8; others are invalid_argument.
///
/// Models are BPE (of bytes, as GPT-2's, or with byte_fallback), WordPiece and WordLevel; most
/// normalizers, pre-tokenizers, post-processors and decoders are read, and others are refused by
/// name. Characters that Unicode got after ICU's version may be cut otherwise than by
/// tokenizers, which has tables of its own.
class Tokenizer {
 public:
  /// A tokenizer.json, or the folder that has it. Throws not_found or io with the path; corrupt for
  /// a file that isn't of the format; version, naming it, for a component that weft doesn't read.
  static std::shared_ptr<const Tokenizer> load(const std::string& path);
  /// The text of a tokenizer.json.
  static std::shared_ptr<const Tokenizer> parse(std::string_view json);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  /// Throws invalid_argument for options that a text can't have.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// A pair, such as a question and a passage.
  Encoding encode(std::string_view text, std::string_view second,
                  const EncodeOptions& options = {}) const;
  /// Throws invalid_argument for an id that no token has.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = true) const;

  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(std::int32_t id) const;
  /// One more than the largest id: the rows that an embedding needs.
  std::int64_t vocab_size() const;
  /// The file's own; none if it says nothing.
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;

 private:
  struct Parts;
  explicit Tokenizer(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

using TokenizerPtr = std::shared_ptr<const Tokenizer>;

}  // namespace weft
