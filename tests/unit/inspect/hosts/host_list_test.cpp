#include "inspect/hosts/host_list.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::host_list_test {
namespace {

using testing::expect_error;

std::vector<std::string> via(const std::string& machine,
                             const std::map<std::string, std::string>& variables) {
  return via_of(machine, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

using Words = std::vector<std::string>;

TEST(HostList, IsReadAsItWasWritten) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(HostList::read(folder.path()));
  const HostEntry entry{.where = where_this_is(std::string(32, 'a')), .via = {"ssh", "node7"}};
  HostList{.job = "job", .hosts = {entry, {}}}.write(folder.path());
  const auto list = HostList::read(folder.path());
  ASSERT_TRUE(list);
  ASSERT_EQ(list->hosts.size(), 2U);
  EXPECT_EQ(list->hosts[0].where.memory_id, entry.where.memory_id);
  EXPECT_EQ(list->hosts[0].via, entry.via);
  EXPECT_TRUE(list->hosts[0].is_here());
  EXPECT_FALSE(list->hosts[1].is_here());
}

/// Words of the list are run as commands, so only its owner may be able to write it.
TEST(HostList, IsRefusedIfOthersMayWriteIt) {
  const testing::TemporaryFolder folder;
  HostList{}.write(folder.path());
  ::chmod((folder.path() + "/hosts.json").c_str(), 0620);
  expect_error(Errc::invalid_argument, {"hosts.json", "620", "without the permissions 22"},
               [&] { HostList::read(folder.path()); });
}

TEST(HostList, SaysWhatIsWrongWithTheFile) {
  const testing::TemporaryFolder folder;
  for (const char* text :
       {"", "{", "[]", R"({"job": 1, "hosts": []})", R"({"job": "x", "hosts": [{"machine": 1}]})",
        R"({"job": "x", "hosts": [{"machine": "", "boot_id": "", "pid_namespace": 0,
            "memory_id": "../x", "via": []}]})"}) {
    std::ofstream(folder.path() + "/hosts.json") << text;
    ::chmod((folder.path() + "/hosts.json").c_str(), 0600);
    expect_error(Errc::corrupt, {"hosts.json"}, [&] { HostList::read(folder.path()); });
  }
}

TEST(ViaOf, FollowsTheStarterOfTheJob) {
  EXPECT_EQ(via("node7", {}), (Words{"ssh", "-o", "BatchMode=yes", "node7"}));
  EXPECT_EQ(via("node7", {{"SLURM_JOB_ID", "12"}}),
            (Words{"srun", "--jobid=12", "--overlap", "--nodes=1", "--ntasks=1", "-w", "node7"}));
  const Words pod = via("train-1", {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}});
  EXPECT_EQ((Words{pod[0], pod[1], pod[2]}), (Words{"kubectl", "exec", "-i"}));
  EXPECT_EQ(pod.back(), "--");
  EXPECT_EQ(via("node7", {{"SLURM_JOB_ID", "12"}, {"WEFT_INSPECT_VIA", "ssh -p 22 me@{host}"}}),
            (Words{"ssh", "-p", "22", "me@node7"}));
}

TEST(ViaOf, RefusesWhatReachesNoHost) {
  expect_error(Errc::invalid_argument, {"WEFT_INSPECT_VIA", "\"ssh node7\"", "{host}"}, [] {
    via("node7", {{"WEFT_INSPECT_VIA", "ssh node7"}});
  });
  for (const char* machine : {"", "-oProxyCommand=x", "a b", "a;b", "a\nb"}) {
    expect_error(Errc::invalid_argument, {"machine", "expected a host name"},
                 [&] { via(machine, {}); });
  }
}

}  // namespace
}  // namespace weft::host_list_test
