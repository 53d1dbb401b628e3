#include "transport/collectives/check_members.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/preparing_communicator.hpp"
#include "transport/job/control_format.hpp"

namespace weft::check_members_test {
namespace {

using testing::expect_error;

class CheckMembersTest : public ::testing::Test {
 protected:
  /// Checks the members in a thread, as a process whose chips have these positions does.
  std::future<void> check(const Mesh& of, std::vector<int> positions,
                          std::chrono::milliseconds patience = std::chrono::minutes(1)) {
    return std::async(std::launch::async, [this, &of, positions = std::move(positions), patience] {
      WaitPolicy policy;
      policy.deadline = patience;
      check_members(memory, of, positions, board, policy);
    });
  }

  const Mesh mesh{{2, 3}, {"data", "model"}, {5, 4, 3, 2, 1, 0}};
  JobMemory memory =
      JobMemory::anonymous({.job = "t", .num_chips = 6, .arena_capacity = std::size_t{1} << 20});
  Board board = Board::anonymous({.job = "t", .num_workers = 3, .num_chips = 6});
};

TEST_F(CheckMembersTest, IsContentWhereAllMeetWhomTheyShould) {
  for (int generation = 0; generation < 100; ++generation) {
    std::vector<std::future<void>> processes;
    for (int i = 0; i < 3; ++i) processes.push_back(check(mesh, {2 * i, 2 * i + 1}));
    for (auto& process : processes) process.get();
  }
}

TEST_F(CheckMembersTest, NeedsNoSecondThread) { check(mesh, {0, 1, 2, 3, 4, 5}).get(); }

TEST_F(CheckMembersTest, LeavesTheNumbersOfCollectivesAsTheyWere) {
  check(mesh, {0, 1, 2, 3, 4, 5}).get();
  for (int chip = 0; chip < 6; ++chip) EXPECT_EQ(memory.call_record(chip).number, 0U);
  testing::PreparingCommunicator first(memory, mesh, 0, board.device(5), WaitPolicy{});
  first.start({.kind = CollectiveKind::barrier, .atoms = mesh.axis_atoms(0), .name = "x"});
  EXPECT_EQ(memory.call_record(5).number, 1U);
}

TEST_F(CheckMembersTest, FindsAnotherMesh) {
  const Mesh meshes[] = {{{3, 2}, {"data", "model"}, {5, 4, 3, 2, 1, 0}},
                         {{2, 3}, {"data", "fsdp"}, {5, 4, 3, 2, 1, 0}},
                         {{2, 3}, {"data", "model"}, {5, 4, 3, 0, 1, 2}}};
  for (const Mesh& other : meshes) {
    memory.begin_generation(0);
    auto first = check(mesh, {0, 1, 2});
    auto second = check(other, {3, 4, 5});
    int refused = 0;
    for (auto* process : {&first, &second}) {
      try {
        process->get();
      } catch (const Error& e) {
        const bool names_both = e.code() == Errc::program_divergence;
        EXPECT_TRUE(names_both || (refused == 1 && e.code() == Errc::peer_lost)) << e.what();
        EXPECT_NE(std::string(e.what()).find("members of mesh (2,3)"), std::string::npos)
            << e.what();
        ++refused;
        memory.abort("the other has ended");
      }
    }
    EXPECT_GE(refused, 1) << other.to_string();
  }
}

TEST_F(CheckMembersTest, NamesThePeerThatDoesNotCome) {
  auto first = check(mesh, {0, 1, 2}, std::chrono::milliseconds(20));
  expect_error(Errc::timeout, {"members of mesh (2,3)", "chip 2 (last called: no collective yet)"},
               [&] { first.get(); });
}

/// One host has chips 0 and 1, but chip 1's process believes that it belongs to the other host.
TEST_F(CheckMembersTest, FindsAPeerOfAnotherGroup) {
  const Mesh hosts = Mesh({2, 2}, {"host", "chip"}).with_dcn_atoms(AtomMask{2});
  auto first = check(hosts, {0});
  auto second = check(hosts, {3}, std::chrono::milliseconds(20));
  expect_error(Errc::program_divergence,
               {"axis \"chip\"", "chip 0 called barrier #1 'members of mesh (2,2)"},
               [&] { first.get(); });
  expect_error(Errc::program_divergence, {"chip 3 called barrier #1 'members of mesh (2,2)"},
               [&] { second.get(); });
}

TEST_F(CheckMembersTest, LeavesAxesThatCrossHostsAlone) {
  const Mesh hosts = Mesh({2, 6}, {"host", "chip"}).with_dcn_atoms(AtomMask{2});
  check(hosts, {0, 1, 2, 3, 4, 5}).get();
}

}  // namespace
}  // namespace weft::check_members_test
