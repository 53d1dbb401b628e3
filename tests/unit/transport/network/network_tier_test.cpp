#include "transport/network/network_tier.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/preparing_communicator.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/job/control_format.hpp"

namespace weft::network_tier_test {
namespace {

using testing::expect_error;
using testing::PreparingCommunicator;
using testing::WireBook;

/// Passes all calls on to other wires, and counts the bytes of send().
class CountingWires final : public Wires {
 public:
  explicit CountingWires(Wires& wires) : wires_(wires) {}
  std::size_t sent = 0;

  const std::string& address() const override { return wires_.address(); }
  void connect(std::vector<WirePeer> peers) override { wires_.connect(std::move(peers)); }
  std::span<const WirePeer> peers() const override { return wires_.peers(); }
  const WireStatus& status(int wire) const override { return wires_.status(wire); }
  void send(int wire, std::span<const std::byte> bytes) override {
    sent += bytes.size();
    wires_.send(wire, bytes);
  }
  void receive(int wire, std::span<std::byte> into) override { wires_.receive(wire, into); }
  bool progress() override { return wires_.progress(); }
  void wait(std::chrono::milliseconds longest) override { wires_.wait(longest); }
  void close() override { wires_.close(); }

 private:
  Wires& wires_;
};

/// The hosts of a job in this process, with one chip each.
class Hosts {
 public:
  explicit Hosts(int count) : mesh(HybridMesh{{1}, {count}, {"data"}}.mesh()), grid(count) {
    for (int host = 0; host < count; ++host) {
      memories.push_back(JobMemory::anonymous({.job = fmt::format("host{}", host),
                                               .num_chips = 1,
                                               .arena_capacity = std::size_t{8} << 20}));
      memories.back().reserve(0, 0, memories.back().arena_capacity());
    }
  }
  std::unique_ptr<PreparingCommunicator> communicator(int host, Wires& wires, WaitPolicy policy,
                                                      NetworkTier::OnLoss on_loss = {}) {
    JobMemory& memory = memories[static_cast<std::size_t>(host)];
    return std::make_unique<PreparingCommunicator>(
        memory, mesh, host, BoardWriter(), policy,
        std::make_unique<NetworkTier>(memory, mesh, host, wires, BoardWriter(), policy,
                                      std::move(on_loss)));
  }
  CollectiveCall all_reduce(std::int64_t count) const {
    return {.kind = CollectiveKind::all_reduce,
            .atoms = mesh.axis_atoms(0),
            .source = 4096,
            .destination = 4096,
            .count = count,
            .name = "gradient"};
  }

  const Mesh mesh;
  testing::WireGrid grid;
  std::vector<JobMemory> memories;
};

TEST(NetworkTier, SendsTheFewestBytesForALargeSum) {
  constexpr std::int64_t kCount = 1 << 20;
  for (const int n : {2, 3, 5}) {
    Hosts hosts(n);
    std::vector<std::size_t> sent(static_cast<std::size_t>(n));
    std::vector<std::thread> threads;
    for (int host = 0; host < n; ++host) {
      threads.emplace_back([&, host] {
        CountingWires wires(hosts.grid.of(host));
        hosts.communicator(host, wires, WaitPolicy::for_threads(n, testing::kWirePatience))
            ->run(hosts.all_reduce(kCount));
        sent[static_cast<std::size_t>(host)] = wires.sent;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::size_t bytes : sent) {
      EXPECT_LE(static_cast<double>(bytes), 1.02 * 2 * (n - 1) / n * 4 * kCount) << n;
      EXPECT_GE(static_cast<double>(bytes), 0.98 * 2 * (n - 1) / n * 4 * kCount) << n;
    }
  }
}

TEST(NetworkTier, PublishesTheLeastCommitOfItsTwins) {
  Hosts hosts(3);
  const auto far = [&](int host) {
    return hosts.memories[static_cast<std::size_t>(host)].commit_line(0).far.load();
  };
  const auto meet = [&] {
    std::vector<std::thread> threads;
    for (int host = 0; host < 3; ++host) {
      threads.emplace_back([&, host] {
        hosts
            .communicator(host, hosts.grid.of(host),
                          WaitPolicy::for_threads(3, testing::kWirePatience))
            ->run(hosts.all_reduce(1));
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  for (int host = 0; host < 3; ++host) {
    hosts.memories[static_cast<std::size_t>(host)].commit_line(0).step =
        static_cast<std::uint64_t>(10 + host);
  }
  meet();
  EXPECT_EQ(far(0), 11U);
  EXPECT_EQ(far(1), 10U);
  EXPECT_EQ(far(2), 10U);
  hosts.memories[0].commit_line(0).step = 12;
  meet();
  EXPECT_EQ(far(0), 11U);
  EXPECT_EQ(far(1), 12U);
  EXPECT_EQ(far(2), 11U);
}

TEST(NetworkTier, ReportsALostWireOnceAndWaitsForTheAbort) {
  Hosts hosts(3);
  std::vector<WireLoss> losses;
  auto communicator =
      hosts.communicator(0, hosts.grid.of(0), {.spins = 0, .deadline = testing::kWirePatience},
                         [&](const WireLoss& loss) { losses.push_back(loss); });
  communicator->start(hosts.all_reduce(10));
  hosts.grid.of(2).close();
  while (losses.empty()) ASSERT_FALSE(communicator->poll());
  EXPECT_EQ(losses[0].chip, 0);
  EXPECT_EQ(losses[0].peer, 2);
  EXPECT_EQ(losses[0].why, "the other end has closed the wire");
  for (int i = 0; i < 100; ++i) ASSERT_FALSE(communicator->poll());
  EXPECT_EQ(losses.size(), 1U);
  hosts.memories[0].abort("host 2 was lost");
  expect_error(Errc::peer_lost, {"host 2 was lost", "chip 0 was in all_reduce #1 'gradient'"},
               [&] { communicator->wait(); });
}

TEST(NetworkTier, NamesTheLostWireWhenNobodyAborts) {
  Hosts hosts(2);
  auto communicator = hosts.communicator(0, hosts.grid.of(0),
                                         {.spins = 0, .deadline = std::chrono::milliseconds(50)});
  hosts.grid.of(1).close();
  expect_error(Errc::timeout,
               {"chip 0 waited", "at its entry", "chip 1 (last called: no collective yet)",
                "whose wire is lost"},
               [&] { communicator->run(hosts.all_reduce(10)); });
}

TEST(NetworkTier, RefusesBytesThatArentACollective) {
  Hosts hosts(2);
  auto communicator =
      hosts.communicator(0, hosts.grid.of(0), WaitPolicy::for_threads(2, testing::kWirePatience));
  const std::vector<std::byte> garbage(sizeof(CallHeader), std::byte{7});
  hosts.grid.of(1).send(0, garbage);
  hosts.grid.of(1).progress();
  expect_error(Errc::corrupt, {"chip 0 received bytes from chip 1 that aren't a collective"},
               [&] { communicator->run(hosts.all_reduce(10)); });
}

TEST(NetworkTier, NeedsAWireToEveryChipOfAGroup) {
  Hosts hosts(3);
  const std::unique_ptr<Wires> none = make_tls_wires(WireBook::config(0));
  auto communicator =
      hosts.communicator(0, *none, WaitPolicy::for_threads(1, testing::kWirePatience));
  expect_error(Errc::unavailable, {"all_reduce 'gradient'", "chip 0 has no wire to chip 1"},
               [&] { communicator->run(hosts.all_reduce(10)); });
}

}  // namespace
}  // namespace weft::network_tier_test
