/// Reads the fuzz input as the preamble of a wire, as the header of a collective between hosts, and
/// as the address of a wire.

#include "tests/fuzz/fuzz.hpp"
#include "transport/collectives/call_record.hpp"
#include "transport/wires/wire_address.hpp"
#include "transport/wires/wire_preamble.hpp"

namespace weft {
namespace {

void use_preamble(std::span<const std::byte, kWirePreambleBytes> bytes) {
  read_or_refuse(bytes, [&](std::span<const std::byte>) {
    const WirePreamble preamble = decode_preamble(bytes);
    const WirePreambleBytes again = encode(preamble);
    WEFT_CHECK(std::equal(again.begin(), again.end(), bytes.begin()));
  });
}

void use_header(CallHeader header) {
  const Mesh mesh({2, 2}, {"data", "model"});
  for (const bool is_signed : {false, true}) {
    if (is_signed) header.signature = signature_of(header.number, digest_of(header.words));
    const auto call = read_header(header);
    WEFT_CHECK(!is_signed || call.has_value() == (header.number != 0));
    if (call) WEFT_CHECK(!to_string(*call, mesh).empty());
  }
}

void use_address(std::string_view text) {
  try {
    const WireAddress address = parse_wire_address(text, "address");
    WEFT_CHECK(to_string(parse_wire_address(to_string(address), "address")) == to_string(address));
  } catch (const Error& error) {
    WEFT_CHECK(error.code() == Errc::invalid_argument, error.what());
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  use_address({reinterpret_cast<const char*>(data), size});
  if (size >= kWirePreambleBytes) use_preamble(bytes.first<kWirePreambleBytes>());
  if (size >= sizeof(CallHeader)) {
    CallHeader header;
    std::memcpy(&header, data, sizeof header);
    use_header(header);
  }
  return 0;
}
