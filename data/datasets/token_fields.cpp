#include "data/datasets/token_fields.hpp"

#include <algorithm>
#include <cstring>

#include <weft/tensor/error.hpp>

namespace weft {

TokenFields::TokenFields(const TokenField& options) : options_(options) {
  constexpr std::int64_t kLengthMax = std::int64_t{1} << 30;
  const auto refuse = [&](const std::string& what) {
    fail(Errc::invalid_argument, "token field '{}': {}", options.name, what);
  };
  if (options.tokenizer == nullptr) refuse("tokenizer is null: set it to Tokenizer::load(path)");
  if (options.length < 1 || options.length > kLengthMax) {
    refuse(fmt::format("length = {}: expected 1 to 2^30", options.length));
  }
  const std::optional<Padding>& padding = options.tokenizer->padding();
  if (!options.pad_id && !padding) {
    refuse(
        "pad_id is set neither in the field nor in tokenizer.json; set it to a token of the "
        "vocabulary, such as the end-of-text token");
  }
  encode_.special_tokens = options.special_tokens;
  encode_.truncation = options.tokenizer->truncation().value_or(Truncation{});
  encode_.truncation->max_length = options.length;
  encode_.padding = padding.value_or(Padding{});
  encode_.padding->length = options.length;
  encode_.padding->multiple_of = 1;
  if (options.pad_id) encode_.padding->id = *options.pad_id;
  if (!options.tokenizer->id_to_token(encode_.padding->id)) {
    refuse(fmt::format("pad_id = {}: expected a token of the vocabulary, which has {} tokens",
                       encode_.padding->id, options.tokenizer->vocab_size()));
  }
  fields_.push_back({options.name, {DType::i32, {options.length}}});
  if (!options.mask.empty()) fields_.push_back({options.mask, {DType::pred, {options.length}}});
  if (!options.type_ids.empty()) {
    fields_.push_back({options.type_ids, {DType::i32, {options.length}}});
  }
}

void TokenFields::write(std::string_view text, const std::string_view* second,
                        ItemMemory out) const {
  const Encoding encoding = [&] {
    try {
      return second == nullptr ? options_.tokenizer->encode(text, encode_)
                               : options_.tokenizer->encode(text, *second, encode_);
    } catch (const Error& error) {
      fail(Errc::corrupt, "{}", error.what());
    }
  }();
  WEFT_CHECK(std::ssize(encoding.ids) == options_.length, encoding.ids.size(), options_.length);
  const auto copy = [&](const auto& elements, std::span<std::byte> to) {
    std::memcpy(to.data(), elements.data(), to.size());
  };
  std::size_t field = 0;
  copy(encoding.ids, out[field++]);
  if (!options_.mask.empty()) copy(encoding.attention_mask, out[field++]);
  if (!options_.type_ids.empty()) copy(encoding.type_ids, out[field++]);
}

}  // namespace weft
