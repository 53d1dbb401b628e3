#include "transport/wires/ucx_address.hpp"

#include <charconv>
#include <cstddef>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::string_view kUcxPrefix = "ucx:";

}  // namespace

std::string ucx_address(std::string_view bytes) {
  return fmt::format("{}{}:", kUcxPrefix, bytes.size()).append(bytes);
}

std::string_view ucx_bytes(const WirePeer& peer) {
  std::string_view text = peer.address;
  if (text.starts_with(kUcxPrefix)) {
    text.remove_prefix(kUcxPrefix.size());
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (error == std::errc() && size > 0 && text.starts_with(':') && text.size() - 1 == size) {
      return text.substr(1);
    }
  }
  fail(Errc::invalid_argument,
       "wire address of {} ({} bytes): expected \"{}\", a number of bytes, \":\" and as many "
       "bytes of UCX; give both hosts the same backend.wire and the same build",
       to_string(peer.end), peer.address.size(), kUcxPrefix);
}

}  // namespace weft
