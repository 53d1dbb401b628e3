/// Measures wires between two processes of this machine over loopback, beside a plain TCP socket:
/// `exchange` sends a message in both directions at once, `all_reduce` adds f32 over two hosts of
/// one chip. Prints the median of each, of interleaved rounds, and its ratio to the plain socket.
///
///   bench_wires [ROUNDS]      default 5
///
/// Expected on two quiet cores: UCX at most 1.3 times the plain socket from 1 MiB on, and TLS at
/// most 2 times (encryption at memory speed; on a line of 1 Gbit/s it costs nothing); both at most
/// 1.5 times at 1 KiB. all_reduce by the tier is at most 1.3 times the plain one over UCX.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/network/network_tier.hpp"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kSizes[] = {std::size_t{1} << 10, std::size_t{1} << 20,
                                  std::size_t{64} << 20};
constexpr std::chrono::seconds kPatience{60};

[[noreturn]] void fail_errno(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

/// Two connected TCP sockets of this process, one for each side.
std::pair<int, int> connected_sockets() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int first = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::connect(first, reinterpret_cast<sockaddr*>(&address), size) != 0) {
    fail_errno("connect");
  }
  const int second = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  ::close(listener);
  const int on = 1;
  for (const int fd : {first, second}) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return {first, second};
}

/// Sends and receives over a plain socket at once, asleep while there is nothing to do.
void exchange_plain(int fd, std::span<const std::byte> out, std::span<std::byte> in) {
  while (!out.empty() || !in.empty()) {
    bool has_moved = false;
    const auto pass = [&](ssize_t count, auto& span) {
      if (count > 0) span = span.subspan(static_cast<std::size_t>(count));
      has_moved |= count > 0;
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) fail_errno("socket");
    };
    if (!out.empty()) pass(::send(fd, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL), out);
    if (!in.empty()) pass(::recv(fd, in.data(), in.size(), MSG_DONTWAIT), in);
    if (has_moved) continue;
    pollfd ready{fd, static_cast<short>((out.empty() ? 0 : POLLOUT) | (in.empty() ? 0 : POLLIN)),
                 0};
    ::poll(&ready, 1, 1000);
  }
}

void exchange_by_wire(Wires& wires, std::span<const std::byte> out, std::span<std::byte> in) {
  wires.receive(0, in);
  wires.send(0, out);
  for (;;) {
    const bool has_moved = wires.progress();
    const WireStatus& status = wires.status(0);
    if (status.sends + status.receives == 0) return;
    if (status.state == WireState::lost) fail(Errc::peer_lost, "{}", status.why);
    if (!has_moved) wires.wait(std::chrono::milliseconds(20));
  }
}

/// Returns the median of the times of one call, in seconds.
double median_of(std::size_t size, const std::function<void()>& call) {
  const int times = size > (std::size_t{1} << 20) ? 5 : size > 4096 ? 100 : 2000;
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const Clock::time_point begin = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + times / 2);
  return seconds[static_cast<std::size_t>(times) / 2];
}

/// The results of one side, in the order of kSizes: exchange, then all_reduce.
using Medians = std::vector<double>;

Medians measure_plain(int fd) {
  Medians medians;
  for (const std::size_t size : kSizes) {
    const Bytes out(size);
    Bytes in(size);
    medians.push_back(median_of(size, [&] { exchange_plain(fd, out, in); }));
  }
  for (const std::size_t size : kSizes) {
    std::vector<float> values(size / sizeof(float));
    std::vector<float> others(values.size() / 2);
    const auto half = std::as_writable_bytes(std::span(values)).subspan(size / 2);
    const auto received = std::as_writable_bytes(std::span(others));
    medians.push_back(median_of(size, [&] {
      exchange_plain(fd, half, received);
      for (std::size_t i = 0; i < others.size(); ++i) values[i] += others[i];
      exchange_plain(fd, std::as_bytes(std::span(values)).first(size / 2), half);
    }));
  }
  return medians;
}

Medians measure_wires(int side, Wires& wires) {
  Medians medians;
  for (const std::size_t size : kSizes) {
    const Bytes out(size);
    Bytes in(size);
    medians.push_back(median_of(size, [&] { exchange_by_wire(wires, out, in); }));
  }
  const Mesh mesh = HybridMesh{{1}, {2}, {"data"}}.mesh();
  JobMemory memory = JobMemory::anonymous({.job = fmt::format("wires{}", side),
                                           .num_chips = 1,
                                           .arena_capacity = std::size_t{66} << 20});
  memory.reserve(0, 0, memory.arena_capacity());
  const WaitPolicy policy = WaitPolicy::for_threads(2, kPatience);
  Communicator communicator(
      memory, mesh, side, BoardWriter(), policy,
      std::make_unique<NetworkTier>(memory, mesh, side, wires, BoardWriter(), policy));
  for (const std::size_t size : kSizes) {
    const PreparedCall call = communicator.prepare({.kind = CollectiveKind::all_reduce,
                                                    .atoms = mesh.axis_atoms(0),
                                                    .source = 4096,
                                                    .destination = 4096,
                                                    .count = static_cast<std::int64_t>(size / 4)});
    medians.push_back(median_of(size, [&] { communicator.run(call); }));
  }
  return medians;
}

enum class Kind { plain, tls, ucx };
constexpr std::string_view kNames[] = {"plain", "tls", "ucx"};

Medians measure(Kind kind, int side, int fd) {
  if (kind == Kind::plain) return measure_plain(fd);
  const auto end = [](int of) {
    const auto number = static_cast<std::uint32_t>(of);
    return WireEnd{.host = number, .worker = number, .chip = number};
  };
  const WireConfig config{
      .job = "bench", .generation = 1, .self = end(side), .secret = std::string(32, 's')};
  const auto wires = kind == Kind::tls ? make_tls_wires(config) : make_ucx_wires(config);
  Bytes own(4096);
  Bytes other(own.size());
  std::copy_n(reinterpret_cast<const std::byte*>(wires->address().data()), wires->address().size(),
              own.begin() + 2);
  own[0] = static_cast<std::byte>(wires->address().size() >> 8);
  own[1] = static_cast<std::byte>(wires->address().size() & 0xff);
  exchange_plain(fd, own, other);
  const auto size = static_cast<std::size_t>(other[0]) << 8 | static_cast<std::size_t>(other[1]);
  wires->connect({{end(1 - side), {reinterpret_cast<const char*>(other.data()) + 2, size}}});
  await_wires(*wires, kPatience);
  return measure_wires(side, *wires);
}

/// Runs both sides in processes. Returns the results of side 0; nothing, with a line, on failure.
Medians run(Kind kind) {
  const auto [first, second] = connected_sockets();
  int results[2];
  if (::pipe(results) != 0) fail_errno("pipe");
  for (const int side : {0, 1}) {
    if (::fork() != 0) continue;
    for (const std::string& variable : ucx_variables()) {
      const std::size_t equals = variable.find('=');
      ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
    }
    int code = 0;
    try {
      const Medians medians = measure(kind, side, side == 0 ? first : second);
      const std::size_t bytes = medians.size() * sizeof(double);
      if (side == 0 && ::write(results[1], medians.data(), bytes) < 0) code = 1;
    } catch (const std::exception& error) {
      if (side == 0) fmt::print("{}: {}\n", kNames[static_cast<int>(kind)], error.what());
      code = 1;
    }
    std::fflush(stdout);
    ::_exit(code);
  }
  for (const int fd : {first, second, results[1]}) ::close(fd);
  Medians medians(2 * std::size(kSizes));
  const ssize_t bytes = ::read(results[0], medians.data(), medians.size() * sizeof(double));
  ::close(results[0]);
  while (::wait(nullptr) > 0) {
  }
  if (bytes != static_cast<ssize_t>(medians.size() * sizeof(double))) medians.clear();
  return medians;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  std::map<Kind, std::vector<Medians>> all;
  for (int round = 0; round < rounds; ++round) {
    for (const Kind kind : {Kind::plain, Kind::tls, Kind::ucx}) {
      Medians medians = run(kind);
      if (!medians.empty()) all[kind].push_back(std::move(medians));
    }
  }
  fmt::print("{:<22}{:>12}{:>20}{:>20}\n", "", "plain", "tls", "ucx");
  for (std::size_t i = 0; i < 2 * std::size(kSizes); ++i) {
    fmt::print("{:<22}", fmt::format("{} {} KiB", i < std::size(kSizes) ? "exchange" : "all_reduce",
                                     kSizes[i % std::size(kSizes)] >> 10));
    double plain = 0;
    for (const auto& [kind, results] : all) {
      std::vector<double> seconds;
      for (const Medians& medians : results) seconds.push_back(medians[i]);
      std::ranges::sort(seconds);
      const double median = seconds[seconds.size() / 2];
      if (kind == Kind::plain) plain = median;
      fmt::print("{:>9.1f} us", median * 1e6);
      if (kind != Kind::plain) fmt::print(" {:>5.2f} x", median / plain);
    }
    fmt::print("\n");
  }
  return all.contains(Kind::plain) && all.contains(Kind::tls) ? 0 : 1;
}
