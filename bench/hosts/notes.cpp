#include "bench/hosts/notes.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft::bench {
namespace {

constexpr std::chrono::seconds kPatience{60};

WireEnd end_of(int chip) {
  const auto number = static_cast<std::uint32_t>(chip);
  return {.host = number, .worker = number, .chip = number};
}

}  // namespace

std::string own_address() {
  const char* address = std::getenv(kAddressVariable);
  return address == nullptr ? "127.0.0.1" : address;
}

void Notes::write(const std::string& name, const std::string& text) const {
  const std::string path = folder_ + "/" + name;
  std::ofstream(path + ".new", std::ios::binary) << text;
  std::filesystem::rename(path + ".new", path);
}
std::string Notes::read(const std::string& name) const {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    std::ifstream file(folder_ + "/" + name, std::ios::binary);
    if (file) return (std::ostringstream() << file.rdbuf()).str();
    if (std::chrono::steady_clock::now() > deadline) {
      fail(Errc::timeout, "the other host has written no {}", name);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::unique_ptr<Wires> connect(bool is_ucx, int chip, const std::vector<int>& peers,
                               const Notes& notes) {
  const WireConfig config{.job = "bench",
                          .generation = 1,
                          .self = end_of(chip),
                          .host = own_address(),
                          .secret = std::string(32, 's')};
  std::unique_ptr<Wires> wires = is_ucx ? make_ucx_wires(config) : make_tls_wires(config);
  notes.write(fmt::format("chip{}", chip), wires->address());
  std::vector<WirePeer> ends;
  for (const int peer : peers) {
    ends.push_back({end_of(peer), notes.read(fmt::format("chip{}", peer))});
  }
  wires->connect(std::move(ends));
  return wires;
}

}  // namespace weft::bench
