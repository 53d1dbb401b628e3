#include "actors/user/actor_protocol.hpp"

#include <string>

#include <weft/message/codec.hpp>

namespace weft {
namespace {

constexpr std::size_t kErrorBytesMax = std::size_t{16} << 10;

}  // namespace

void put_error(MessageWriter& out, const Error& error) {
  MessageCodec<std::uint8_t>::put(out, static_cast<std::uint8_t>(error.code()));
  MessageCodec<std::string>::put(out, std::string_view(error.what()).substr(0, kErrorBytesMax));
}

Error get_error(MessageReader& in) {
  const auto code = MessageCodec<std::uint8_t>::get(in);
  std::string text = MessageCodec<std::string>::get(in);
  in.finish();
  if (to_string(static_cast<Errc>(code)) == "unknown") {
    fail(Errc::corrupt, "a message has the unknown error code {}: {}", code, text);
  }
  return {static_cast<Errc>(code), std::move(text)};
}

}  // namespace weft
