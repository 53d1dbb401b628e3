#include "tests/support/fake_pjrt/fake_module.hpp"

#include <cstdint>
#include <regex>
#include <stdexcept>

namespace weft::testing {
namespace {

std::size_t element_bytes(const std::string& element) {
  if (element == "i1") return 1;
  const std::size_t digits = element.find_first_of("0123456789");
  if (digits == std::string::npos) throw std::invalid_argument("type " + element);
  return std::stoul(element.substr(digits)) / 8;
}

FakeType type_of(const std::string& text) {
  FakeType type{.text = text};
  std::string rest = text;
  std::size_t count = 1;
  for (std::size_t x; (x = rest.find('x')) != std::string::npos; rest = rest.substr(x + 1)) {
    count *= std::stoul(rest.substr(0, x));
  }
  type.bytes = count * element_bytes(rest);
  return type;
}

/// Calls `each` for every match of the pattern.
template <typename Each>
void for_matches(const std::string& text, const char* pattern, Each&& each) {
  const std::regex regex(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) each(*at);
}

/// A reader of the wire format of protocol buffers.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    text = {};
    number = 0;
    switch (key & 7) {
      case 0: number = varint(); break;
      case 1: text = take(8); break;
      case 2: text = take(varint()); break;
      default: throw std::invalid_argument("compile options: an unknown wire type");
    }
    return true;
  }

  int field = 0;
  std::uint64_t number = 0;
  std::string_view text{};

 private:
  std::string_view take(std::uint64_t size) {
    if (size > rest_.size()) throw std::invalid_argument("compile options: cut short");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  }

  std::string_view rest_;
};

void parse_flag(std::string_view bytes, FakeOptions& options) {
  std::string name;
  for (Fields entry(bytes); entry.next();) {
    if (entry.field == 1) name = entry.text;
    if (entry.field != 2) continue;
    for (Fields value(entry.text); value.next();) {
      if (value.field == 2) options.flags[name] = value.number != 0;
    }
  }
}

}  // namespace

FakeSignature parse_signature(const std::string& text) {
  FakeSignature signature;
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(R"(module @([A-Za-z0-9_]+))"))) {
    throw std::invalid_argument("expected a module with a name");
  }
  signature.name = match[1];
  const std::size_t begin = text.find("@main(");
  const std::size_t arrow = text.find("->", begin);
  const std::size_t end = text.find(" {\n", arrow);
  if (begin == std::string::npos || arrow == std::string::npos || end == std::string::npos) {
    throw std::invalid_argument("expected a function @main with results");
  }
  for_matches(text.substr(begin, arrow - begin),
              R"(tensor<([^>]*)>(?: \{tf\.aliasing_output = (\d+))?)", [&](const auto& argument) {
                std::optional<std::size_t> result;
                if (argument[2].matched) result = std::stoul(argument[2]);
                signature.arguments.push_back({type_of(argument[1]), result});
              });
  for_matches(text.substr(arrow, end - arrow), "tensor<([^>]*)>",
              [&](const auto& result) { signature.results.push_back(type_of(result[1])); });
  return signature;
}

FakeOptions parse_options(std::string_view bytes) {
  FakeOptions options;
  for (Fields all(bytes); all.next();) {
    if (all.field == 7) parse_flag(all.text, options);
    if (all.field != 3) continue;
    for (Fields build(all.text); build.next();) {
      if (build.field == 4) options.replicas = build.number;
    }
  }
  return options;
}

}  // namespace weft::testing
