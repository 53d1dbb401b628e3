#include "tools/weft/devices/plugin_report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/fake_pjrt/loaded_fake.hpp"

namespace weft::plugin_report_test {
namespace {

using testing::LoadedFake;
constexpr std::chrono::minutes kLong{5};

PluginReport report(const LoadedFake& fake, std::chrono::milliseconds limit = kLong) {
  return report_of({.path = fake.path(), .kind = DeviceKind::cpu, .found_by = "a test"}, limit);
}

TEST(PluginReport, ListsTheDevicesOfAPlugin) {
  LoadedFake fake;
  fake->memory_limit_bytes = 1 << 20;
  const PluginReport found = report(fake);
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.platform, "cpu");
  EXPECT_EQ(found.version, "fake 1");
  EXPECT_EQ(found.api, "0.81");
  ASSERT_EQ(found.devices.size(), 2U);
  EXPECT_EQ(found.devices[1].id, 1);
  EXPECT_EQ(found.devices[1].kind, "fake chip");
  EXPECT_EQ(found.devices[1].limit_bytes, 1 << 20);
  EXPECT_EQ(fake->live_objects, 0U);  // this process has no client
}

TEST(PluginReport, HasNoMemoryWhereThePluginHasNoStatistics) {
  const PluginReport found = report(LoadedFake());
  ASSERT_EQ(found.devices.size(), 2U);
  EXPECT_FALSE(found.devices[0].used_bytes.has_value());
}

TEST(PluginReport, HasTheErrorOfAPluginThatCantBeUsed) {
  LoadedFake fake;
  fake->errors["PJRT_Client_Create"] = {14, "the device is in use"};
  EXPECT_EQ(report(fake).error,
            "the PJRT plug-in fake_plugin.so (API 0.81): PJRT_Client_Create failed: the device is "
            "in use");
}

TEST(PluginReport, SurvivesAPluginThatEndsItsProcess) {
  LoadedFake aborts;
  aborts->on_client = [] { std::abort(); };
  EXPECT_EQ(report(aborts).error, "it ended its process by signal 6 (Aborted)");
  LoadedFake exits;
  exits->on_client = [] { std::_Exit(3); };
  EXPECT_EQ(report(exits).error, "it ended its process with code 3");
}

TEST(PluginReport, DoesntWaitForeverForAPlugin) {
  LoadedFake fake;
  fake->on_client = [] { ::pause(); };
  EXPECT_EQ(report(fake, std::chrono::milliseconds(100)).error,
            "it hasn't answered within 0.1 s; another process may have its device");
}

}  // namespace
}  // namespace weft::plugin_report_test
