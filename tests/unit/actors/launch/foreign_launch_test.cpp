#include "actors/launch/foreign_launch.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/expect_error.hpp"

namespace weft::foreign_launch_test {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<ForeignLaunch> launch_of(const Variables& variables) {
  return foreign_launch([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(ForeignLaunch, IsReadFromEachLaunchersVariables) {
  const auto mpi = launch_of({{"OMPI_COMM_WORLD_RANK", "2"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  ASSERT_TRUE(mpi);
  EXPECT_EQ(mpi->launcher, "Open MPI");
  EXPECT_EQ(mpi->rank, 2);
  EXPECT_EQ(mpi->size, 4);
  const auto mpich = launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}});
  ASSERT_TRUE(mpich);
  EXPECT_EQ(mpich->launcher, "MPICH");
  const auto slurm = launch_of(
      {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_STEP_NUM_NODES", "1"}});
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->launcher, "Slurm");
  EXPECT_EQ(slurm->size, 8);
}

TEST(ForeignLaunch, IsNoneInABatchScriptOfSlurm) {
  EXPECT_FALSE(launch_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));
}

TEST(ForeignLaunch, IsNoneWhereOneProcessWasStarted) {
  EXPECT_FALSE(launch_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_FALSE(launch_of({}));
}

TEST(ForeignLaunch, CanBeIgnored) {
  EXPECT_FALSE(launch_of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"WEFT_IGNORE_LAUNCHER", "1"}}));
}

TEST(ForeignLaunch, KnowsTheHostsOfItsProcesses) {
  const auto mpi = launch_of({{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  ASSERT_TRUE(mpi);
  EXPECT_EQ(mpi->hosts, 2);
  EXPECT_EQ(mpi->host, 1);
  EXPECT_EQ(mpi->local_rank, 1);
}

TEST(ForeignLaunch, QuotesWhatIsNoNumber) {
  for (const char* text : {"", "x", "-1", "1x", "99999999999"}) {
    testing::expect_error(Errc::invalid_argument,
                          {"PMI_RANK", std::string("\"") + text + "\"", "WEFT_IGNORE_LAUNCHER"},
                          [&] {
                            launch_of({{"PMI_RANK", text}, {"PMI_SIZE", "2"}});
                          });
  }
}

TEST(ForeignLaunch, IsNotPassedOnToWorkers) {
  EXPECT_TRUE(is_of_foreign_launch("PMI_RANK"));
  EXPECT_TRUE(is_of_foreign_launch("OMPI_COMM_WORLD_SIZE"));
  EXPECT_FALSE(is_of_foreign_launch("RANK")) << "loops may read it";
  EXPECT_FALSE(is_of_foreign_launch("PATH"));
  EXPECT_FALSE(is_of_foreign_launch(""));
}

}  // namespace
}  // namespace weft::foreign_launch_test
