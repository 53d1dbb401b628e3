/// Reads the fuzz input as one line of a JSON lines file, and looks up values in it.

#include <string>
#include <string_view>

#include "data/datasets/json_record.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

void read_line(std::span<const std::byte> line) {
  const nlohmann::json record =
      parse_json_record({reinterpret_cast<const char*>(line.data()), line.size()});
  WEFT_CHECK(record.is_object());
  for (const std::string key : {"text", "/a/0", "/a/b/c", "/a/-", "/a~1b", "a/b"}) {
    const nlohmann::json* const value = JsonKey(key).find(record);
    if (value != nullptr) WEFT_CHECK(!json_excerpt(*value).empty());
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  weft::read_or_refuse(std::as_bytes(std::span(data, size)), weft::read_line);
  return 0;
}
