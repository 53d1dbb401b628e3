#include "data/text/unicode.hpp"

#include <utility>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

namespace weft {
namespace {

UChar32 icu_point(char32_t point) { return static_cast<UChar32>(point); }

bool is_of(char32_t point, std::uint32_t categories) {
  return (U_GET_GC_MASK(icu_point(point)) & categories) != 0;
}

const icu::Normalizer2& normalizer_of(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::nfc: found = icu::Normalizer2::getNFCInstance(status); break;
    case NormalForm::nfd: found = icu::Normalizer2::getNFDInstance(status); break;
    case NormalForm::nfkc: found = icu::Normalizer2::getNFKCInstance(status); break;
    case NormalForm::nfkd: found = icu::Normalizer2::getNFKDInstance(status); break;
  }
  WEFT_CHECK(U_SUCCESS(status) && found != nullptr, u_errorName(status));
  return *found;
}

/// Converts an expression of Oniguruma to ICU's syntax, in which \s, \S and \h have another
/// meaning.
std::string to_icu(std::string_view expression) {
  std::string icu;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] != '\\' || i + 1 == expression.size()) {
      icu += expression[i];
      continue;
    }
    switch (const char escaped = expression[++i]) {
      case 's': icu += "\\p{White_Space}"; break;
      case 'S': icu += "\\P{White_Space}"; break;
      case 'h': icu += "[0-9a-fA-F]"; break;
      case 'H': icu += "[^0-9a-fA-F]"; break;
      default: (icu += '\\') += escaped;
    }
  }
  return icu;
}

/// Converts positions from UTF-16, in which ICU matches, to UTF-8. Positions must be converted in
/// ascending order.
class Utf8Place {
 public:
  explicit Utf8Place(const icu::UnicodeString& text) : text_(text) {}

  std::size_t of(std::int32_t unit) {
    while (unit_ < unit) {
      const UChar32 point = text_.char32At(unit_);
      unit_ += U16_LENGTH(point);
      byte_ += static_cast<std::size_t>(U8_LENGTH(point));
    }
    return byte_;
  }

 private:
  const icu::UnicodeString& text_;
  std::int32_t unit_ = 0;
  std::size_t byte_ = 0;
};

}  // namespace

void check_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = first_character(text.substr(at)).bytes;
    if (bytes == 0) {
      fail(Errc::invalid_argument,
           "byte {} of {} (0x{:02x}) isn't UTF-8; convert the text (iconv -t UTF-8)", at,
           text.size(), static_cast<unsigned char>(text[at]));
    }
    at += bytes;
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  return icu::UnicodeString::fromUTF8(
             icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())))
      .toUTF8String(valid);
}

void append_point(std::string& text, char32_t point) {
  char bytes[U8_MAX_LENGTH];
  std::int32_t count = 0;
  U8_APPEND_UNSAFE(bytes, count, icu_point(point));
  text.append(bytes, static_cast<std::size_t>(count));
}

bool is_white_space(char32_t point) {
  return u_hasBinaryProperty(icu_point(point), UCHAR_WHITE_SPACE) != 0;
}

bool is_word_point(char32_t point) {
  constexpr char32_t kJoiners[] = {0x200c, 0x200d};
  return u_hasBinaryProperty(icu_point(point), UCHAR_ALPHABETIC) != 0 ||
         is_of(point, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) || point == kJoiners[0] ||
         point == kJoiners[1];
}

bool is_mark(char32_t point) { return is_of(point, U_GC_M_MASK); }
bool is_nonspacing_mark(char32_t point) { return is_of(point, U_GC_MN_MASK); }
bool is_punctuation(char32_t point) { return is_of(point, U_GC_P_MASK); }
bool is_numeric(char32_t point) { return is_of(point, U_GC_N_MASK); }
bool is_other(char32_t point) {
  return is_of(point, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK | U_GC_CS_MASK);
}

void append_lower(std::string& text, char32_t point) {
  constexpr char32_t kCapitalDottedI = 0x130;  // only its lower case has two characters
  constexpr char32_t kDotAbove = 0x307;
  if (point == kCapitalDottedI) {
    append_point(text, U'i');
    append_point(text, kDotAbove);
  } else {
    append_point(text, static_cast<char32_t>(u_tolower(icu_point(point))));
  }
}

std::string normalized(std::string_view text, NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  std::string result;
  icu::StringByteSink<std::string> sink(&result);
  normalizer_of(form).normalizeUTF8(
      0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
      status);
  WEFT_CHECK(U_SUCCESS(status), u_errorName(status));
  return result;
}

struct TextPattern::Regex {
  std::unique_ptr<const icu::RegexPattern> compiled;
};

TextPattern TextPattern::literal(std::string text) {
  TextPattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

TextPattern TextPattern::regex(std::string_view expression) {
  UErrorCode status = U_ZERO_ERROR;
  UParseError where{};
  auto regex = std::make_shared<Regex>();
  regex->compiled.reset(icu::RegexPattern::compile(icu::UnicodeString::fromUTF8(to_icu(expression)),
                                                   UREGEX_MULTILINE | UREGEX_UNIX_LINES, where,
                                                   status));
  if (U_FAILURE(status)) {
    fail(Errc::corrupt, "the regular expression '{}' has an error near character {}: {}",
         visible(expression.substr(0, 200)), where.offset, u_errorName(status));
  }
  TextPattern pattern;
  pattern.regex_ = std::move(regex);
  return pattern;
}

void TextPattern::cut(std::string_view text,
                      const std::function<void(const CutPart&)>& take) const {
  std::size_t done = 0;
  const auto add_match = [&](std::size_t begin, std::size_t end) {
    if (begin > done) take({text.substr(done, begin - done), false});
    take({text.substr(begin, end - begin), true});
    done = end;
  };
  if (regex_ == nullptr) {
    for (std::size_t at = text.find(literal_); !literal_.empty() && at != text.npos;
         at = text.find(literal_, done)) {
      add_match(at, at + literal_.size());
    }
  } else {
    UErrorCode status = U_ZERO_ERROR;
    const icu::UnicodeString units = icu::UnicodeString::fromUTF8(
        icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())));
    const std::unique_ptr<icu::RegexMatcher> matcher(regex_->compiled->matcher(units, status));
    // The maximum number of ICU's steps for a match. A step is about 10,000 operations.
    constexpr std::int32_t kStepsMax = 1'000;
    if (matcher != nullptr) matcher->setTimeLimit(kStepsMax, status);
    Utf8Place place(units);
    std::int32_t last_end = -1;
    while (U_SUCCESS(status) && matcher->find(status)) {
      const std::int32_t begin = matcher->start(status);
      const std::int32_t end = matcher->end(status);
      if (begin == end && end == last_end) continue;
      const std::size_t begin_byte = place.of(begin);
      add_match(begin_byte, place.of(end));
      last_end = end;
    }
    if (U_FAILURE(status)) {
      fail(Errc::corrupt, "a regular expression fails on a text of {} bytes: {}", text.size(),
           u_errorName(status));
    }
  }
  if (done < text.size()) take({text.substr(done), false});
}

}  // namespace weft
