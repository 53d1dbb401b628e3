#include "data/remote/xml.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr int kDepthMax = 16;
constexpr std::size_t kElementsMax = std::size_t{1} << 17;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

class XmlParser {
 public:
  explicit XmlParser(std::string_view text) : text_(text) {}

  XmlElement root() {
    skip_misc();
    XmlElement element = read_element(0);
    skip_misc();
    if (at_ != text_.size()) fail_here("more than one root");
    return element;
  }

 private:
  [[noreturn]] void fail_here(const char* what) const {
    fail(Errc::corrupt, "XML at byte {}: {}", at_, what);
  }
  bool has(std::string_view mark) const { return text_.substr(at_).starts_with(mark); }
  void skip_past(std::string_view mark) {
    const std::size_t found = text_.find(mark, at_);
    if (found == std::string_view::npos) fail_here("the text ends too early");
    at_ = found + mark.size();
  }

  /// Skips spaces, comments and instructions.
  void skip_misc() {
    for (;;) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      if (!skip_aside()) return;
    }
  }
  bool skip_aside() {
    if (has("<?")) {
      skip_past("?>");
    } else if (has("<!--")) {
      skip_past("-->");
    } else {
      return false;
    }
    return true;
  }

  /// Reads an element from its '<' to the '>' of its end tag.
  XmlElement read_element(int depth) {
    if (!has("<") || has("</") || has("<!")) fail_here("expected an element");
    if (depth == kDepthMax) fail_here("elements are nested too deeply");
    if (++count_ > kElementsMax) fail_here("there are too many elements");
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && !is_space(text_[at_]) && text_[at_] != '>' && text_[at_] != '/') {
      ++at_;
    }
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty() || name.find('<') != std::string_view::npos) fail_here("expected a name");
    XmlElement element{.name = std::string(name.substr(name.rfind(':') + 1))};
    if (skip_attributes()) return element;
    read_content(element, depth);
    if (!text_.substr(at_).starts_with(name)) fail_here("an element ends in another one");
    at_ += name.size();
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    if (!has(">")) fail_here("expected '>'");
    ++at_;
    return element;
  }

  /// Skips attributes up to and including the '>'. Returns true if the element ends there ("/>").
  bool skip_attributes() {
    char quote = '\0';
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '<') {
        fail_here("'<' in an element's attributes");
      } else if (c == '>') {
        ++at_;
        return text_[at_ - 2] == '/';
      }
    }
    fail_here("the text ends too early");
  }

  /// Reads the content of an element and the "</" of its end tag.
  void read_content(XmlElement& element, int depth) {
    for (;;) {
      const std::size_t next = text_.find('<', at_);
      if (next == std::string_view::npos) fail_here("the text ends too early");
      add_text(element.text, text_.substr(at_, next - at_));
      at_ = next;
      if (has("</")) {
        at_ += 2;
        return;
      }
      if (!skip_aside()) element.children.push_back(read_element(depth + 1));
    }
  }

  void add_text(std::string& to, std::string_view text) const {
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] != '&') {
        to += text[i++];
        continue;
      }
      const std::size_t end = text.find(';', i);
      if (end == std::string_view::npos) fail_here("an entity without an end");
      add_entity(to, text.substr(i + 1, end - i - 1));
      i = end + 1;
    }
  }

  void add_entity(std::string& to, std::string_view name) const {
    constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
        {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}}};
    const auto known =
        std::ranges::find(kEntities, name, &std::pair<std::string_view, char>::first);
    if (known != kEntities.end()) {
      to += known->second;
      return;
    }
    const bool is_hex = name.starts_with("#x");
    const std::string_view digits = name.starts_with('#') ? name.substr(is_hex ? 2 : 1) : "";
    std::uint32_t code = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, code, is_hex ? 16 : 10);
    if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != end || code == 0 ||
        code > 0x10FFFF) {
      fail_here("an unknown entity");
    }
    add_character(to, code);
  }

  /// Appends a character in UTF-8.
  static void add_character(std::string& to, std::uint32_t code) {
    constexpr std::uint32_t kLow = 0x3F;
    const auto add = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
      add(0xC0 | code >> 6);
    } else {
      if (code < 0x10000) {
        add(0xE0 | code >> 12);
      } else {
        add(0xF0 | code >> 18);
        add(0x80 | (code >> 12 & kLow));
      }
      add(0x80 | (code >> 6 & kLow));
    }
    add(0x80 | (code & kLow));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
};

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const {
  const auto found = std::ranges::find(children, child, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

std::string XmlElement::text_of(std::string_view child) const {
  const XmlElement* const found = find(child);
  return found == nullptr ? "" : found->text;
}

XmlElement parse_xml(std::string_view text) { return XmlParser(text).root(); }

}  // namespace weft
