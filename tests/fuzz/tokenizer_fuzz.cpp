/// Reads the fuzz input as a tokenizer.json, and encodes and decodes a text with it.

#include <string_view>

#include <weft/data/tokenizer.hpp>

#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_file(std::span<const std::byte> file) {
  const TokenizerPtr tokenizer =
      Tokenizer::parse({reinterpret_cast<const char*>(file.data()), file.size()});
  constexpr std::string_view kText = "The quick\t[MASK] caf\u00e9  \U0001f642 123's\n";
  try {
    const Encoding encoding =
        tokenizer->encode(kText, kText, {.truncation = Truncation{}, .padding = Padding{}});
    WEFT_CHECK(encoding.ids.size() == encoding.type_ids.size() &&
               encoding.ids.size() == encoding.special_mask.size());
    for (const std::int32_t id : encoding.ids) {
      WEFT_CHECK(id >= 0 && id < tokenizer->vocab_size(), id);
    }
    (void)tokenizer->decode(encoding.ids, false);
  } catch (const Error& error) {  // the text has more special tokens than the limit
    if (error.code() != Errc::invalid_argument) throw;
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_file);
  return 0;
}
