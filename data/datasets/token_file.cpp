#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <weft/data/files.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/remote/input_file.hpp"

namespace weft {
namespace {

/// A run of at least two tokens that ends with the separator or with the file.
struct Document {
  std::int64_t begin = 0;  ///< index of the first token
  std::int64_t first_window = 0;
};

std::uint32_t token_at(const std::byte* bytes, std::size_t token_bytes) {
  std::uint32_t token = 0;
  std::memcpy(&token, bytes, token_bytes);
  return token;
}

void check_options(const std::string& path, const TokenOptions& options) {
  const auto refuse = [&](std::string_view what, auto value, std::string_view expected) {
    fail(Errc::invalid_argument, "{}: {} = {}: expected {}", path, what, value, expected);
  };
  constexpr std::int64_t kLengthMax = std::int64_t{1} << 30;
  if (options.length < 1 || options.length > kLengthMax) {
    refuse("length", options.length, "1 to 2^30");
  }
  if (options.token_bytes != 2 && options.token_bytes != 4) {
    refuse("token_bytes", options.token_bytes, "2 or 4");
  }
  if (options.stride < 0) refuse("stride", options.stride, "1 or more");
  if (!options.separator) return;
  if (options.stride != 0 && options.stride != options.length) {
    refuse("stride", options.stride,
           "0 or length, because documents are cut into windows without overlap");
  }
  if (*options.separator > (options.token_bytes == 2 ? 0xffffU : 0x7fffffffU)) {
    refuse("separator", *options.separator, "a token of the file");
  }
}

class Tokens : public Dataset {
 public:
  Tokens(const std::string& path, const TokenOptions& options)
      : file_(path),
        length_(options.length),
        stride_(options.stride == 0 ? options.length : options.stride),
        token_bytes_(static_cast<std::size_t>(options.token_bytes)),
        skip_bytes_(options.skip_bytes),
        separator_(options.separator) {
    check_options(path, options);
    fields_ = {{"tokens", {DType::i32, {length_}}}, {"targets", {DType::i32, {length_}}}};
    if (!options.mask.empty()) fields_.push_back({options.mask, {DType::pred, {length_}}});
    check_fields(path, fields_);
    if (skip_bytes_ > file_.bytes() || (file_.bytes() - skip_bytes_) % token_bytes_ != 0) {
      fail(Errc::corrupt,
           "{} has {} bytes: expected a header of {} bytes, and then tokens of {} bytes each", path,
           file_.bytes(), skip_bytes_, token_bytes_);
    }
    count_ = static_cast<std::int64_t>((file_.bytes() - skip_bytes_) / token_bytes_);
    if (separator_) {
      find_documents();
    } else {
      size_ = count_ > length_ ? (count_ - 1 - length_) / stride_ + 1 : 0;
    }
    if (size_ > 0) return;
    fail(Errc::invalid_argument, "{} has {} tokens, which are too few for a window of length = {}",
         path, count_, length_);
  }

  std::string name() const override { return file_.path(); }
  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  /// Finds the documents. The windows of a document of n tokens cover n - 1 tokens, because the
  /// last token has no next token as its target.
  void find_documents() {
    std::int64_t at = 0;
    std::int64_t begin = 0;
    const auto end_document = [&](std::int64_t end) {
      if (end - begin > 1) {
        documents_.push_back({begin, size_});
        size_ += (end - begin - 1 + length_ - 1) / length_;
      }
      begin = end;
    };
    file_.scan(skip_bytes_, [&](std::span<const std::byte> piece) {
      for (std::size_t i = 0; i < piece.size(); i += token_bytes_) {
        ++at;
        if (token_at(piece.data() + i, token_bytes_) == *separator_) end_document(at);
      }
    });
    end_document(count_);
    documents_.push_back({count_, size_});
  }

  void read_item(const Item& item, ItemMemory out) const override {
    auto* const tokens = reinterpret_cast<std::int32_t*>(out[0].data());
    auto* const targets = reinterpret_cast<std::int32_t*>(out[1].data());
    const auto mask_until = [&](std::int64_t count) {
      if (out.size() < 3) return;
      std::ranges::fill(out[2], std::byte{0});
      std::ranges::fill(out[2].first(static_cast<std::size_t>(count)), std::byte{1});
    };
    if (!separator_) {
      mask_until(length_);
      read_tokens(item.index * stride_, length_, tokens);
      copy_targets(tokens, targets, length_ - 1);
      return read_tokens(item.index * stride_ + length_, 1, targets + length_ - 1);
    }
    const auto after =
        std::ranges::upper_bound(documents_, item.index, {}, &Document::first_window);
    const Document& document = *std::prev(after);
    const std::int64_t begin = document.begin + (item.index - document.first_window) * length_;
    const std::int64_t most = std::min(length_ + 1, count_ - begin);
    read_tokens(begin, std::min(most, length_), tokens);
    // The window may extend beyond the document, which ends with the separator or with the file.
    const auto separator = static_cast<std::int32_t>(*separator_);
    const std::int32_t* const end = std::find(tokens, tokens + std::min(most, length_), separator);
    const std::int64_t there = std::min(end - tokens + 1, std::min(most, length_));
    const bool whole = there == length_ && most > length_ && tokens[length_ - 1] != separator;
    mask_until(there);
    copy_targets(tokens, targets, there - 1);
    std::fill(tokens + there, tokens + length_, separator);
    std::fill(targets + there - 1, targets + length_, kIgnoredToken);
    if (whole) read_tokens(begin + length_, 1, targets + length_ - 1);
  }

  static void copy_targets(const std::int32_t* tokens, std::int32_t* targets, std::int64_t count) {
    std::copy(tokens + 1, tokens + 1 + count, targets);
  }

  /// Reads the stored tokens to the end of `out`, and then widens them to i32 in place, from the
  /// first token on.
  void read_tokens(std::int64_t first, std::int64_t count, std::int32_t* out) const {
    const auto wanted = static_cast<std::size_t>(count);
    const auto bytes = std::as_writable_bytes(std::span(out, wanted)).last(wanted * token_bytes_);
    file_.read(skip_bytes_ + static_cast<std::uint64_t>(first) * token_bytes_, bytes);
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::uint32_t token = token_at(bytes.data() + i * token_bytes_, token_bytes_);
      if (token > 0x7fffffffU) {
        fail(Errc::corrupt, "token {} is {}, which doesn't fit in i32",
             first + static_cast<std::int64_t>(i), token);
      }
      out[i] = static_cast<std::int32_t>(token);
    }
  }

  const InputFile file_;
  const std::int64_t length_;
  const std::int64_t stride_;
  const std::size_t token_bytes_;
  const std::uint64_t skip_bytes_;
  const std::optional<std::uint32_t> separator_;
  std::vector<Field> fields_;
  std::int64_t count_ = 0;  // number of tokens
  std::int64_t size_ = 0;
  std::vector<Document> documents_;  // empty without a separator; the last entry marks the end
};

}  // namespace

DatasetPtr token_file(const std::string& path, const TokenOptions& options) {
  return std::make_shared<const Tokens>(path, options);
}

}  // namespace weft
