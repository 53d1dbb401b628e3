#include "actors/link/rendezvous.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include <nlohmann/json.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::rendezvous_test {
namespace {

using testing::expect_error;

class Meeting : public ::testing::Test {
 protected:
  HostPlace place(int index) const {
    return {.index = index, .count = 2, .meeting = "77.0", .meeting_folder = folder.path()};
  }
  HostPlace host_0() const {
    HostPlace made = place(0);
    prepare_meeting(made, "lo");
    return made;
  }
  std::string path() const { return folder.path() + "/rendezvous-77.0"; }
  nlohmann::json content() const { return nlohmann::json::parse(std::ifstream(path())); }
  void replace(const nlohmann::json& json) const { std::ofstream(path()) << json.dump(); }

  testing::TemporaryFolder folder;
};

TEST_F(Meeting, TellsTheTrainerAndASecretOfThisRun) {
  EXPECT_TRUE(read_rendezvous(place(1)).empty());
  const HostPlace first = host_0();
  const Rendezvous file(first, "lo", "tls://0.0.0.0:4711");
  struct stat info {};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const std::vector<HostPlace> places = read_rendezvous(place(1));
  ASSERT_FALSE(places.empty());
  EXPECT_EQ(places.front().trainer, "127.0.0.1:4711");
  EXPECT_EQ(places.front().secret, first.secret);
  EXPECT_EQ(places.front().index, 1);
  EXPECT_NE(host_0().secret, first.secret);
  EXPECT_GE(first.secret.size(), 64U);
}

TEST_F(Meeting, TellsEveryAddressAndLoopbackLast) {
  HostPlace first = place(0);
  prepare_meeting(first, "");
  const Rendezvous file(first, "", "tls://0.0.0.0:4711");
  const std::vector<HostPlace> places = read_rendezvous(place(1));
  ASSERT_FALSE(places.empty());
  EXPECT_EQ(places.back().trainer, "127.0.0.1:4711");
  EXPECT_EQ(places.size(), own_addresses("", "test").size() + 1);
}

TEST_F(Meeting, EndsWithItsFileAndLeavesNothing) {
  { const Rendezvous file(host_0(), "lo", "tls://0.0.0.0:4711"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(Meeting, ReplacesTheFileOfAnEarlierRunAndKeepsThatOfALaterOne) {
  std::optional<Rendezvous> earlier(std::in_place, host_0(), "lo", "tls://0.0.0.0:1");
  const HostPlace now = host_0();
  const Rendezvous file(now, "lo", "tls://0.0.0.0:2");
  earlier.reset();
  const std::vector<HostPlace> places = read_rendezvous(place(1));
  ASSERT_FALSE(places.empty());
  EXPECT_EQ(places.front().secret, now.secret);
}

TEST_F(Meeting, RefusesLoopbackThatAnotherMachineTells) {
  const Rendezvous file(host_0(), "lo", "tls://0.0.0.0:4711");
  nlohmann::json other = content();
  other["loopback"] = "another";
  other["machine"] = "node1";
  replace(other);
  expect_error(Errc::invalid_argument, {"host 0 (node1)", "127.0.0.1", "host 1", "backend.network"},
               [&] { read_rendezvous(place(1)); });
  other["addresses"] = {"10.0.0.1", "127.0.0.1"};
  replace(other);
  const std::vector<HostPlace> places = read_rendezvous(place(1));
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places.front().trainer, "10.0.0.1:4711");
}

TEST_F(Meeting, RefusesOpenAndMalformedFiles) {
  const Rendezvous file(host_0(), "lo", "tls://0.0.0.0:4711");
  ::chmod(path().c_str(), 0644);
  expect_error(Errc::io, {path(), "mode 644"}, [&] { read_rendezvous(place(1)); });
  ::chmod(path().c_str(), 0600);
  for (const char* text : {"", "{}", "[1]", R"({"addresses":[],"port":1,"secret":"short"})"}) {
    std::ofstream(path()) << text;
    expect_error(Errc::io, {path(), "remove it"}, [&] { read_rendezvous(place(1)); });
  }
}

}  // namespace
}  // namespace weft::rendezvous_test
