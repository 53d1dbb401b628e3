#include "chips/pjrt/self_test.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/fake_pjrt/loaded_fake.hpp"

namespace weft::pjrt::self_test_test {
namespace {

using testing::expect_error;
using testing::LoadedFake;

std::shared_ptr<Client> client_of(LoadedFake& fake) {
  return Client::make(Plugin::load(fake.path()), {}, {});
}

TEST(SelfTest, SetsNoFlagForASoundPlugin) {
  LoadedFake fake;
  const auto client = client_of(fake);
  test_plugin(*client);
  EXPECT_EQ(client->flags(), CompileFlags{});
  EXPECT_EQ(fake->misuses, std::vector<std::string>{});
}

TEST(SelfTest, CuresStaleWeightsByAFlag) {
  LoadedFake fake;
  const auto client = client_of(fake);
  fake->keeps_weights = true;
  test_plugin(*client);
  EXPECT_EQ(client->flags(), (CompileFlags{{"xla_cpu_use_xnnpack", false}}));
}

TEST(SelfTest, CuresALostNanByAFlag) {
  LoadedFake fake;
  const auto client = client_of(fake);
  fake->loses_nan = true;
  test_plugin(*client);
  EXPECT_EQ(client->flags(), (CompileFlags{{"xla_cpu_enable_fast_min_max", false}}));
}

TEST(SelfTest, RefusesAPluginThatNoFlagCures) {
  LoadedFake fake;
  const auto client = client_of(fake);
  fake->flags_cure = false;
  fake->keeps_weights = true;
  expect_error(Errc::unavailable,
               {"fake_plugin.so (API 0.81)", "platform cpu fake 1", "old values of weights",
                "expected 1568, found 784", "install another plug-in"},
               [&] { test_plugin(*client); });
  fake->keeps_weights = false;
  fake->loses_nan = true;
  expect_error(Errc::unavailable, {"lose a NaN"}, [&] { test_plugin(*client); });
}

TEST(SelfTest, RefusesAPluginThatCopiesResults) {
  LoadedFake fake;
  const auto client = client_of(fake);
  fake->copies_results = true;
  expect_error(Errc::unavailable, {"tf.aliasing_output"}, [&] { test_plugin(*client); });
}

TEST(SelfTest, RefusesAPluginWithoutDevices) {
  LoadedFake fake;
  fake->device_count = 0;
  const auto client = client_of(fake);
  expect_error(Errc::unavailable, {"no device in this process"}, [&] { test_plugin(*client); });
}

/// Devices other than CPUs don't use the host's memory in place, so these self-tests are skipped.
TEST(SelfTest, TestsPlacesOnCpusOnly) {
  LoadedFake fake;
  fake->platform = "cuda";
  const auto client = client_of(fake);
  fake->copies_results = fake->keeps_weights = true;
  test_plugin(*client);
  EXPECT_EQ(client->flags(), CompileFlags{});
}

}  // namespace
}  // namespace weft::pjrt::self_test_test
