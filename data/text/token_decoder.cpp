#include "data/text/token_decoder.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "data/text/pre_tokenizer.hpp"
#include "data/text/text_normalizer.hpp"
#include "data/text/unicode.hpp"

namespace weft {
namespace {

using Pieces = std::vector<std::string>;

void fuse(Pieces& pieces) {
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  pieces = {std::move(text)};
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string replaced;
  TextPattern::literal(std::string(from)).cut(text, [&](const CutPart& part) {
    replaced += part.is_match ? to : part.text;
  });
  return replaced;
}

TokenDecoder read_byte_level_decoder(const JsonView&) {
  return [](Pieces& pieces) {
    std::string bytes;
    for (const std::string& piece : pieces) {
      const std::size_t before = bytes.size();
      bool is_bytes = true;
      for_each_point(piece, [&](char32_t point, std::string_view) {
        is_bytes = is_bytes && append_byte_of_letter(bytes, point);
      });
      // An added token isn't written in letters that stand for bytes.
      if (!is_bytes) bytes.replace(before, std::string::npos, piece);
    }
    pieces = {replace_invalid_utf8(bytes)};
  };
}

std::optional<char> byte_of_token(std::string_view token) {
  constexpr std::string_view kForm = "<0x00>";
  if (token.size() != kForm.size() || !token.starts_with("<0x") || !token.ends_with('>')) return {};
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(&token[3], &token[5], byte, 16);
  if (error != std::errc() || end != &token[5]) return {};
  return static_cast<char>(byte);
}

/// Turns runs of bytes into text. If a run isn't valid UTF-8, each of its bytes becomes U+FFFD.
void join_bytes(Pieces& pieces) {
  Pieces made;
  std::string bytes;
  const auto end_run = [&] {
    if (bytes.empty()) return;
    std::string text = replace_invalid_utf8(bytes);
    if (text != bytes) {
      text.clear();
      for (std::size_t i = 0; i < bytes.size(); ++i) append_point(text, 0xfffd);
    }
    made.push_back(std::move(text));
    bytes.clear();
  };
  for (std::string& piece : pieces) {
    if (const auto byte = byte_of_token(piece)) {
      bytes += *byte;
    } else {
      end_run();
      made.push_back(std::move(piece));
    }
  }
  end_run();
  pieces = std::move(made);
}

/// Restores the usual spacing of English, for example no space before a full stop.
std::string clean_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kReplaced{
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" do not", " don't"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kReplaced) text = replace_all(text, from, to);
  return text;
}

TokenDecoder read_word_piece(const JsonView& json) {
  return [prefix = json["prefix"].text_or("##"),
          is_clean = json["cleanup"].flag_or(true)](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0 && pieces[i].starts_with(prefix)) {
        pieces[i].erase(0, prefix.size());
      } else if (i > 0) {
        pieces[i].insert(0, " ");
      }
      if (is_clean) pieces[i] = clean_up(std::move(pieces[i]));
    }
  };
}

TokenDecoder read_bpe_decoder(const JsonView& json) {
  return [suffix = json["suffix"].text_or("</w>")](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = replace_all(pieces[i], suffix, i + 1 < pieces.size() ? " " : "");
    }
  };
}

TokenDecoder read_metaspace_decoder(const JsonView& json) {
  const bool is_prepended = read_prepend_scheme(json) != PrependScheme::never;
  return [letter = json["replacement"].text(), is_prepended](Pieces& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i] = replace_all(pieces[i], letter, i == 0 && is_prepended ? "" : " ");
    }
  };
}

TokenDecoder read_strip_decoder(const JsonView& json) {
  constexpr std::int64_t kCountMax = 1 << 20;
  return [letter = json["content"].text(), first = json["start"].integer(0, kCountMax),
          last = json["stop"].integer(0, kCountMax)](Pieces& pieces) {
    if (letter.empty()) return;
    for (std::string& piece : pieces) {
      for (std::int64_t i = 0; i < first && piece.starts_with(letter); ++i) {
        piece.erase(0, letter.size());
      }
      for (std::int64_t i = 0; i < last && piece.ends_with(letter); ++i) {
        piece.resize(piece.size() - letter.size());
      }
    }
  };
}

TokenDecoder read_replace_decoder(const JsonView& json) {
  return [replace = read_text_normalizer(json)](Pieces& pieces) {
    for (std::string& piece : pieces) {
      Word word{std::move(piece)};
      replace(word);
      piece = std::move(word.text);
    }
  };
}

TokenDecoder read_decoders(const JsonView& json) {
  std::vector<TokenDecoder> steps;
  for (const JsonView& step : json["decoders"].items()) steps.push_back(read_token_decoder(step));
  return [steps = std::move(steps)](Pieces& pieces) {
    for (const TokenDecoder& step : steps) step(pieces);
  };
}

const std::vector<JsonKind<TokenDecoder>>& decoder_kinds() {
  static const std::vector<JsonKind<TokenDecoder>> kinds{
      {"BPEDecoder", read_bpe_decoder},
      {"ByteFallback", [](const JsonView&) -> TokenDecoder { return join_bytes; }},
      {"ByteLevel", read_byte_level_decoder},
      {"Fuse", [](const JsonView&) -> TokenDecoder { return fuse; }},
      {"Metaspace", read_metaspace_decoder},
      {"Replace", read_replace_decoder},
      {"Sequence", read_decoders},
      {"Strip", read_strip_decoder},
      {"WordPiece", read_word_piece},
  };
  return kinds;
}

}  // namespace

TokenDecoder read_token_decoder(const JsonView& json) {
  if (!json.is_null()) return read_kind<TokenDecoder>(json, decoder_kinds());
  return [](Pieces& pieces) {
    for (std::size_t i = 1; i < pieces.size(); ++i) pieces[i].insert(0, " ");
  };
}

}  // namespace weft
