#include "data/text/pre_tokenizer.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "data/text/text_normalizer.hpp"
#include "data/text/unicode.hpp"

namespace weft {
namespace {

/// Says what happens to the matches of a pattern when a word is cut at them.
enum class CutBehavior : std::uint8_t { removed, isolated, with_previous, with_next, contiguous };

CutBehavior read_behavior(const JsonView& json) {
  const std::string& name = json.text();
  if (name == "Removed") return CutBehavior::removed;
  if (name == "Isolated") return CutBehavior::isolated;
  if (name == "MergedWithPrevious") return CutBehavior::with_previous;
  if (name == "MergedWithNext") return CutBehavior::with_next;
  if (name == "Contiguous") return CutBehavior::contiguous;
  json.refuse("Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

/// Returns whether the part belongs to the same word as the part before it.
bool joins(CutBehavior behavior, const CutPart& before, const CutPart& part) {
  switch (behavior) {
    case CutBehavior::removed:
    case CutBehavior::isolated: return false;
    case CutBehavior::with_previous: return part.is_match && !before.is_match;
    case CutBehavior::with_next: return before.is_match && !part.is_match;
    case CutBehavior::contiguous: return before.is_match == part.is_match;
  }
  return false;
}

/// Replaces each word by its parts. `cut(text, take)` calls `take` for each part of the word, in
/// order. `behavior` says which parts are joined or removed.
template <typename Cut>
void cut_words(std::vector<Word>& words, CutBehavior behavior, Cut cut) {
  std::vector<Word> made;
  for (const Word& word : words) {
    CutPart before{};
    bool has_before = false;
    cut(std::string_view(word.text), [&](const CutPart& part) {
      if (has_before && joins(behavior, before, part)) {
        made.back().text += part.text;
      } else if (!(behavior == CutBehavior::removed && part.is_match)) {
        made.push_back(
            {std::string(part.text), word.is_first && part.text.data() == word.text.data()});
      }
      before = part;
      has_before = true;
    });
  }
  std::erase_if(made, [](const Word& word) { return word.text.empty(); });
  words = std::move(made);
}

template <typename Test>
PreTokenizer cut_at_points(CutBehavior behavior, Test test) {
  return [behavior, test](std::vector<Word>& words) {
    cut_words(words, behavior, [&](std::string_view text, auto take) {
      std::size_t begin = 0;
      for_each_point(text, [&](char32_t point, std::string_view bytes) {
        if (!test(point)) return;
        const auto at = static_cast<std::size_t>(bytes.data() - text.data());
        if (at > begin) take(CutPart{text.substr(begin, at - begin), false});
        take(CutPart{bytes, true});
        begin = at + bytes.size();
      });
      if (begin < text.size()) take(CutPart{text.substr(begin), false});
    });
  };
}

PreTokenizer cut_at_pattern(TextPattern pattern, CutBehavior behavior, bool is_inverted = false) {
  return [=](std::vector<Word>& words) {
    cut_words(words, behavior, [&](std::string_view text, auto take) {
      pattern.cut(text, [&](CutPart part) {
        part.is_match = part.is_match != is_inverted;
        take(part);
      });
    });
  };
}

PreTokenizer in_turn(std::vector<PreTokenizer> steps) {
  return [steps = std::move(steps)](std::vector<Word>& words) {
    for (const PreTokenizer& step : steps) step(words);
  };
}

bool is_bert_punctuation(char32_t point) {
  const bool is_ascii = (point >= 33 && point <= 47) || (point >= 58 && point <= 64) ||
                        (point >= 91 && point <= 96) || (point >= 123 && point <= 126);
  return is_ascii || is_punctuation(point);
}

PreTokenizer read_byte_level(const JsonView& json) {
  constexpr std::string_view kGpt2 =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  std::vector<PreTokenizer> steps;
  if (json["add_prefix_space"].flag_or(true)) {
    steps.emplace_back([](std::vector<Word>& words) {
      for (Word& word : words) {
        if (!word.text.starts_with(' ')) word.text.insert(0, " ");
      }
    });
  }
  if (json["use_regex"].flag_or(true)) {
    steps.push_back(cut_at_pattern(TextPattern::regex(kGpt2), CutBehavior::isolated));
  }
  steps.emplace_back([](std::vector<Word>& words) {
    for (Word& word : words) word.text = to_byte_letters(word.text);
  });
  return in_turn(std::move(steps));
}

PreTokenizer read_metaspace(const JsonView& json) {
  const std::string letter = json["replacement"].text();
  const PrependScheme scheme = read_prepend_scheme(json);
  std::vector<PreTokenizer> steps{[=](std::vector<Word>& words) {
    for (Word& word : words) {
      std::string text;
      for (const char c : word.text) c == ' ' ? text += letter : text += c;
      const bool is_wanted =
          scheme == PrependScheme::always || (scheme == PrependScheme::first && word.is_first);
      word.text = is_wanted && !text.starts_with(letter) ? letter + text : text;
    }
  }};
  if (json["split"].flag_or(true)) {
    steps.push_back(cut_at_pattern(TextPattern::literal(letter), CutBehavior::with_next));
  }
  return in_turn(std::move(steps));
}

PreTokenizer read_steps_in_turn(const JsonView& json) {
  std::vector<PreTokenizer> steps;
  for (const JsonView& step : json["pretokenizers"].items()) {
    steps.push_back(read_pre_tokenizer(step));
  }
  return in_turn(std::move(steps));
}

/// Returns the pre-tokenizer that cuts a text into runs of word characters, and runs of other
/// characters that aren't white space.
PreTokenizer cut_whitespace() {
  return [](std::vector<Word>& words) {
    cut_words(words, CutBehavior::removed, [](std::string_view text, auto take) {
      enum class Kind : std::uint8_t { space, word, other };
      std::size_t begin = 0;
      Kind kind{};
      const auto end_run = [&](std::size_t end) {
        if (end > begin) take(CutPart{text.substr(begin, end - begin), kind == Kind::space});
        begin = end;
      };
      for_each_point(text, [&](char32_t point, std::string_view bytes) {
        const Kind next = is_word_point(point)    ? Kind::word
                          : is_white_space(point) ? Kind::space
                                                  : Kind::other;
        if (next != kind) end_run(static_cast<std::size_t>(bytes.data() - text.data()));
        kind = next;
      });
      end_run(text.size());
    });
  };
}

const std::vector<JsonKind<PreTokenizer>>& pre_tokenizer_kinds() {
  using Json = const JsonView&;
  static const std::vector<JsonKind<PreTokenizer>> kinds{
      {"BertPreTokenizer",
       [](Json) {
         return in_turn({cut_at_points(CutBehavior::removed, is_white_space),
                         cut_at_points(CutBehavior::isolated, is_bert_punctuation)});
       }},
      {"ByteLevel", read_byte_level},
      {"CharDelimiterSplit",
       [](Json json) {
         return cut_at_pattern(TextPattern::literal(json["delimiter"].text()),
                               CutBehavior::removed);
       }},
      {"Digits",
       [](Json json) {
         const bool is_each = json["individual_digits"].flag_or(false);
         return cut_at_points(is_each ? CutBehavior::isolated : CutBehavior::contiguous,
                              is_numeric);
       }},
      {"Metaspace", read_metaspace},
      {"Punctuation",
       [](Json json) {
         const JsonView behavior = json["behavior"];
         return cut_at_points(behavior.is_null() ? CutBehavior::isolated : read_behavior(behavior),
                              is_bert_punctuation);
       }},
      {"Sequence", read_steps_in_turn},
      {"Split",
       [](Json json) {
         return cut_at_pattern(read_text_pattern(json["pattern"]), read_behavior(json["behavior"]),
                               json["invert"].flag_or(false));
       }},
      {"Whitespace", [](Json) { return cut_whitespace(); }},
      {"WhitespaceSplit", [](Json) { return cut_at_points(CutBehavior::removed, is_white_space); }},
  };
  return kinds;
}

}  // namespace

PreTokenizer read_pre_tokenizer(const JsonView& json) {
  if (json.is_null()) return [](std::vector<Word>&) {};
  return read_kind<PreTokenizer>(json, pre_tokenizer_kinds());
}

PrependScheme read_prepend_scheme(const JsonView& metaspace) {
  const JsonView scheme = metaspace["prepend_scheme"];
  if (scheme.is_null()) {
    return metaspace["add_prefix_space"].flag_or(true) ? PrependScheme::always
                                                       : PrependScheme::never;
  }
  if (scheme.text() == "always") return PrependScheme::always;
  if (scheme.text() == "first") return PrependScheme::first;
  if (scheme.text() == "never") return PrependScheme::never;
  scheme.refuse("always, first or never");
}

}  // namespace weft
