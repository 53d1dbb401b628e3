#include "chips/pjrt/plugin.hpp"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "chips/pjrt/abi/client_abi.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/fake_pjrt/loaded_fake.hpp"

namespace weft::pjrt::plugin_test {
namespace {

using testing::expect_error;
using testing::LoadedFake;
using testing::TemporaryFolder;

TEST(Plugin, IsLoadedOnceAndSaysWhatItIs) {
  LoadedFake fake;
  fake->minor = 115;
  const Plugin& plugin = Plugin::load(fake.path());
  EXPECT_EQ(&Plugin::load(fake.path()), &plugin);
  EXPECT_EQ(plugin.name(), "the PJRT plug-in fake_plugin.so (API 0.115)");
  EXPECT_EQ(plugin.attributes(),
            (std::vector<std::pair<std::string, std::string>>{{"xla_version", "2"}}));
  EXPECT_TRUE(plugin.has(kClientCreate));
  EXPECT_EQ(plugin.extension(5), nullptr);
}

TEST(Plugin, AcceptsTheOldestVersionThatOnlyAppends) {
  LoadedFake fake;
  fake->minor = Plugin::kMinorMin;
  EXPECT_EQ(Plugin::load(fake.path()).minor(), 57);
}

TEST(Plugin, RefusesOtherVersions) {
  LoadedFake old("old.so");
  old->minor = Plugin::kMinorMin - 1;
  expect_error(Errc::version, {"old.so (API 0.56)", "expected API 0.57", "newer version"},
               [&] { Plugin::load(old.path()); });
  LoadedFake other;
  other->major = 1;
  expect_error(Errc::version, {"API 1.81", "newer weft"}, [&] { Plugin::load(other.path()); });
}

TEST(Plugin, RefusesOneThatLacksACallThatWeftMakes) {
  LoadedFake fake;
  fake->lacks = "PJRT_LoadedExecutable_Execute";
  expect_error(Errc::unavailable,
               {"fake_plugin.so (API 0.81)", "lacks PJRT_LoadedExecutable_Execute"},
               [&] { Plugin::load(fake.path()); });
}

TEST(Plugin, MayLackACallThatWeftCanDoWithout) {
  LoadedFake fake;
  fake->lacks = "PJRT_Device_MemoryStats";
  const Plugin& plugin = Plugin::load(fake.path());
  EXPECT_FALSE(plugin.has(kMemoryStats));
  Block<MemoryStatsArgs> stats;
  const std::string text = expect_error(Errc::unavailable, {"lacks PJRT_Device_MemoryStats"},
                                        [&] { plugin.call(kMemoryStats, stats); });
}

TEST(Plugin, RefusesFilesThatArentPlugins) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/plugin.so";
  expect_error(Errc::not_found, {path, "doesn't exist"}, [&] { Plugin::load(path); });
  std::ofstream(path) << "no library at all";
  expect_error(Errc::unavailable, {path, "isn't an ELF file"}, [&] { Plugin::load(path); });

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_machine = EM_RISCV;
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<char*>(&header), sizeof header);
  expect_error(Errc::unavailable, {path, "it is for RISC-V", "this machine is"},
               [&] { Plugin::load(path); });

  std::filesystem::remove(path);
  std::filesystem::copy_file("/proc/self/exe", path);  // an ELF file, but dlopen() refuses programs
  expect_error(Errc::unavailable, {path, "can't be loaded"}, [&] { Plugin::load(path); });
}

TEST(Plugin, HasItsOwnWordsInErrors) {
  LoadedFake fake;
  const Plugin& plugin = Plugin::load(fake.path());
  fake->errors["PJRT_Client_Create"] = {8, "the device is full"};
  Block<ClientCreateArgs> arguments;
  try {
    plugin.call(kClientCreate, arguments);
    FAIL() << "expected an error";
  } catch (const PluginError& error) {
    EXPECT_EQ(error.code(), Errc::no_space);
    EXPECT_EQ(error.status(), 8);
    EXPECT_EQ(error.words(), "the device is full");
    EXPECT_STREQ(error.what(),
                 "the PJRT plug-in fake_plugin.so (API 0.81): PJRT_Client_Create failed: the "
                 "device is full");
  }
}

}  // namespace
}  // namespace weft::pjrt::plugin_test
