#include "actors/message/schema.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <weft/message/aggregate.hpp>
#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr int kLevelsMax = 32;
constexpr std::uint32_t kArrayCountMax = 1U << 16;
constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

SchemaType type_of(SchemaType::Kind kind, std::uint32_t bytes = 0) {
  SchemaType type;
  type.kind = kind;
  type.bytes = bytes;
  return type;
}

/// Returns whether each value of the type has at least one byte.
bool has_bytes(const SchemaType& type) {
  if (type.kind == SchemaType::Kind::array) return type.count > 0;  // its elements have bytes
  if (type.kind != SchemaType::Kind::record) return true;
  return std::ranges::any_of(type.parts, [](const auto& field) { return has_bytes(field.type); });
}

class SchemaReader {
 public:
  explicit SchemaReader(std::string_view text) : text_(text) {}

  EndpointSchema endpoint() {
    EndpointSchema schema{.text = std::string(text_)};
    schema.name = word();
    expect("(");
    if (!accept(")")) {
      do schema.arguments.push_back(type());
      while (accept(","));
      expect(")");
    }
    if (accept("->")) schema.result = type();
    schema.is_const = accept(" const");
    if (at_ != text_.size()) refuse("its end");
    return schema;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    fail(Errc::corrupt, "schema \"{}\": expected {} at character {}", text_, expected, at_ + 1);
  }
  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) refuse(fmt::format("\"{}\"", token));
  }
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin) refuse("a name");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::uint32_t number(std::uint32_t most) {
    std::uint32_t value = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value > most) refuse(fmt::format("a number of at most {}", most));
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  SchemaType type() {
    if (++level_ > kLevelsMax) refuse(fmt::format("at most {} levels of types", kLevelsMax));
    const std::size_t begin = at_;
    const auto finish = [&](SchemaType& made) { made.text = text_.substr(begin, at_ - begin); };
    SchemaType made = base();
    finish(made);
    for (;;) {
      SchemaType outer;
      if (accept("[]")) {
        outer.kind = SchemaType::Kind::list;
      } else if (accept("[")) {
        outer.kind = SchemaType::Kind::array;
        outer.count = number(kArrayCountMax);
        if (!has_bytes(made)) refuse("elements that have bytes");  // bytes limit the loop over them
        expect("]");
      } else if (accept("?")) {
        outer.kind = SchemaType::Kind::optional;
      } else {
        break;
      }
      if (++suffixes_ > kLevelsMax) refuse(fmt::format("at most {} suffixes", kLevelsMax));
      outer.parts.push_back({.type = std::move(made)});
      made = std::move(outer);
      finish(made);
    }
    --level_;
    return made;
  }

  SchemaType base() {
    if (accept("{")) return record();
    if (accept("map<")) {
      SchemaType map = type_of(SchemaType::Kind::map);
      map.parts.push_back({.type = type()});
      expect(",");
      map.parts.push_back({.type = type()});
      expect(">");
      return map;
    }
    for (const std::string_view pipe : {"pipe_reader<", "pipe_writer<"}) {
      if (!accept(pipe)) continue;
      (void)type();
      expect(">");
      return {};
    }
    const bool is_enum = accept("enum:");
    const std::string name = word();
    SchemaType made = named(name);
    if (is_enum && made.bytes == 0) refuse("the number type of an enum");
    made.is_enum = is_enum;
    return made;
  }

  static SchemaType named(std::string_view name) {
    using Kind = SchemaType::Kind;
    if (name == "bool") return type_of(Kind::boolean);
    if (name == "text") return type_of(Kind::text);
    if (name == "tensor") return type_of(Kind::tensor);
    if (name == "actor") return type_of(Kind::actor);
    for (const std::uint32_t bytes : {1U, 2U, 4U, 8U, 16U}) {
      const std::string bits = std::to_string(8 * bytes);
      if (name == "i" + bits) return type_of(Kind::integer, bytes);
      if (name == "u" + bits) return type_of(Kind::natural, bytes);
      if (name == "f" + bits) return type_of(Kind::real, bytes);
    }
    return type_of(Kind::other);
  }

  SchemaType record() {
    SchemaType record = type_of(SchemaType::Kind::record);
    if (accept("}")) return record;
    do record.parts.push_back(field());
    while (accept(","));
    expect("}");
    return record;
  }

  SchemaField field() {
    SchemaField field;
    if (!text_.substr(at_).starts_with("enum:")) {
      std::size_t end = at_;
      while (end < text_.size() && is_word(text_[end])) ++end;
      if (end > at_ && end < text_.size() && text_[end] == ':') {
        field.name = text_.substr(at_, end - at_);
        at_ = end + 1;
      }
    }
    field.type = type();
    if (accept("=")) field.initial = hex();
    return field;
  }

  std::vector<std::byte> hex() {
    std::vector<std::byte> bytes;
    for (;;) {
      const auto digit = [&](std::size_t i) {
        return i < text_.size() ? kHexDigits.find(text_[i]) : std::string_view::npos;
      };
      const std::size_t high = digit(at_);
      const std::size_t low = digit(at_ + 1);
      if (high == std::string_view::npos || low == std::string_view::npos) break;
      bytes.push_back(static_cast<std::byte>(high << 4U | low));
      at_ += 2;
    }
    if (bytes.empty()) refuse("two hex digits for each byte of a default value");
    return bytes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int level_ = 0;
  int suffixes_ = 0;
};

}  // namespace

namespace detail {

bool has_handles(std::string_view schema) {
  for (const std::string_view type : {"tensor", "actor", "pipe_reader", "pipe_writer"}) {
    for (std::size_t at = schema.find(type); at != schema.npos; at = schema.find(type, at + 1)) {
      const std::size_t end = at + type.size();
      const bool begins = at == 0 || !is_word(schema[at - 1]);
      const bool ends = end == schema.size() || (!is_word(schema[end]) && schema[end] != ':');
      if (begins && ends) return true;  // it isn't a part of a field's name
    }
  }
  return false;
}

std::string default_in_schema(std::string_view schema, const MessageWriter& value) {
  const std::span<const std::byte> bytes = value.bytes();
  const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
  const bool has_other_default = schema.find('=') != schema.npos;
  if (bytes.empty() || (!has_other_default && std::ranges::all_of(bytes, is_zero))) return "";
  std::string text = "=";
  for (const std::byte byte : bytes) {
    text += kHexDigits[std::to_integer<unsigned>(byte) >> 4U];
    text += kHexDigits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

}  // namespace detail

EndpointSchema parse_endpoint_schema(std::string_view text) {
  return SchemaReader(text).endpoint();
}

}  // namespace weft
