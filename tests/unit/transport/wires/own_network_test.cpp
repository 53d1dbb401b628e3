#include "transport/wires/own_network.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/expect_error.hpp"

namespace weft::own_network_test {
namespace {

using testing::expect_error;

TEST(PortRanges, AreParsed) {
  EXPECT_TRUE(parse_ports("", "backend.ports").is_any());
  EXPECT_EQ(parse_ports("4711-4800", "backend.ports"), (PortRange{4711, 4800}));
  EXPECT_EQ(parse_ports("4711", "backend.ports").size(), 1);
  EXPECT_EQ(to_string(parse_ports("1-65535", "backend.ports")), "1-65535");
}

TEST(PortRanges, RefuseMalformedText) {
  for (const char* text : {"0", "0-9", "9-8", "a", "1-", "-1", "1-65536", "1-2-3", " 1"}) {
    expect_error(Errc::invalid_argument,
                 {"backend.ports", std::string("\"") + text + "\"", "4711-4800"},
                 [&] { parse_ports(text, "backend.ports"); });
  }
}

TEST(PortRanges, GiveTheirFirstFreePort) {
  WireAddress any = parse_wire_host("127.0.0.1", "test");
  const int probe = listen_at(any, {});
  ASSERT_GE(probe, 0);
  const auto taken = ntohs(reinterpret_cast<const sockaddr_in&>(any.bytes).sin_port);
  WireAddress second = parse_wire_host("127.0.0.1", "test");
  EXPECT_EQ(listen_at(second, {taken, taken}), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  WireAddress third = parse_wire_host("127.0.0.1", "test");
  const PortRange many{taken, static_cast<std::uint16_t>(std::min(taken + 50, 65535))};
  const int found = listen_at(third, many);
  ASSERT_GE(found, 0);
  EXPECT_GT(ntohs(reinterpret_cast<const sockaddr_in&>(third.bytes).sin_port), taken);
  ::close(found);
  ::close(probe);
}

TEST(OwnAddresses, AreThoseOfADeviceOrOfANetwork) {
  EXPECT_EQ(own_addresses("127.0.0.0/8", "backend.network").front(), "127.0.0.1");
  const auto lo = own_addresses("lo", "backend.network");
  EXPECT_TRUE(std::ranges::find(lo, "127.0.0.1") != lo.end());
  EXPECT_TRUE(std::ranges::all_of(lo, [](const auto& text) { return is_loopback(text); }));
  EXPECT_TRUE(std::ranges::none_of(own_addresses("", "backend.network"),
                                   [](const auto& text) { return is_loopback(text); }));
}

TEST(OwnAddresses, AreListedInTheErrorOfANetworkThatHasNone) {
  for (const char* network : {"no-such-device", "240.0.0.0/8", "127.0.0.2/32"}) {
    expect_error(Errc::invalid_argument, {"backend.network", network, "127.0.0.1 (lo)"},
                 [&] { own_addresses(network, "backend.network"); });
  }
  expect_error(Errc::invalid_argument, {"10.0.0.0/33", "0 to 32 bits"},
               [] { own_addresses("10.0.0.0/33", "backend.network"); });
  expect_error(Errc::invalid_argument, {"backend.network", "10.0.0/8"},
               [] { own_addresses("10.0.0/8", "backend.network"); });
}

TEST(OwnAddresses, KnowLoopback) {
  for (const char* text : {"127.0.0.1", "127.3.2.1", "::1"}) EXPECT_TRUE(is_loopback(text)) << text;
  for (const char* text : {"10.0.0.1", "fd00::1", "node7", ""}) {
    EXPECT_FALSE(is_loopback(text)) << text;
  }
}

}  // namespace
}  // namespace weft::own_network_test
