#include <cstring>
#include <utility>

#include <weft/data/text_files.hpp>
#include <weft/tensor/error.hpp>

#include "data/datasets/json_record.hpp"
#include "data/datasets/text_lines.hpp"
#include "data/remote/output_file.hpp"
#include "data/remote/scan_progress.hpp"

namespace weft {
namespace {

class TokenWriter {
 public:
  TokenWriter(const std::string& path, const Tokenizer& tokenizer, const std::string& separator)
      : tokenizer_(tokenizer), file_(path) {
    constexpr std::int64_t kTwoBytesMax = 65'536;
    summary_.token_bytes = tokenizer.vocab_size() > kTwoBytesMax ? 4 : 2;
    if (separator.empty()) return;
    separator_ = tokenizer.token_to_id(separator);
    if (!separator_) {
      fail(Errc::invalid_argument,
           "write_token_file: separator = '{}': expected a token of the vocabulary", separator);
    }
  }

  void add(std::string_view document) {
    Encoding encoding =
        tokenizer_.encode(document, {.special_tokens = false,
                                     .truncation = Truncation{.max_length = kAllTokens},
                                     .padding = Padding{}});
    if (separator_) encoding.ids.push_back(*separator_);
    const auto token_bytes = static_cast<std::size_t>(summary_.token_bytes);
    std::vector<std::byte> bytes(encoding.ids.size() * token_bytes);
    for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
      // Bytes needn't be swapped, because the file and all machines that run weft are
      // little-endian.
      std::memcpy(&bytes[i * token_bytes], &encoding.ids[i], token_bytes);
    }
    file_.write(bytes);
    summary_.num_tokens += std::ssize(encoding.ids);
    ++summary_.num_documents;
  }

  TokenFileSummary finish() {
    file_.finish();
    return summary_;
  }

 private:
  static constexpr std::int64_t kAllTokens = std::int64_t{1} << 30;

  const Tokenizer& tokenizer_;
  OutputFile file_;
  std::optional<std::int32_t> separator_;
  TokenFileSummary summary_;
};

void add_json_lines(const std::string& path, const JsonKey& key, TokenWriter& writer) {
  const TextLines lines(path, EmptyLines::left_out);
  ScanProgress progress(path, "lines", lines.size());
  for (std::int64_t line = 0; line < lines.size(); ++line) {
    try {
      const nlohmann::json record = parse_json_record(lines.read(line));
      const nlohmann::json* const text = key.find(record);
      if (text == nullptr || !text->is_string()) {
        fail(Errc::corrupt, "key '{}': expected a text", key.text());
      }
      writer.add(text->get_ref<const std::string&>());
      progress.advance(1);
    } catch (const Error& error) {
      fail(error.code(), "{}: line {}: {}", path, lines.number(line), error.what());
    }
  }
}

}  // namespace

TokenFileSummary write_token_file(const std::string& path, const std::vector<std::string>& texts,
                                  const Tokenizer& tokenizer, const TokenFileOptions& options) {
  if (texts.empty()) fail(Errc::invalid_argument, "write_token_file: there are no texts");
  TokenWriter writer(path, tokenizer, options.separator);
  ScanProgress progress("write_token_file", "files", std::ssize(texts));
  for (const std::string& text : texts) {
    if (!options.json_key.empty()) {
      add_json_lines(text, JsonKey(options.json_key), writer);
      continue;
    }
    const InputFile file(text);
    of_file(text, [&] {
      const std::vector<std::byte> bytes = file.head(file.bytes());
      writer.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
    progress.advance(1);
  }
  return writer.finish();
}

}  // namespace weft
