#include "transport/network/overlapped_tier.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/collectives/communicator.hpp"

namespace weft::overlapped_tier_test {
namespace {

using testing::expect_error;

/// Returns the number of this process's threads that carry out collectives.
int wire_threads() {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    count += name == "wires" ? 1 : 0;
  }
  return count;
}

/// Two hosts in this process, with one chip each.
class OverlappedTierTest : public ::testing::Test {
 protected:
  OverlappedTierTest() {
    for (int host = 0; host < 2; ++host) {
      memories_.push_back(JobMemory::anonymous({.job = fmt::format("host{}", host),
                                                .num_chips = 1,
                                                .arena_capacity = std::size_t{8} << 20}));
      memories_.back().reserve(0, 0, memories_.back().arena_capacity());
    }
  }
  std::unique_ptr<Communicator> chip(int host, std::chrono::milliseconds deadline,
                                     NetworkTier::OnLoss on_loss = {}) {
    JobMemory& memory = memories_[static_cast<std::size_t>(host)];
    const WaitPolicy policy{.spins = 0, .deadline = deadline};
    auto network = std::make_unique<NetworkTier>(memory, mesh_, host, grid_.of(host), BoardWriter(),
                                                 policy, std::move(on_loss));
    return std::make_unique<Communicator>(
        memory, mesh_, host, BoardWriter(), policy,
        std::make_unique<OverlappedTier>(std::move(network), BoardWriter()));
  }
  /// Prepares a sum of one number per chip, which is at the beginning of the arena's second page.
  PreparedCall sum(Communicator& communicator) const {
    return communicator.prepare({.kind = CollectiveKind::all_reduce,
                                 .atoms = mesh_.axis_atoms(0),
                                 .source = 4096,
                                 .destination = 8192,
                                 .count = 1,
                                 .name = "gradient"});
  }
  float& at(int host, std::uint64_t offset) {
    return *reinterpret_cast<float*>(memories_[static_cast<std::size_t>(host)].arena(0) + offset);
  }

  const Mesh mesh_ = HybridMesh{{1}, {2}, {"data"}}.mesh();
  const testing::WireGrid grid_{2};
  std::vector<JobMemory> memories_;
};

TEST_F(OverlappedTierTest, HasAThreadFromItsFirstBeginToItsEnd) {
  auto a = chip(0, testing::kWirePatience);
  auto b = chip(1, testing::kWirePatience);
  const PreparedCall of_a = sum(*a);
  const PreparedCall of_b = sum(*b);
  at(0, 4096) = 3;
  at(1, 4096) = 4;
  a->start(of_a);
  b->run(of_b);
  a->wait();
  EXPECT_EQ(at(0, 8192), 7);
  EXPECT_EQ(wire_threads(), 0) << "which chips that wait at once don't need";
  EXPECT_TRUE(a->begin(of_a));
  EXPECT_EQ(wire_threads(), 1);
  EXPECT_FALSE(a->end_begun(false)) << "the other chip hasn't begun";
  at(1, 4096) = 5;
  b->run(of_b);
  EXPECT_TRUE(a->end_begun(true));
  EXPECT_EQ(at(0, 8192), 8);
  EXPECT_TRUE(a->end_begun(true)) << "nothing is left";
  a.reset();
  EXPECT_EQ(wire_threads(), 0);
}

TEST_F(OverlappedTierTest, TouchesNothingAfterItsChipHasGivenUp) {
  auto a = chip(0, testing::kWirePatience);
  const PreparedCall of_a = sum(*a);
  a->begin(of_a);
  EXPECT_EQ(wire_threads(), 1);
  a->abandon();
  EXPECT_EQ(wire_threads(), 0);
  EXPECT_TRUE(a->end_begun(true));
  expect_error(Errc::peer_lost, {"this chip's run failed while collectives between hosts ran"},
               [&] { a->begin(of_a); });
  expect_error(Errc::peer_lost, {"this chip's run failed"}, [&] { a->run(of_a); });
}

TEST_F(OverlappedTierTest, GoesOnIfNothingWasLeftWhenItsChipGaveUp) {
  auto a = chip(0, testing::kWirePatience);
  auto b = chip(1, testing::kWirePatience);
  const PreparedCall of_a = sum(*a);
  const PreparedCall of_b = sum(*b);
  a->begin(of_a);
  b->run(of_b);
  a->start(of_a);  // runs after the begun call, which has ended then too
  b->run(of_b);
  a->wait();
  a->abandon();
  a->begin(of_a);
  EXPECT_FALSE(a->end_begun(false)) << "the first one isn't taken for this one";
  b->run(of_b);
  EXPECT_TRUE(a->end_begun(true));
}

TEST_F(OverlappedTierTest, NamesTheChipThatIsMissingAtTheDeadline) {
  auto a = chip(0, std::chrono::milliseconds(50));
  const PreparedCall of_a = sum(*a);
  a->begin(of_a);
  expect_error(Errc::timeout, {"chip 0 waited", "all_reduce #1 'gradient'", "chip 1"},
               [&] { a->end_begun(true); });
  expect_error(Errc::timeout, {"chip 0 waited"}, [&] { a->end_begun(false); });
}

TEST_F(OverlappedTierTest, ReportsALostWireWhileItsChipComputes) {
  std::atomic<int> losses = 0;
  auto a = chip(0, testing::kWirePatience, [&](const WireLoss& loss) {
    EXPECT_EQ(loss.peer, 1);
    ++losses;
    losses.notify_all();
  });
  const PreparedCall of_a = sum(*a);
  a->begin(of_a);
  grid_.of(1).close();
  losses.wait(0);
  memories_[0].abort("host 1 was lost");
  expect_error(Errc::peer_lost, {"host 1 was lost", "chip 0 was in all_reduce #1 'gradient'"},
               [&] { a->end_begun(true); });
}

}  // namespace
}  // namespace weft::overlapped_tier_test
