#include "chips/pjrt/discovery.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::pjrt::discovery_test {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TemporaryFolder;

/// A simulated machine: a folder with files, and a set of environment variables.
class Machine {
 public:
  std::string add(const std::string& name) {
    const fs::path path = fs::path(folder_.path()) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "a file";
    return path.string();
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void set(const std::string& name, const std::string& value) { variables_[name] = value; }
  std::vector<PluginFile> plugins() const {
    return find_plugins([this](const char* name) {
      const auto found = variables_.find(name);
      return found == variables_.end() ? nullptr : found->second.c_str();
    });
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (const PluginFile& file : plugins()) all.push_back(file.path);
    return all;
  }

 private:
  TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
};

using Paths = std::vector<std::string>;

TEST(Discovery, FindsNothingWithoutVariablesAndPackages) { EXPECT_EQ(Machine().paths(), Paths{}); }

TEST(Discovery, UsesNoOtherPluginThanTheOneThatIsNamed) {
  Machine machine;
  const std::string mine = machine.add("mine.so");
  machine.set("WEFT_PJRT_PLUGIN", mine);
  machine.set("TPU_LIBRARY_PATH", machine.add("libtpu.so"));
  const auto plugins = machine.plugins();
  ASSERT_EQ(plugins.size(), 1U);
  EXPECT_EQ(plugins[0].path, mine);
  EXPECT_EQ(plugins[0].kind, std::nullopt);
  EXPECT_EQ(plugins[0].found_by, "WEFT_PJRT_PLUGIN");
}

TEST(Discovery, ReadsNamesAndPaths) {
  Machine machine;
  const std::string a = machine.add("a.so");
  const std::string b = machine.add("b.so");
  machine.set("PJRT_NAMES_AND_LIBRARY_PATHS", "cuda:" + a + ",tpu:" + b + "," + "other:" + a);
  const auto plugins = machine.plugins();
  ASSERT_EQ(plugins.size(), 2U);
  EXPECT_EQ(plugins[0].kind, DeviceKind::gpu);
  EXPECT_EQ(plugins[1].kind, DeviceKind::tpu);
  EXPECT_EQ(plugins[1].found_by, "PJRT_NAMES_AND_LIBRARY_PATHS");
}

TEST(Discovery, RefusesVariablesThatNameNothing) {
  Machine machine;
  machine.set("TPU_LIBRARY_PATH", machine.path("libtpu.so"));
  expect_error(Errc::not_found, {"TPU_LIBRARY_PATH = \"", "libtpu.so", "doesn't exist"},
               [&] { machine.plugins(); });
  machine.set("PJRT_NAMES_AND_LIBRARY_PATHS", machine.add("a.so"));
  expect_error(Errc::invalid_argument,
               {"PJRT_NAMES_AND_LIBRARY_PATHS", "a.so", "\"cuda:/path/plugin.so\"", "no colon"},
               [&] { machine.plugins(); });
  machine.set("WEFT_PJRT_PLUGIN", "/nowhere.so");
  expect_error(Errc::not_found, {"WEFT_PJRT_PLUGIN = \"/nowhere.so\""}, [&] { machine.plugins(); });
}

TEST(Discovery, FindsPythonPackages) {
  Machine machine;
  machine.add("python/bin/python3");
  const std::string packages = "python/lib/python3.11/site-packages/";
  const std::string cuda = machine.add(packages + "jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  const std::string cpu = machine.add(packages + "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  const std::string tpu = machine.add(packages + "libtpu/libtpu.so");
  const std::string other = machine.add(packages + "lammps/pjrt_c_api_cpu_plugin.so");
  machine.add(packages + "jax_plugins/xla_cuda13/__init__.py");
  machine.add(packages + "libtpu/libother.so");
  machine.add(packages + "numpy/core.so");
  machine.set("PATH", "/nowhere:" + machine.path("python/bin"));
  EXPECT_EQ(machine.paths(), (Paths{cuda, cpu, tpu, other}));
  const auto plugins = machine.plugins();
  EXPECT_EQ(plugins[0].kind, DeviceKind::gpu);
  EXPECT_EQ(plugins[1].kind, DeviceKind::cpu);
  EXPECT_EQ(plugins[2].kind, DeviceKind::tpu);
  EXPECT_EQ(plugins[3].kind, DeviceKind::cpu);
  EXPECT_EQ(plugins[0].package_folder + "/", machine.path(packages));
}

TEST(Discovery, PrefersTheVirtualEnvironmentAndFindsTheUsersPackages) {
  Machine machine;
  const std::string user = machine.add("home/.local/lib/python3.11/site-packages/libtpu/libtpu.so");
  const std::string env = machine.add("env/lib/python3.12/site-packages/libtpu/libtpu.so");
  const std::string listed = machine.add("listed/libtpu/libtpu.so");
  machine.set("HOME", machine.path("home"));
  machine.set("VIRTUAL_ENV", machine.path("env"));
  machine.set("PYTHONPATH", machine.path("listed"));
  EXPECT_EQ(machine.paths(), (Paths{listed, env, user}));
}

TEST(Discovery, LoadsTheLibrariesBesideAPluginForGpus) {
  Machine machine;
  machine.add("packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  machine.add("packages/nvidia/broken/lib/libnccl.so.2");  // not a library, so it is skipped
  const std::string library = machine.path("packages/nvidia/cublas/lib/libcublas.so.13");
  fs::create_directories(fs::path(library).parent_path());
  fs::copy_file(WEFT_FAKE_PJRT, library);
  machine.set("PYTHONPATH", machine.path("packages"));
  const auto plugins = machine.plugins();
  ASSERT_EQ(plugins.size(), 1U);
  const auto is_loaded = [&] {
    void* const handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle != nullptr) ::dlclose(handle);
    return handle != nullptr;
  };
  EXPECT_FALSE(is_loaded());
  preload_libraries(plugins[0]);
  EXPECT_TRUE(is_loaded());
}

}  // namespace
}  // namespace weft::pjrt::discovery_test
