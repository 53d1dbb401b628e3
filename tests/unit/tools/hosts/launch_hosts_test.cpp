#include "tools/weft/hosts/launch_hosts.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"

namespace weft::launch_hosts_test {
namespace {

using testing::expect_error;

LaunchOptions options() {
  LaunchOptions options;
  options.hosts = {"h1", "h2"};
  options.folder = "/data/my runs";
  options.command = {"./train", "--name", "it's"};
  return options;
}

TEST(LaunchHosts, GiveTheShellOfAHostItsWholeCommand) {
  LaunchOptions given = options();
  given.folder = "/";
  given.workers = 4;
  given.environment = {"A=b c"};
  EXPECT_EQ(host_command(given, 1, "/usr/bin/weft"),
            "cd / && exec env WEFT_HOSTS=2 WEFT_HOST_INDEX=1 'A=b c' WEFT_LAUNCH_WORKERS=4 "
            "/usr/bin/weft host-part -- ./train --name 'it'\\''s'");
}

TEST(LaunchHosts, RefuseOptionsOfOneHost) {
  const auto refused = [](const char* option, const auto& change) {
    LaunchOptions given = options();
    change(given);
    expect_error(Errc::invalid_argument, {option}, [&] { launch_on_hosts(given); });
  };
  refused("--timeout", [](LaunchOptions& given) { given.timeout_s = 1; });
  refused("--only", [](LaunchOptions& given) { given.only = {1}; });
  refused("--log-dir", [](LaunchOptions& given) { given.log_dir = "logs"; });
  refused("--timestamps", [](LaunchOptions& given) { given.timestamps = true; });
  refused("--via \" \"", [](LaunchOptions& given) { given.via = " "; });
  refused("--hosts \"\"", [](LaunchOptions& given) { given.hosts = {"h1", ""}; });
  refused("--hosts \"-oX\"", [](LaunchOptions& given) { given.hosts = {"-oX"}; });
}

TEST(LaunchHosts, NameAViaThatIsNoProgram) {
  LaunchOptions given = options();
  given.folder = "/";
  given.via = "/no/such/program -x";
  expect_error(Errc::not_found, {"--via", "/no/such/program"}, [&] { launch_on_hosts(given); });
}

}  // namespace
}  // namespace weft::launch_hosts_test
