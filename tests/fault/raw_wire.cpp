#include "tests/fault/raw_wire.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "transport/wires/wires.hpp"

namespace weft::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<Wires> make_end(std::uint32_t host) {
  return make_tls_wires({.job = "raw",
                         .self = {.host = host, .worker = host, .chip = host},
                         .secret = "0123456789abcdef0123456789abcdef"});
}

void connect(Wires& wires, std::uint32_t other, const std::string& address) {
  wires.connect({{.end = {.host = other, .worker = other, .chip = other}, .address = address}});
  await_wires(wires, std::chrono::seconds(20));
}

void finish(Wires& wires) {
  while (wires.status(0).sends + wires.status(0).receives > 0) {
    if (!wires.progress()) wires.wait(std::chrono::milliseconds(100));
  }
}

void send(Wires& wires, const std::vector<std::byte>& bytes) {
  wires.send(0, bytes);
  finish(wires);
}

void receive(Wires& wires, std::vector<std::byte>& bytes) {
  wires.receive(0, bytes);
  finish(wires);
}

}  // namespace

void print_raw_figures(int repeats) {
  const std::unique_ptr<Wires> here = make_end(0);
  const std::unique_ptr<Wires> there = make_end(1);
  const std::vector<std::size_t> sizes{32, 4096};
  const int tensors = std::max(repeats / 40, 2);
  std::jthread other([&] {
    connect(*there, 0, here->address());
    for (const std::size_t size : sizes) {
      std::vector<std::byte> bytes(size);
      for (int i = 0; i < repeats; ++i) {
        receive(*there, bytes);
        send(*there, bytes);
      }
    }
    std::vector<std::byte> tensor(std::size_t{16} << 20);
    for (int i = 0; i < tensors; ++i) receive(*there, tensor);
    send(*there, std::vector<std::byte>(1));
  });
  connect(*here, 1, there->address());
  for (const std::size_t size : sizes) {
    std::vector<std::byte> bytes(size);
    std::vector<double> us;
    for (int i = 0; i < repeats; ++i) {
      const auto begin = Clock::now();
      send(*here, bytes);
      receive(*here, bytes);
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
    std::ranges::sort(us);
    fmt::print("{} bytes there and back over a bare wire: {:.1f} us (median)\n", size,
               us[us.size() / 2]);
  }
  const std::vector<std::byte> tensor(std::size_t{16} << 20);
  std::vector<std::byte> last(1);
  const auto begin = Clock::now();
  for (int i = 0; i < tensors; ++i) send(*here, tensor);
  receive(*here, last);
  const double s = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print("tensors of 16 MiB over a bare wire: {:.0f} MiB/s\n", 16 * tensors / s);
}

}  // namespace weft::testing
