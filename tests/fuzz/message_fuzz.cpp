/// Reads the fuzz input as a message of another program: a line with the schema of an endpoint as
/// its caller has it, a line as its callee has it, and the bytes of the arguments.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/message.hpp>

#include "actors/message/schema.hpp"
#include "actors/message/translation.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft::message_fuzz {

struct Everything {
  std::string text;
  std::array<float, 3> numbers{};
  std::optional<std::vector<std::int16_t>> list;
  std::map<std::string, std::vector<bool>> map;
  HostTensor tensor;
};

}  // namespace weft::message_fuzz

WEFT_MESSAGE(weft::message_fuzz::Everything, text, numbers, list, map, tensor);

namespace weft {
namespace {

/// Elements for the tensors of a message.
const std::vector<MessagePayload>& payloads() {
  static const std::vector<std::byte> elements(256);
  static const std::vector<MessagePayload> payloads(3, MessagePayload{.bytes = elements});
  return payloads;
}

void read_value(std::span<const std::byte> bytes) {
  read_or_refuse(bytes, [](std::span<const std::byte> body) {
    MessageReader in(body, payloads());
    const auto value = MessageCodec<message_fuzz::Everything>::get(in);
    // A value that was read can be written, in no more bytes than were there.
    MessageWriter again;
    MessageCodec<message_fuzz::Everything>::put(again, value);
    WEFT_CHECK(again.bytes().size() <= body.size());
  });
}

/// Removes the first line from the text and returns it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

void translate_between(const EndpointSchema& caller, const EndpointSchema& callee,
                       std::span<const std::byte> body) {
  if (!why_untranslatable(caller, callee).empty()) return;
  MessageReader in(body, payloads());
  MessageWriter arguments;
  try {
    for (std::size_t i = 0; i < caller.arguments.size(); ++i) {
      translate(caller.arguments[i], callee.arguments[i], in, arguments);
    }
    if (caller.result) translated_result(callee, caller, MessageReader(body, payloads()));
  } catch (const Error& error) {
    // A few bytes may mean an array of default values that is too long.
    if (error.code() != Errc::invalid_argument) throw;
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  read_value(std::as_bytes(std::span(data, size)));
  const std::string_view caller = take_line(text);
  const std::string_view callee = take_line(text);
  read_or_refuse(std::as_bytes(std::span(text)), [&](std::span<const std::byte> body) {
    translate_between(parse_endpoint_schema(caller), parse_endpoint_schema(callee), body);
  });
  return 0;
}
