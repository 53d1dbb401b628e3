/// Tests that each launcher's variables tell a process which host it is, and that each
/// contradiction between them has its own message.

#include "actors/launch/start_place.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::start_place_test {
namespace {

using testing::expect_error;
using Variables = std::map<std::string, std::string>;

HostPlace place(const Variables& variables) {
  const VariableLookup lookup = [&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  return start_place(foreign_launch(lookup), lookup);
}

/// Returns "INDEX of COUNT at MEETING", or "one host".
std::string text_of(const HostPlace& place) {
  if (place.count == 1) return "one host";
  return fmt::format("{} of {} at {}", place.index, place.count, place.meeting);
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

/// The variables of task `rank` of a step of Slurm.
Variables slurm(int rank, int tasks, int node, int nodes) {
  return {{"SLURM_JOB_ID", "77"},
          {"SLURM_STEP_ID", "3"},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_STEP_NUM_TASKS", std::to_string(tasks)},
          {"SLURM_LOCALID", std::to_string(rank - node * tasks / nodes)},
          {"SLURM_NODEID", std::to_string(node)},
          {"SLURM_STEP_NUM_NODES", std::to_string(nodes)}};
}

Variables open_mpi(int rank, int size, int local_rank, int local_size) {
  return {{"PMIX_NAMESPACE", "prterun-a-12@1"},
          {"OMPI_COMM_WORLD_RANK", std::to_string(rank)},
          {"OMPI_COMM_WORLD_SIZE", std::to_string(size)},
          {"OMPI_COMM_WORLD_LOCAL_RANK", std::to_string(local_rank)},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", std::to_string(local_size)}};
}

const Variables kTorchrun{{"RANK", "1"},
                          {"WORLD_SIZE", "2"},
                          {"LOCAL_RANK", "0"},
                          {"LOCAL_WORLD_SIZE", "1"},
                          {"GROUP_RANK", "1"},
                          {"GROUP_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "10.0.0.1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_RUN_ID", "r7"},
                          {"TORCHELASTIC_RESTART_COUNT", "0"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

TEST(StartPlace, IsOneHostUnlessSomethingNamesMore) {
  EXPECT_EQ(text_of(place({})), "one host");
  EXPECT_EQ(text_of(place({{"WEFT_HOSTS", "1"}})), "one host");
  EXPECT_EQ(text_of(place({{"JOB_COMPLETION_INDEX", "3"}})), "one host") << "an indexed job alone";
  EXPECT_EQ(text_of(place({{"RANK", "1"}, {"WORLD_SIZE", "2"}})), "one host") << "no MASTER_ADDR";
}

TEST(StartPlace, IsReadFromSlurm) {
  EXPECT_EQ(text_of(place(slurm(1, 2, 1, 2))), "1 of 2 at 77.3");
  EXPECT_EQ(text_of(place(slurm(2, 4, 1, 2))), "1 of 2 at 77.3") << "two tasks on each node";
  EXPECT_EQ(text_of(place(with(slurm(1, 2, 1, 2), {{"SLURM_RESTART_COUNT", "1"}}))),
            "1 of 2 at 77.3.1")
      << "a requeued job doesn't meet in the file of its earlier start";
}

TEST(StartPlace, IsOneHostWithinSlurmWhereASingleNodeOrTaskRuns) {
  EXPECT_EQ(text_of(place(slurm(0, 1, 0, 1))), "one host") << "srun -N1";
  EXPECT_EQ(text_of(place(slurm(1, 4, 0, 1))), "one host") << "srun -N1 -n4: four workers";
  EXPECT_EQ(text_of(place({{"SLURM_JOB_ID", "77"},
                           {"SLURM_NODEID", "0"},
                           {"SLURM_PROCID", "0"},
                           {"SLURM_NTASKS", "8"},
                           {"SLURM_NNODES", "2"}})),
            "one host")
      << "a batch script without srun";
}

TEST(StartPlace, IsReadFromOpenMpi) {
  EXPECT_EQ(text_of(place(open_mpi(1, 2, 0, 1))), "1 of 2 at prterun-a-12_1");
  EXPECT_EQ(text_of(place(open_mpi(2, 4, 0, 2))), "1 of 2 at prterun-a-12_1");
  EXPECT_EQ(text_of(place(open_mpi(0, 1, 0, 1))), "one host");
  EXPECT_EQ(text_of(place(open_mpi(1, 2, 1, 2))), "one host");
}

TEST(StartPlace, IsReadFromMpich) {
  const Variables rank_1{{"PMI_RANK", "1"},
                         {"PMI_SIZE", "2"},
                         {"MPI_LOCALRANKID", "0"},
                         {"MPI_LOCALNRANKS", "1"},
                         {"WEFT_JOB", "tuesday"}};
  EXPECT_EQ(text_of(place(rank_1)), "1 of 2 at tuesday");
  EXPECT_EQ(text_of(place(with(rank_1, {{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}))),
            "one host");
  expect_error(Errc::invalid_argument, {"the job has 2 hosts", "WEFT_JOB", "WEFT_TRAINER"}, [&] {
    place(with(rank_1, {{"WEFT_JOB", ""}}));
  });
}

TEST(StartPlace, IsReadFromTorchrun) {
  EXPECT_EQ(text_of(place(kTorchrun)), "1 of 2 at r7.0");
  EXPECT_EQ(text_of(place({{"RANK", "1"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "a"},
                           {"MASTER_PORT", "29500"},
                           {"WEFT_JOB", "j"}})),
            "1 of 2 at j")
      << "one process on each node";
  expect_error(Errc::invalid_argument, {"set WEFT_JOB"}, [] {
    place(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}}));
  });
}

class StartPlaces : public ::testing::Test {
 protected:
  void SetUp() override { write("a secret of this job", 0600); }
  void write(const std::string& text, mode_t mode) const {
    std::ofstream(path()) << text;
    ::chmod(path().c_str(), mode);
  }
  std::string path() const { return folder.path() + "/secret"; }
  Variables by_hand(const Variables& more = {}) const {
    return with({{"WEFT_HOSTS", "3"},
                 {"WEFT_HOST_INDEX", "2"},
                 {"WEFT_TRAINER", "10.0.0.1:4711"},
                 {"WEFT_SECRET_FILE", path()}},
                more);
  }

  testing::TemporaryFolder folder;
};

TEST_F(StartPlaces, AreReadFromWeftsVariables) {
  const HostPlace third = place(by_hand());
  EXPECT_EQ(text_of(third), "2 of 3 at ");
  EXPECT_EQ(third.trainer, "10.0.0.1:4711");
  EXPECT_EQ(third.secret, "a secret of this job");
  EXPECT_TRUE(third.is_agent());
  EXPECT_FALSE(place(by_hand({{"WEFT_HOST_INDEX", "0"}})).is_agent());
}

TEST_F(StartPlaces, TakeTheIndexOfKubernetes) {
  const HostPlace second = place(by_hand({{"WEFT_HOST_INDEX", ""}, {"JOB_COMPLETION_INDEX", "1"}}));
  EXPECT_EQ(text_of(second), "1 of 3 at ");
  expect_error(Errc::invalid_argument,
               {"WEFT_HOST_INDEX = 2", "JOB_COMPLETION_INDEX = 1", "unset one"}, [&] {
                 place(by_hand({{"JOB_COMPLETION_INDEX", "1"}}));
               });
  expect_error(Errc::invalid_argument, {"JOB_COMPLETION_INDEX = \"3\"", "0 to 2"}, [&] {
    place(by_hand({{"WEFT_HOST_INDEX", ""}, {"JOB_COMPLETION_INDEX", "3"}}));
  });
}

TEST_F(StartPlaces, TakeTheAddressOfTorchrunUnlessItsOwnProcessListensThere) {
  const Variables secret{{"WEFT_SECRET_FILE", path()}};
  expect_error(Errc::invalid_argument, {"WEFT_SECRET_FILE", "without WEFT_TRAINER"},
               [&] { place(with(kTorchrun, secret)); });
  const Variables free = with(with(kTorchrun, secret), {{"TORCHELASTIC_USE_AGENT_STORE", "False"}});
  EXPECT_EQ(place(free).trainer, "10.0.0.1:29500");
}

TEST_F(StartPlaces, PreferWeftsVariablesToALaunchers) {
  EXPECT_EQ(place(with(slurm(1, 2, 1, 2),
                       {{"WEFT_TRAINER", "10.0.0.1:4711"}, {"WEFT_SECRET_FILE", path()}}))
                .meeting,
            "");
  EXPECT_EQ(text_of(place(with(slurm(1, 2, 1, 2), {{"WEFT_JOB", "mine"}}))), "1 of 2 at mine");
  EXPECT_EQ(text_of(place(with(open_mpi(1, 2, 1, 2), {{"WEFT_HOSTS", "2"}}))),
            "1 of 2 at prterun-a-12_1")
      << "each process of one machine is a host";
  EXPECT_EQ(text_of(place(by_hand({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}))), "2 of 3 at ")
      << "one process says nothing";
  EXPECT_EQ(text_of(place(with(slurm(1, 2, 1, 2), {{"WEFT_IGNORE_LAUNCHER", "1"}}))), "one host");
}

TEST_F(StartPlaces, RefuseContradictionsByBothNames) {
  expect_error(Errc::invalid_argument,
               {"WEFT_HOSTS = 3", "Slurm", "(SLURM_STEP_NUM_TASKS = 2, SLURM_STEP_NUM_NODES = 2)",
                "unset WEFT_HOSTS"},
               [] {
                 place(with(slurm(1, 2, 1, 2), {{"WEFT_HOSTS", "3"}}));
               });
  expect_error(Errc::invalid_argument, {"WEFT_HOSTS = 1", "Slurm", "SLURM_STEP_NUM_NODES = 2"}, [] {
    place(with(slurm(1, 2, 1, 2), {{"WEFT_HOSTS", "1"}}));
  });
  expect_error(Errc::invalid_argument,
               {"WEFT_HOST_INDEX = 0", "SLURM_PROCID = 1", "number 1", "unset one"}, [] {
                 place(with(slurm(1, 2, 1, 2), {{"WEFT_HOST_INDEX", "0"}}));
               });
  expect_error(
      Errc::invalid_argument,
      {"WEFT_HOSTS = 3", "Open MPI", "(OMPI_COMM_WORLD_SIZE = 4, OMPI_COMM_WORLD_LOCAL_SIZE = 2)"},
      [] {
        place(with(open_mpi(2, 4, 0, 2), {{"WEFT_HOSTS", "3"}}));
      });
  expect_error(
      Errc::invalid_argument, {"WEFT_HOSTS = 4", "MPICH", "(PMI_SIZE = 2, MPI_LOCALNRANKS = 1)"},
      [] {
        place(
            {{"WEFT_HOSTS", "4"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "1"}});
      });
  expect_error(Errc::invalid_argument, {"WEFT_HOSTS = 5", "torchrun", "GROUP_WORLD_SIZE = 2"}, [] {
    place(with(kTorchrun, {{"WEFT_HOSTS", "5"}}));
  });
  expect_error(Errc::invalid_argument, {"WEFT_HOSTS = 3", "torchrun", "(WORLD_SIZE = 2)"}, [] {
    place({{"WEFT_HOSTS", "3"},
           {"RANK", "1"},
           {"WORLD_SIZE", "2"},
           {"MASTER_ADDR", "a"},
           {"MASTER_PORT", "29500"}});
  });
  expect_error(Errc::invalid_argument, {"WEFT_HOST_INDEX = 0", "RANK = 1"}, [] {
    place(with(kTorchrun, {{"WEFT_HOST_INDEX", "0"}}));
  });
}

TEST_F(StartPlaces, RefuseUnevenHosts) {
  expect_error(Errc::unavailable,
               {"(OMPI_COMM_WORLD_SIZE = 3, OMPI_COMM_WORLD_LOCAL_SIZE = 2)", "ppr:1:node"},
               [] { place(open_mpi(0, 3, 0, 2)); });
  expect_error(Errc::unavailable, {"one after the other"}, [] { place(open_mpi(1, 4, 0, 2)); });
  expect_error(Errc::unavailable, {"(SLURM_STEP_NUM_TASKS = 3, SLURM_STEP_NUM_NODES = 2)"},
               [] { place(slurm(0, 3, 0, 2)); });
}

TEST_F(StartPlaces, RefuseWhatIsMissingOrMalformed) {
  const auto refused = [&](const std::string& name, const std::string& value,
                           std::initializer_list<std::string_view> words) {
    const Variables variables = by_hand({{name, value}});
    expect_error(Errc::invalid_argument, words, [&] { place(variables); });
  };
  refused("WEFT_HOSTS", "0", {"WEFT_HOSTS = \"0\"", "expected a number from 1 to 4096"});
  refused("WEFT_HOSTS", "two", {"WEFT_HOSTS = \"two\""});
  refused("WEFT_HOSTS", "", {"WEFT_HOST_INDEX = 2 without WEFT_HOSTS"});
  refused("WEFT_HOST_INDEX", "3", {"WEFT_HOST_INDEX = \"3\"", "expected a number from 0 to 2"});
  refused("WEFT_HOST_INDEX", "", {"WEFT_HOSTS = 3 without WEFT_HOST_INDEX"});
  refused("WEFT_TRAINER", "", {"WEFT_SECRET_FILE", "without WEFT_TRAINER", "10.0.0.1:4711"});
  refused("WEFT_TRAINER", "10.0.0.1", {"WEFT_TRAINER"});
  refused("WEFT_SECRET_FILE", "", {"WEFT_TRAINER", "without WEFT_SECRET_FILE"});
  for (const char* job : {"a/b", "a b", "\n"}) {
    expect_error(Errc::invalid_argument, {"WEFT_JOB", job}, [&] {
      place({{"WEFT_HOSTS", "2"}, {"WEFT_HOST_INDEX", "1"}, {"WEFT_JOB", job}});
    });
  }
}

TEST_F(StartPlaces, RefuseASecretThatIsOpenShortOrAbsent) {
  write("a secret of this job", 0640);
  expect_error(Errc::invalid_argument, {"mode 640", "chmod 600"}, [&] { place(by_hand()); });
  ::chmod(path().c_str(), 0600);
  write("short", 0600);
  expect_error(Errc::invalid_argument, {"a secret of 5 bytes", "openssl rand -hex 32"},
               [&] { place(by_hand()); });
  expect_error(Errc::io, {"WEFT_SECRET_FILE", "No such file"}, [&] {
    place(by_hand({{"WEFT_SECRET_FILE", path() + ".absent"}}));
  });
}

TEST_F(StartPlaces, AreTheSameForTheirWorkers) {
  HostPlace here = place(by_hand());
  here.address = "10.0.0.3";
  here.ports = {4711, 4720};
  here.uses_ucx = true;
  Variables variables;
  for (const std::string& entry : worker_place_variables(here, path())) {
    const auto equals = entry.find('=');
    variables[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const HostPlace there = worker_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  EXPECT_EQ(there.index, 2);
  EXPECT_EQ(there.count, 3);
  EXPECT_EQ(there.trainer, here.trainer);
  EXPECT_EQ(there.secret, here.secret);
  EXPECT_EQ(there.address, "10.0.0.3");
  EXPECT_EQ(there.ports, here.ports);
  EXPECT_TRUE(there.uses_ucx);
  EXPECT_EQ(variables.at("UCX_MEM_EVENTS"), "n");
}

TEST_F(StartPlaces, LeaveOutTheWhiteSpaceAfterTheSecret) {
  write("sixteen bytes ok\n\n", 0600);
  EXPECT_EQ(place(by_hand()).secret, "sixteen bytes ok");
}

}  // namespace
}  // namespace weft::start_place_test
