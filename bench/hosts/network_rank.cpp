/// Runs a rank of bench_hosts: a host with one or more chips, which adds f32 values with the chips
/// of the other host. The arguments are the way to add, the number of chips, and the bytes of the
/// largest value. The ways are:
///
///   socket       halves are exchanged over a plain TCP socket (one chip)
///   ucx-alone    halves are exchanged over wires of UCX, without weft's tier (one chip)
///   tls, ucx     the plan that weft makes, for hosts whose chips share memory
///   tls-flat     the plan that weft makes if each chip is a host of its own
///
/// The bench checks the values of chip 0; the other chips add zeros.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <weft/tensor/error.hpp>

#include "bench/collectives/private_buffers.hpp"
#include "bench/collectives/rank.hpp"
#include "bench/hosts/notes.hpp"
#include "chips/cpu/cpu_target.hpp"
#include "chips/cpu/executor.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/passes/partition.hpp"
#include "spmd/plan/plan.hpp"
#include "transport/network/network_tier.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr std::chrono::seconds kPatience{60};
constexpr int kHosts = 2;

[[noreturn]] void fail_errno(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

/// A TCP socket to the other host.
class Socket {
 public:
  Socket(int host, const Notes& notes) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, own_address().c_str(), &address.sin_addr);
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    if (host == 0) {
      const int listener = fd_;
      if (::bind(listener, name, size) != 0 || ::listen(listener, 1) != 0 ||
          ::getsockname(listener, name, &size) != 0) {
        fail_errno("listen");
      }
      notes.write("socket", {reinterpret_cast<const char*>(&address), sizeof address});
      fd_ = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      ::close(listener);
      if (fd_ < 0) fail_errno("accept");
    } else {
      notes.read("socket").copy(reinterpret_cast<char*>(&address), sizeof address);
      if (::connect(fd_, name, size) != 0) fail_errno("connect");
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  /// Sends and receives at the same time. Sleeps while it can do neither.
  void exchange(std::span<const std::byte> out, std::span<std::byte> in) const {
    while (!out.empty() || !in.empty()) {
      bool has_moved = false;
      const auto pass = [&](ssize_t count, auto& span) {
        if (count > 0) span = span.subspan(static_cast<std::size_t>(count));
        has_moved |= count > 0;
        if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) fail_errno("socket");
      };
      if (!out.empty()) pass(::send(fd_, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL), out);
      if (!in.empty()) pass(::recv(fd_, in.data(), in.size(), MSG_DONTWAIT), in);
      if (has_moved) continue;
      const int events = (out.empty() ? 0 : POLLOUT) | (in.empty() ? 0 : POLLIN);
      pollfd ready{fd_, static_cast<short>(events), 0};
      ::poll(&ready, 1, 1000);
    }
  }

 private:
  int fd_;
};

/// Adds the values of two hosts by an exchange of halves, in memory of its own.
class Halves : public Collectives {
 public:
  explicit Halves(int host) : host_(host) {}

  void barrier() override {
    std::byte out{};
    std::byte in{};
    exchange({&out, 1}, {&in, 1});
  }
  Buffers prepare(Op op, std::size_t bytes, Metric) override {
    values_ = memory_.of(op, bytes, kHosts).destination;
    received_.resize(values_.size() / 2);
    return {values_, values_};
  }
  void run() override {
    const std::size_t half = values_.size() / 2;
    const auto mine = values_.subspan(host_ == 0 ? 0 : half, half);
    const auto other = values_.subspan(host_ == 0 ? half : 0, half);
    exchange(std::as_bytes(other), std::as_writable_bytes(std::span(received_)));
    for (std::size_t i = 0; i < half; ++i) mine[i] += received_[i];
    exchange(std::as_bytes(mine), std::as_writable_bytes(other));
  }

 private:
  virtual void exchange(std::span<const std::byte> out, std::span<std::byte> in) = 0;

  int host_;
  PrivateBuffers memory_;
  std::span<float> values_;
  std::vector<float> received_;
};

class SocketRank final : public Halves {
 public:
  SocketRank(int host, const Notes& notes) : Halves(host), socket_(host, notes) {}

 private:
  void exchange(std::span<const std::byte> out, std::span<std::byte> in) override {
    socket_.exchange(out, in);
  }
  Socket socket_;
};

class UcxRank final : public Halves {
 public:
  UcxRank(int host, const Notes& notes)
      : Halves(host), wires_(connect(true, host, {1 - host}, notes)) {
    await_wires(*wires_, kPatience);
  }

 private:
  void exchange(std::span<const std::byte> out, std::span<std::byte> in) override {
    wires_->receive(0, in);
    wires_->send(0, out);
    for (;;) {
      const bool has_moved = wires_->progress();
      const WireStatus& status = wires_->status(0);
      if (status.sends + status.receives == 0) return;
      if (status.state == WireState::lost) fail(Errc::peer_lost, "{}", status.why);
      if (!has_moved) wires_->wait(std::chrono::milliseconds(20));
    }
  }
  std::unique_ptr<Wires> wires_;
};

/// Makes a program that adds up a value over all chips of the mesh.
Plan sum_plan(const Mesh& mesh, std::size_t count) {
  Program program;
  Builder b(program);
  const std::vector<TensorType> types{{DType::f32, {static_cast<std::int64_t>(count)}}};
  const ValueId x = program.add_input(types.front(), InputKind::data, "x", Sharding::closed());
  const ValueId sum = b.all_reduce(mesh, x, mesh.axis_atoms(0), ReduceKind::add);
  program.add_output(sum, "sum", Sharding::closed());
  return make_plan(lower_tiers(program, mesh).value_or(program), mesh, types, types, kCpuTarget);
}

/// The chips of one host, each on a thread; chip 0 is on the thread that calls run().
class ChipsRank final : public Collectives {
 public:
  ChipsRank(int host, int chips, bool is_ucx, bool is_flat, std::size_t bytes_max,
            const Notes& notes)
      : mesh_(is_flat ? HybridMesh{{1}, {kHosts * chips}, {"data"}}.mesh()
                      : HybridMesh{{chips}, {kHosts}, {"data"}}.mesh()),
        per_memory_(is_flat ? 1 : chips),
        begin_(chips),
        end_(chips) {
    for (int i = 0; i < chips; ++i) {
      if (i % per_memory_ == 0) {
        memories_.push_back(std::make_unique<JobMemory>(
            JobMemory::anonymous({.job = fmt::format("{}-{}", host, i),
                                  .num_chips = per_memory_,
                                  .arena_capacity = (6 * bytes_max / kUnit + 2) * kUnit})));
      }
      std::vector<int> peers;
      for (int peer = 0; peer < kHosts * chips; ++peer) {
        const bool shares = !is_flat && peer / chips == host;
        if (peer != host * chips + i && !shares) peers.push_back(peer);
      }
      chips_.emplace_back().peers = std::move(peers);
    }
    connect_all(host * chips, is_ucx, notes);
    for (int i = 1; i < chips; ++i) threads_.emplace_back([this, i] { work(chips_.at(i)); });
  }
  ~ChipsRank() override {
    is_over_ = true;
    begin_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  ChipsRank(const ChipsRank&) = delete;
  ChipsRank& operator=(const ChipsRank&) = delete;

  void barrier() override { run_all(&Chip::barrier); }
  Buffers prepare(Op op, std::size_t bytes, Metric) override {
    if (op != Op::all_reduce) return Collectives::prepare(op, bytes, {});
    const std::size_t count = bytes / sizeof(float);
    for (Chip& chip : chips_) {
      chip.sum = load(chip, count);
      std::ranges::fill(floats_of(chip, chip.sum.buffers.inputs[0], count), 0.0F);
    }
    const Chip& first = chips_.front();
    return {floats_of(first, first.sum.buffers.inputs[0], count),
            floats_of(first, first.sum.buffers.outputs[0], count)};
  }
  void run() override { run_all(&Chip::sum); }

 private:
  static constexpr std::size_t kUnit = std::size_t{64} << 20;
  static constexpr std::uint64_t kPage = 4096;

  struct Loaded {
    std::shared_ptr<const LoadedPlan> plan;
    RunBuffers buffers;
  };
  struct Chip {
    std::vector<int> peers;
    std::unique_ptr<Wires> wires;
    std::unique_ptr<Executor> executor;
    Loaded barrier;
    Loaded sum;
    std::uint64_t step = 0;
  };

  static std::span<float> floats_of(const Chip& chip, std::uint64_t offset, std::size_t count) {
    return {reinterpret_cast<float*>(chip.executor->host_address(offset)), count};
  }

  void connect_all(int first, bool is_ucx, const Notes& notes) {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> errors(chips_.size());
    for (std::size_t i = 0; i < chips_.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          Chip& chip = chips_[i];
          chip.wires = connect(is_ucx, first + static_cast<int>(i), chip.peers, notes);
          await_wires(*chip.wires, kPatience);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
    const WaitPolicy policy = WaitPolicy::for_threads(static_cast<int>(chips_.size()), kPatience);
    for (std::size_t i = 0; i < chips_.size(); ++i) {
      JobMemory& memory = *memories_[i / static_cast<std::size_t>(per_memory_)];
      const int position = mesh_.position_of(first + static_cast<int>(i));
      const int local = static_cast<int>(i) % per_memory_;
      chips_[i].executor = std::make_unique<Executor>(
          memory, mesh_, position, Recorder(), policy, local,
          std::make_unique<NetworkTier>(memory, mesh_, position, *chips_[i].wires, BoardWriter(),
                                        policy));
      buffers_begin_ = memory.buffers_offset();
    }
    for (Chip& chip : chips_) chip.barrier = load(chip, 1);
    buffers_begin_ += 2 * kPage;  // after the barrier's buffers, which must stay intact
  }

  Loaded load(Chip& chip, std::size_t count) {
    const auto found = plans_.try_emplace(count).first;
    if (!found->second) found->second = std::make_unique<Plan>(sum_plan(mesh_, count));
    const std::uint64_t bytes = (count * sizeof(float) + kPage - 1) / kPage * kPage;
    Loaded loaded{.plan = chip.executor->load(*found->second),
                  .buffers = {.inputs = {buffers_begin_}, .outputs = {buffers_begin_ + bytes}}};
    chip.executor->reserve(buffers_begin_, 2 * bytes);
    return loaded;
  }

  void run_all(Loaded Chip::*what) {
    what_ = what;
    begin_.arrive_and_wait();
    run_on(chips_.front());
    end_.arrive_and_wait();
  }
  void work(Chip& chip) {
    for (;;) {
      begin_.arrive_and_wait();
      if (is_over_) return;
      run_on(chip);
      end_.arrive_and_wait();
    }
  }
  void run_on(Chip& chip) {
    const Loaded& loaded = chip.*what_;
    chip.executor->run(loaded.plan, ++chip.step, loaded.buffers);
  }

  Mesh mesh_;
  int per_memory_;
  std::vector<std::unique_ptr<JobMemory>> memories_;
  std::vector<Chip> chips_;
  std::map<std::size_t, std::unique_ptr<Plan>> plans_;  ///< key: the number of elements
  std::uint64_t buffers_begin_ = 0;
  Loaded Chip::*what_ = nullptr;
  bool is_over_ = false;
  std::barrier<> begin_;
  std::barrier<> end_;
  std::vector<std::thread> threads_;
};

std::unique_ptr<Collectives> make_rank(const std::string& way, int host, int chips,
                                       std::size_t bytes_max, const Notes& notes) {
  if (way == "socket") return std::make_unique<SocketRank>(host, notes);
  if (way == "ucx-alone") return std::make_unique<UcxRank>(host, notes);
  return std::make_unique<ChipsRank>(host, chips, way == "ucx", way == "tls-flat", bytes_max,
                                     notes);
}

}  // namespace

int main(int argc, char** argv) {
  return run_rank([&] {
    if (argc != 4) fail(Errc::invalid_argument, "expected WAY CHIPS BYTES");
    const bench::Place place = bench::Place::from_environment();
    const auto rank = make_rank(argv[1], place.rank, std::atoi(argv[2]),
                                std::strtoull(argv[3], nullptr, 10), Notes(place.folder));
    serve(place.rank, place.ranks, *rank);
  });
}
