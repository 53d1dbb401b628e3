#include "data/text/text_normalizer.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "data/text/unicode.hpp"

namespace weft {
namespace {

struct PointRange {
  char32_t first;
  char32_t last;
};

/// BERT puts spaces around these characters. The seventh range begins at 0x2b920, as in the library
/// `tokenizers`, although Unicode's begins at 0x2b820.
constexpr std::array<PointRange, 8> kIdeographs{{{0x3400, 0x4dbf},
                                                 {0x4e00, 0x9fff},
                                                 {0xf900, 0xfaff},
                                                 {0x20000, 0x2a6df},
                                                 {0x2a700, 0x2b73f},
                                                 {0x2b740, 0x2b81f},
                                                 {0x2b920, 0x2ceaf},
                                                 {0x2f800, 0x2fa1f}}};

bool is_ideograph(char32_t point) {
  return std::ranges::any_of(kIdeographs, [&](const PointRange& range) {
    return point >= range.first && point <= range.last;
  });
}

/// Replaces each character by the text that `change(out, point, bytes)` appends to `out`.
template <typename Change>
void change_points(Word& word, Change change) {
  std::string changed;
  changed.reserve(word.text.size());
  for_each_point(word.text, [&](char32_t point, std::string_view bytes) {
    change(changed, point, bytes);
    word.is_first = word.is_first && !changed.empty();
  });
  word.text = std::move(changed);
}

template <typename Test>
void remove_points(Word& word, Test test) {
  change_points(word, [&](std::string& out, char32_t point, std::string_view bytes) {
    if (!test(point)) out += bytes;
  });
}

void lower(Word& word) {
  change_points(
      word, [](std::string& out, char32_t point, std::string_view) { append_lower(out, point); });
}

void clean(Word& word) {
  change_points(word, [](std::string& out, char32_t point, std::string_view bytes) {
    constexpr char32_t kReplacement = 0xfffd;
    const bool is_line_end = point == '\t' || point == '\n' || point == '\r';
    if (is_line_end || is_white_space(point)) {
      if (is_line_end || !is_other(point)) out += ' ';
    } else if (point != 0 && point != kReplacement && !is_other(point)) {
      out += bytes;
    }
  });
}

void space_ideographs(Word& word) {
  change_points(word, [](std::string& out, char32_t point, std::string_view bytes) {
    const bool is_spaced = is_ideograph(point);
    if (is_spaced) out += ' ';
    out += bytes;
    if (is_spaced) out += ' ';
  });
}

TextNormalizer read_bert(const JsonView& json) {
  const bool is_lower = json["lowercase"].flag_or(true);
  const bool is_clean = json["clean_text"].flag_or(true);
  const bool is_spaced = json["handle_chinese_chars"].flag_or(true);
  const bool is_stripped = json["strip_accents"].flag_or(is_lower);
  return [=](Word& word) {
    if (is_clean) clean(word);
    if (is_spaced) space_ideographs(word);
    if (is_stripped) {
      word.text = normalized(word.text, NormalForm::nfd);
      remove_points(word, is_nonspacing_mark);
    }
    if (is_lower) lower(word);
  };
}

TextNormalizer read_form(NormalForm form) {
  return [form](Word& word) { word.text = normalized(word.text, form); };
}

TextNormalizer read_strip(const JsonView& json) {
  const bool is_left = json["strip_left"].flag_or(true);
  const bool is_right = json["strip_right"].flag_or(true);
  return [=](Word& word) {
    std::string& text = word.text;
    std::size_t begin = text.size();
    std::size_t end = 0;
    for_each_point(text, [&](char32_t point, std::string_view bytes) {
      if (is_white_space(point)) return;
      const auto at = static_cast<std::size_t>(bytes.data() - text.data());
      begin = std::min(begin, at);
      end = at + bytes.size();
    });
    if (!is_left) begin = 0;
    if (!is_right) end = text.size();
    word.is_first = word.is_first && begin == 0;
    text = begin < end ? text.substr(begin, end - begin) : "";
  };
}

TextNormalizer read_replace(const JsonView& json) {
  return
      [pattern = read_text_pattern(json["pattern"]), content = json["content"].text()](Word& word) {
        std::string changed;
        pattern.cut(word.text, [&](const CutPart& part) {
          changed += part.is_match ? content : part.text;
          word.is_first = word.is_first && !changed.empty();
        });
        word.text = std::move(changed);
      };
}

TextNormalizer read_steps(const JsonView& json) {
  std::vector<TextNormalizer> steps;
  for (const JsonView& step : json["normalizers"].items()) {
    steps.push_back(read_text_normalizer(step));
  }
  return [steps = std::move(steps)](Word& word) {
    for (const TextNormalizer& step : steps) step(word);
  };
}

/// The letters that stand for bytes 0 to 255. Printable Latin characters stand for themselves.
struct ByteLetters {
  std::array<char32_t, 256> letter_of{};
  std::array<std::int16_t, 512> byte_of{};

  ByteLetters() {
    byte_of.fill(-1);
    char32_t next = 256;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool is_printed = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
      letter_of[byte] = is_printed ? byte : next++;
      byte_of[letter_of[byte]] = static_cast<std::int16_t>(byte);
    }
  }
};

const ByteLetters& byte_letters() {
  static const ByteLetters letters;
  return letters;
}

const std::vector<JsonKind<TextNormalizer>>& normalizer_kinds() {
  using Json = const JsonView&;
  static const std::vector<JsonKind<TextNormalizer>> kinds{
      {"BertNormalizer", read_bert},
      {"ByteLevel",
       [](Json) -> TextNormalizer {
         return [](Word& word) { word.text = to_byte_letters(word.text); };
       }},
      {"Lowercase", [](Json) -> TextNormalizer { return lower; }},
      {"NFC", [](Json) { return read_form(NormalForm::nfc); }},
      {"NFD", [](Json) { return read_form(NormalForm::nfd); }},
      {"NFKC", [](Json) { return read_form(NormalForm::nfkc); }},
      {"NFKD", [](Json) { return read_form(NormalForm::nfkd); }},
      {"Prepend",
       [](Json json) -> TextNormalizer {
         return [before = json["prepend"].text()](Word& word) {
           if (!word.text.empty()) word.text.insert(0, before);
         };
       }},
      {"Replace", read_replace},
      {"Sequence", read_steps},
      {"Strip", read_strip},
      {"StripAccents",
       [](Json) -> TextNormalizer { return [](Word& word) { remove_points(word, is_mark); }; }},
  };
  return kinds;
}

}  // namespace

TextNormalizer read_text_normalizer(const JsonView& json) {
  if (json.is_null()) return [](Word&) {};
  return read_kind<TextNormalizer>(json, normalizer_kinds());
}

TextPattern read_text_pattern(const JsonView& json) {
  if (!json["String"].is_null()) return TextPattern::literal(json["String"].text());
  return TextPattern::regex(json["Regex"].text());
}

std::string to_byte_letters(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() + bytes.size() / 4);
  for (const char byte : bytes) {
    append_point(letters, byte_letters().letter_of[static_cast<unsigned char>(byte)]);
  }
  return letters;
}

bool append_byte_of_letter(std::string& bytes, char32_t letter) {
  const auto& byte_of = byte_letters().byte_of;
  if (letter >= byte_of.size() || byte_of[letter] < 0) return false;
  bytes += static_cast<char>(byte_of[letter]);
  return true;
}

}  // namespace weft
