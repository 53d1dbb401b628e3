#include "actors/protocol/host_place.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::host_place_test {
namespace {

using testing::expect_error;
using Variables = std::map<std::string, std::string>;

HostPlace place(const Variables& variables) {
  return host_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

class HostPlaces : public ::testing::Test {
 protected:
  /// Returns variables that are right, with one of them replaced; "" removes it.
  Variables with(const std::string& name, const std::string& value) const {
    Variables variables{{"WEFT_HOSTS", "3"},
                        {"WEFT_HOST_INDEX", "2"},
                        {"WEFT_TRAINER", "10.0.0.1:4711"},
                        {"WEFT_SECRET_FILE", secret("a secret of this job", 0600)}};
    variables[name] = value;
    if (value.empty()) variables.erase(name);
    return variables;
  }
  std::string secret(const std::string& text, mode_t mode) const {
    const std::string path = folder.path() + "/secret";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  testing::TemporaryFolder folder;
};

TEST_F(HostPlaces, AreOneHostUnlessTheVariablesSayMore) {
  EXPECT_EQ(place({}).count, 1);
  EXPECT_EQ(place({{"WEFT_HOSTS", "1"}}).count, 1);
  EXPECT_FALSE(place({}).is_agent());
}

TEST_F(HostPlaces, AreReadFromVariables) {
  const HostPlace third = place(with("WEFT_HOSTS", "3"));
  EXPECT_EQ(third.index, 2);
  EXPECT_EQ(third.count, 3);
  EXPECT_EQ(third.trainer, "10.0.0.1:4711");
  EXPECT_EQ(third.secret, "a secret of this job");
  EXPECT_TRUE(third.is_agent());
  EXPECT_FALSE(place(with("WEFT_HOST_INDEX", "0")).is_agent());
}

TEST_F(HostPlaces, LeaveOutTheWhiteSpaceAfterTheSecret) {
  const Variables variables = with("WEFT_SECRET_FILE", secret("sixteen bytes ok\n\n", 0600));
  secret("sixteen bytes ok\n\n", 0600);
  EXPECT_EQ(place(variables).secret, "sixteen bytes ok");
}

TEST_F(HostPlaces, RefuseWhatIsMissingOrMalformed) {
  const auto refused = [&](const std::string& name, const std::string& value,
                           std::initializer_list<std::string_view> words) {
    const Variables variables = with(name, value);
    expect_error(Errc::invalid_argument, words, [&] { place(variables); });
  };
  refused("WEFT_HOSTS", "0", {"WEFT_HOSTS = \"0\"", "expected a number from 1 to 4096"});
  refused("WEFT_HOSTS", "two", {"WEFT_HOSTS = \"two\""});
  refused("WEFT_HOSTS", "", {"WEFT_HOST_INDEX = \"2\" without WEFT_HOSTS"});
  refused("WEFT_HOST_INDEX", "3", {"WEFT_HOST_INDEX = \"3\"", "expected a number from 0 to 2"});
  refused("WEFT_HOST_INDEX", "", {"WEFT_HOSTS = 3 without WEFT_HOST_INDEX"});
  refused("WEFT_TRAINER", "", {"without WEFT_TRAINER", "10.0.0.1:4711"});
  refused("WEFT_TRAINER", "10.0.0.1", {"WEFT_TRAINER"});
  refused("WEFT_SECRET_FILE", "", {"without WEFT_SECRET_FILE"});
}

TEST_F(HostPlaces, RefuseASecretThatIsOpenShortOrAbsent) {
  Variables variables = with("WEFT_HOSTS", "3");
  secret("a secret of this job", 0640);
  expect_error(Errc::invalid_argument, {"mode 640", "chmod 600"}, [&] { place(variables); });
  secret("short", 0600);
  ::chmod(variables["WEFT_SECRET_FILE"].c_str(), 0600);
  expect_error(Errc::invalid_argument, {"a secret of 5 bytes", "openssl rand -hex 32"},
               [&] { place(variables); });
  variables["WEFT_SECRET_FILE"] += ".absent";
  expect_error(Errc::io, {"WEFT_SECRET_FILE", "No such file"}, [&] { place(variables); });
}

}  // namespace
}  // namespace weft::host_place_test
