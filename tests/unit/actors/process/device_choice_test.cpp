#include "actors/process/device_choice.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::device_choice_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

/// Makes a folder that stands for a machine with these files in /dev, and with no plug-in.
struct Machine {
  explicit Machine(std::initializer_list<const char*> files) {
    std::filesystem::create_directory(folder.path() + "/dev");
    for (const char* file : files) std::ofstream(folder.path() + "/dev/" + file).put(0);
  }
  std::string add_plugin(const std::string& name = "jax_plugins/xla_cuda13/xla_cuda_plugin.so") {
    packages = folder.path() + "/packages";
    const std::string plugin = packages + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(plugin).parent_path());
    std::ofstream(plugin).put(0);
    return plugin;
  }
  DeviceMachine machine() const {
    return {.root = folder.path(), .variable = [this](const char* name) {
              return std::string_view(name) == "PYTHONPATH" ? packages.c_str() : nullptr;
            }};
  }
  TemporaryFolder folder;
  std::string packages{};
};

TEST(DeviceChoice, IsAutomaticByDefaultAndSaysWhatItLookedFor) {
  const DeviceChoice choice = choose_device({}, Machine({}).machine());
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  EXPECT_EQ(choice.why,
            "chips are threads of the CPU: looked for a TPU (/dev/accel0, /dev/vfio: absent) and a "
            "GPU (/dev/nvidia0, /dev/kfd: absent)");
}

TEST(DeviceChoice, SaysWhyAGpuThatIsThereIsntUsed) {
  Machine gpu({"nvidia0"});
  EXPECT_EQ(choose_device({}, gpu.machine()).why,
            "chips are threads of the CPU: looked for a TPU (/dev/accel0, /dev/vfio: absent) and a "
            "GPU (/dev/nvidia0: present, but there is no PJRT plug-in for it)");
  const std::string plugin = gpu.add_plugin();
  EXPECT_EQ(choose_device({}, gpu.machine()).why,
            "chips are threads of the CPU: looked for a TPU (/dev/accel0, /dev/vfio: absent) and a "
            "GPU (/dev/nvidia0: present, with the PJRT plug-in " +
                plugin + ", but this version runs programs on CPUs only)");
}

TEST(DeviceChoice, IsAskedForByAnyOfTheFields) {
  const Machine none({});
  for (const ScalingConfig& scaling :
       {ScalingConfig{.device = DeviceKind::gpu}, ScalingConfig{.use_gpu = true},
        ScalingConfig{.resources_per_worker = {{"CPU", 2}, {"GPU", 1}}},
        ScalingConfig{.accelerator_type = "A100"}}) {
    expect_error(Errc::unavailable,
                 {"looked for a GPU (/dev/nvidia0, /dev/kfd: absent)",
                  "pip install 'jax-cuda13-plugin[with-cuda]'", "weft devices"},
                 [&] { choose_device(scaling, none.machine()); });
  }
  for (const ScalingConfig& scaling :
       {ScalingConfig{.device = DeviceKind::cpu}, ScalingConfig{.accelerator_type = "CPU"},
        ScalingConfig{.resources_per_worker = {{"CPU", 2}}}}) {
    EXPECT_EQ(choose_device(scaling, none.machine()).kind, DeviceKind::cpu);
  }
}

TEST(DeviceChoice, NamesTheFieldAndWhatIsMissing) {
  Machine gpu({"nvidia0"});
  expect_error(Errc::unavailable,
               {"scaling.accelerator_type = \"TPU-V4\"", "/dev/accel0", "pip install libtpu"},
               [&] { choose_device({.accelerator_type = "TPU-V4"}, gpu.machine()); });
  expect_error(Errc::unavailable,
               {"scaling.use_gpu = true", "/dev/nvidia0: present", "no PJRT plug-in"},
               [&] { choose_device({.use_gpu = true}, gpu.machine()); });
  const std::string plugin = gpu.add_plugin();
  expect_error(Errc::unavailable, {"scaling.use_gpu = true", plugin, "on CPUs only"},
               [&] { choose_device({.use_gpu = true}, gpu.machine()); });
}

TEST(DeviceChoice, TakesAPluginForCpusByNameOnly) {
  Machine machine({});
  expect_error(Errc::unavailable,
               {"scaling.device = pjrt:cpu", "no PJRT plug-in for CPUs",
                "pip install lammps-jax-pjrt-cpu", "WEFT_PJRT_PLUGIN"},
               [&] { choose_device({.device = DeviceKind::pjrt_cpu}, machine.machine()); });
  const std::string plugin = machine.add_plugin("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  const DeviceChoice choice = choose_device({.device = DeviceKind::pjrt_cpu}, machine.machine());
  EXPECT_EQ(choice.kind, DeviceKind::pjrt_cpu);
  EXPECT_EQ(choice.why,
            "chips are devices of the PJRT plug-in " + plugin + ": scaling.device = pjrt:cpu");
  EXPECT_EQ(choose_device({}, machine.machine()).kind, DeviceKind::cpu);
}

TEST(DeviceChoice, RefusesTwoKinds) {
  expect_error(Errc::invalid_argument, {"scaling.use_tpu = true", "scaling.use_gpu = true"},
               [] { choose_device({.use_gpu = true, .use_tpu = true}); });
  expect_error(Errc::invalid_argument, {"scaling.device = cpu", "[\"TPU\"]"}, [] {
    choose_device({.device = DeviceKind::cpu, .resources_per_worker = {{"TPU", 4}}});
  });
}

}  // namespace
}  // namespace weft::device_choice_test
