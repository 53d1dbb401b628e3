#include "transport/wires/wire_preamble.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "transport/wires/ucx_address.hpp"
#include "transport/wires/wire_address.hpp"

namespace weft::wire_preamble_test {
namespace {

using testing::expect_error;

WirePreamble sample() {
  return {.job = "0123456789abcdef0123456789abcdef",
          .generation = 0x1122334455667788,
          .channel = 3,
          .from = {.host = 1, .worker = 2, .chip = 3},
          .to = {.host = 5, .worker = 6, .chip = ~std::uint32_t{0}}};
}

TEST(WirePreamble, IsReadAsItWasWritten) {
  EXPECT_EQ(decode_preamble(encode(sample())), sample());
  WirePreamble longest = sample();
  longest.job = std::string(kWireJobBytes, 'j');
  EXPECT_EQ(decode_preamble(encode(longest)), longest);
}

TEST(WirePreamble, RefusesBytesThatArentOne) {
  const auto changed = [](std::size_t at, std::byte value) {
    WirePreambleBytes bytes = encode(sample());
    bytes[at] = value;
    return bytes;
  };
  expect_error(Errc::corrupt, {"aren't a preamble"},
               [&] { decode_preamble(changed(0, std::byte{'W'})); });
  expect_error(Errc::version, {"version 9", "version 1"},
               [&] { decode_preamble(changed(8, std::byte{9})); });
  expect_error(Errc::corrupt, {"job id"}, [&] { decode_preamble(changed(48, std::byte{' '})); });
  expect_error(Errc::corrupt, {"job id"},
               [&] { decode_preamble(changed(kWirePreambleBytes - 1, std::byte{'x'})); });
}

TEST(WirePreamble, NamesTheFieldThatDiffers) {
  const auto expect_named = [](std::string_view field, const auto& change) {
    WirePreamble received = sample();
    change(received);
    expect_error(Errc::invalid_argument, {field, "expected"},
                 [&] { require_same(received, sample()); });
  };
  require_same(sample(), sample());
  expect_named("job", [](WirePreamble& preamble) { preamble.job = "other"; });
  expect_named("generation", [](WirePreamble& preamble) { ++preamble.generation; });
  expect_named("channel", [](WirePreamble& preamble) { ++preamble.channel; });
  expect_named("sender", [](WirePreamble& preamble) { ++preamble.from.worker; });
  expect_named("receiver", [](WirePreamble& preamble) { ++preamble.to.host; });
}

TEST(WireAddress, IsNumericWithAPort) {
  for (const std::string text : {"127.0.0.1:1", "10.0.0.1:65535", "[::1]:4711", "[fd00::1]:80"}) {
    EXPECT_EQ(to_string(parse_wire_address(text, "address")), text);
  }
  for (const std::string_view text :
       {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:1x",
        "localhost:1", "::1:4711", "[127.0.0.1]:1", "[::1]", "[::1:1", "1.2.3.4:-1"}) {
    expect_error(Errc::invalid_argument, {"address = "},
                 [&] { parse_wire_address(text, "address"); });
  }
  EXPECT_EQ(device_of("127.0.0.1"), "lo");
  expect_error(Errc::invalid_argument, {"192.0.2.1", "no network device"},
               [] { device_of("192.0.2.1"); });
}

TEST(UcxAddress, IsReadWholeOrNotAtAll) {
  const std::string bytes("1:\0x", 4);
  const auto peer = [](std::string address) {
    return WirePeer{{.host = 1, .worker = 2, .chip = 5}, std::move(address)};
  };
  const std::string address = ucx_address(bytes);
  EXPECT_EQ(ucx_bytes(peer(address)), bytes);
  for (const std::string& wrong :
       {address.substr(0, address.size() - 1), address + "x", std::string("ucx:"),
        std::string("ucx:0:"), std::string("ucx:-1:x"), std::string("ucx:99999999999999999999:x"),
        std::string("127.0.0.1:4711"), std::string()}) {
    expect_error(Errc::invalid_argument, {"chip 5 of worker 2 on host 1", "ucx:"},
                 [&] { ucx_bytes(peer(wrong)); });
  }
}

}  // namespace
}  // namespace weft::wire_preamble_test
