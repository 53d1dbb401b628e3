#include <weft/data/tokenizer.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/formats/strict_json.hpp"
#include "data/remote/input_file.hpp"
#include "data/remote/storages.hpp"
#include "data/text/added_tokens.hpp"
#include "data/text/post_template.hpp"
#include "data/text/pre_tokenizer.hpp"
#include "data/text/text_normalizer.hpp"
#include "data/text/token_decoder.hpp"
#include "data/text/token_model.hpp"
#include "data/text/tokenizer_options.hpp"
#include "data/text/unicode.hpp"

namespace weft {
namespace {

/// The largest size of a text, because ICU counts in 32 bits.
constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;
constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 28;

/// Removes tokens on this side until `count` tokens remain.
void shorten(std::vector<std::int32_t>& ids, std::size_t count, TextSide side) {
  if (ids.size() <= count) return;
  if (side == TextSide::left) {
    ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(count));
  } else {
    ids.resize(count);
  }
}

void pad(Encoding& encoding, const Padding& padding) {
  const auto multiple = static_cast<std::size_t>(padding.multiple_of);
  std::size_t length = std::max(encoding.ids.size(), static_cast<std::size_t>(padding.length));
  length = (length + multiple - 1) / multiple * multiple;
  const std::size_t count = length - encoding.ids.size();
  const auto add = [&](auto& elements, auto element) {
    elements.insert(padding.side == TextSide::left ? elements.begin() : elements.end(), count,
                    element);
  };
  add(encoding.ids, padding.id);
  add(encoding.type_ids, padding.type_id);
  add(encoding.attention_mask, std::uint8_t{0});
  add(encoding.special_mask, std::uint8_t{1});
}

}  // namespace

struct Tokenizer::Parts {
  explicit Parts(const JsonView& json)
      : normalize(read_text_normalizer(json["normalizer"])),
        cut_words(read_pre_tokenizer(json["pre_tokenizer"])),
        model(read_token_model(json["model"])),
        added(json["added_tokens"], normalize),
        decode(read_token_decoder(json["decoder"])),
        around(read_post_template(json["post_processor"])),
        truncation(read_truncation(json["truncation"])),
        padding(read_padding(json["padding"])) {
    end = model->vocabulary().end();
    for (const auto& [id, content] : added.contents()) {
      added_ids.emplace(content, id);
      end = std::max(end, id + 1);
    }
    for (const auto* parts : {&around.single, &around.pair}) {
      for (const TemplatePart& part : *parts) {
        for (const std::int32_t id : part.special) {
          if (token(id) == nullptr) {
            fail(Errc::corrupt, "post_processor: token {} isn't in the vocabulary", id);
          }
        }
      }
    }
  }

  const std::string* token(std::int32_t id) const {
    const auto found = added.contents().find(id);
    return found != added.contents().end() ? &found->second : model->vocabulary().token(id);
  }

  std::vector<std::int32_t> tokens_of(std::string_view text) const {
    if (text.size() > kTextBytesMax) {
      fail(Errc::invalid_argument, "the text has {} bytes; at most {} are possible: cut the text",
           text.size(), kTextBytesMax);
    }
    check_utf8(text);
    std::vector<std::int32_t> ids;
    for (const TokenCut& part : added.cut(text)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
        continue;
      }
      Word normal{std::string(part.text), part.text.data() == text.data()};
      normalize(normal);
      for (const TokenCut& inner : added.cut_normalized(normal.text)) {
        if (inner.id >= 0) {
          ids.push_back(inner.id);
        } else {
          add_words({std::string(inner.text), normal.is_first}, ids);
        }
        normal.is_first = false;
      }
    }
    return ids;
  }

  void add_words(Word whole, std::vector<std::int32_t>& ids) const {
    std::vector<Word> words{std::move(whole)};
    cut_words(words);
    for (const Word& word : words) model->encode(word.text, ids);
  }

  TextNormalizer normalize;
  PreTokenizer cut_words;
  TokenModelPtr model;
  AddedTokens added;
  TokenDecoder decode;
  PostTemplate around;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  TextMap<std::int32_t> added_ids;
  std::int32_t end = 0;
};

namespace {

/// Shortens the token lists so that, together with `num_special` other tokens, they don't exceed
/// the limit.
void truncate(const Truncation& truncation, std::int64_t num_special,
              std::span<std::vector<std::int32_t>> texts) {
  using Strategy = Truncation::Strategy;
  if (truncation.max_length < num_special) {
    fail(Errc::invalid_argument,
         "max_length = {}: expected at least {}, the number of special tokens",
         truncation.max_length, num_special);
  }
  const auto most = static_cast<std::size_t>(truncation.max_length - num_special);
  std::size_t total = 0;
  for (const auto& text : texts) total += text.size();
  if (total <= most) return;
  if (truncation.strategy == Strategy::longest_first) {
    if (texts.size() == 1) return shorten(texts[0], most, truncation.side);
    // The shorter text isn't shortened if it has at most half of the allowed tokens.
    const bool is_first_shorter = texts[0].size() <= texts[1].size();
    auto& shorter = texts[is_first_shorter ? 0 : 1];
    auto& longer = texts[is_first_shorter ? 1 : 0];
    const bool is_whole = shorter.size() <= most / 2;
    const std::size_t kept = is_whole ? shorter.size() : most / 2;
    shorten(shorter, kept, truncation.side);
    return shorten(longer, most - kept, truncation.side);
  }
  const std::size_t cut = truncation.strategy == Strategy::only_first ? 0 : 1;
  if (cut >= texts.size()) {
    fail(Errc::invalid_argument, "strategy = only_second: there is no second text");
  }
  const std::size_t surplus = total - most;
  if (texts[cut].size() <= surplus) {
    fail(Errc::invalid_argument,
         "max_length = {}: the text to be cut has {} tokens, and {} would have to be removed: "
         "raise max_length, or choose strategy = longest_first",
         truncation.max_length, texts[cut].size(), surplus);
  }
  shorten(texts[cut], texts[cut].size() - surplus, truncation.side);
}

Encoding assemble(std::span<const TemplatePart> parts,
                  std::span<const std::vector<std::int32_t>> texts, bool has_special) {
  Encoding encoding;
  for (const TemplatePart& part : parts) {
    const bool is_special = part.sequence < 0;
    if (is_special && !has_special) continue;
    const auto& ids = is_special ? part.special : texts[static_cast<std::size_t>(part.sequence)];
    encoding.ids.insert(encoding.ids.end(), ids.begin(), ids.end());
    encoding.type_ids.resize(encoding.ids.size(), part.type_id);
    encoding.special_mask.resize(encoding.ids.size(), is_special ? 1 : 0);
  }
  encoding.attention_mask.assign(encoding.ids.size(), 1);
  return encoding;
}

Encoding encode_texts(std::span<std::vector<std::int32_t>> texts,
                      std::span<const TemplatePart> parts, const EncodeOptions& options,
                      const std::optional<Truncation>& truncation,
                      const std::optional<Padding>& padding) {
  if (truncation) {
    check_truncation(*truncation);
    std::int64_t num_special = 0;
    for (const TemplatePart& part : parts) {
      if (options.special_tokens) num_special += std::ssize(part.special);
    }
    truncate(*truncation, num_special, texts);
  }
  Encoding encoding = assemble(parts, texts, options.special_tokens);
  if (padding) {
    check_padding(*padding);
    pad(encoding, *padding);
  }
  return encoding;
}

const std::optional<Truncation>& chosen(const std::optional<Truncation>& option,
                                        const std::optional<Truncation>& file) {
  return option ? option : file;
}
const std::optional<Padding>& chosen(const std::optional<Padding>& option,
                                     const std::optional<Padding>& file) {
  return option ? option : file;
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

TokenizerPtr Tokenizer::load(const std::string& path) {
  std::error_code unreachable;
  const bool is_folder =
      is_remote(path) ? !path.ends_with(".json") : std::filesystem::is_directory(path, unreachable);
  const InputFile file(is_folder ? without_last_slash(path) + "/tokenizer.json" : path);
  return of_file(file.path(), [&] {
    if (file.bytes() > kFileBytesMax) {
      fail(Errc::corrupt, "has {} bytes; a tokenizer.json has at most {}", file.bytes(),
           kFileBytesMax);
    }
    const std::vector<std::byte> bytes = file.head(file.bytes());
    return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  });
}

TokenizerPtr Tokenizer::parse(std::string_view json) {
  const nlohmann::json parsed = parse_json(json);
  return TokenizerPtr(new Tokenizer(std::make_unique<const Parts>(JsonView(parsed))));
}

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<std::int32_t> texts[] = {parts_->tokens_of(text)};
  return encode_texts(texts, parts_->around.single, options,
                      chosen(options.truncation, parts_->truncation),
                      chosen(options.padding, parts_->padding));
}

Encoding Tokenizer::encode(std::string_view text, std::string_view second,
                           const EncodeOptions& options) const {
  std::vector<std::int32_t> texts[] = {parts_->tokens_of(text), parts_->tokens_of(second)};
  return encode_texts(texts, parts_->around.pair, options,
                      chosen(options.truncation, parts_->truncation),
                      chosen(options.padding, parts_->padding));
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> pieces;
  for (const std::int32_t id : ids) {
    const std::string* const token = parts_->token(id);
    if (token == nullptr) {
      fail(Errc::invalid_argument, "decode: no token has the id {}; ids are 0 to {}", id,
           parts_->end - 1);
    }
    if (!skip_special_tokens || !parts_->added.is_special(*token)) pieces.push_back(*token);
  }
  parts_->decode(pieces);
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  return text;
}

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto found = parts_->added_ids.find(token);
  if (found != parts_->added_ids.end()) return found->second;
  return parts_->model->vocabulary().find(token);
}

std::optional<std::string> Tokenizer::id_to_token(std::int32_t id) const {
  const std::string* const token = parts_->token(id);
  if (token == nullptr) return {};
  return *token;
}

std::int64_t Tokenizer::vocab_size() const { return parts_->end; }
const std::optional<Truncation>& Tokenizer::truncation() const { return parts_->truncation; }
const std::optional<Padding>& Tokenizer::padding() const { return parts_->padding; }

}  // namespace weft
