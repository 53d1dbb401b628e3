#include "actors/process/device_choice.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

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
    return {.root = folder.path(), .variable = [this](const char* name) -> const char* {
              if (std::string_view(name) == "PYTHONPATH") return packages.c_str();
              return shown && std::string_view(name) == "CUDA_VISIBLE_DEVICES" ? shown->c_str()
                                                                               : nullptr;
            }};
  }
  TemporaryFolder folder;
  std::string packages{};
  std::optional<std::string> shown{};  ///< the value of CUDA_VISIBLE_DEVICES
};

TEST(DeviceChoice, IsAutomaticByDefaultAndSaysWhatItLookedFor) {
  const DeviceChoice choice = choose_device({}, {}, Machine({}).machine());
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  EXPECT_EQ(choice.why,
            "chips are threads of the CPU: looked for a TPU (/dev/accel0, /dev/vfio: absent) and a "
            "GPU (/dev/nvidia0, /dev/kfd: absent)");
}

TEST(DeviceChoice, TakesAGpuThatAPluginDrives) {
  Machine gpu({"nvidia0"});
  EXPECT_EQ(choose_device({}, {}, gpu.machine()).why,
            "chips are threads of the CPU: looked for a TPU (/dev/accel0, /dev/vfio: absent) and a "
            "GPU (/dev/nvidia0: present, but there is no PJRT plug-in for it)");
  const std::string plugin = gpu.add_plugin();
  const DeviceChoice choice = choose_device({}, {}, gpu.machine());
  EXPECT_EQ(choice.kind, DeviceKind::gpu);
  EXPECT_EQ(choice.why, "chips are GPUs, driven by the PJRT plug-in " + plugin +
                            ": looked for a TPU (/dev/accel0, /dev/vfio: absent) and a GPU "
                            "(/dev/nvidia0: present, with the PJRT plug-in " +
                            plugin + ")");
  EXPECT_EQ(choose_device({.use_gpu = true}, {}, gpu.machine()).kind, DeviceKind::gpu);
  EXPECT_EQ(choose_device({.device = DeviceKind::cpu}, {}, gpu.machine()).kind, DeviceKind::cpu);
}

TEST(DeviceChoice, TakesATpuBeforeAGpu) {
  Machine both({"nvidia0", "accel0"});
  both.add_plugin();
  both.add_plugin("libtpu/libtpu.so");
  EXPECT_EQ(choose_device({}, {}, both.machine()).kind, DeviceKind::tpu);
  EXPECT_EQ(choose_device({.use_gpu = true}, {}, both.machine()).kind, DeviceKind::gpu);
}

TEST(DeviceChoice, LeavesGpusThatDoNotSuitTheJob) {
  Machine gpus({"nvidia0", "nvidia1"});
  gpus.add_plugin();
  const DeviceMachine machine = gpus.machine();
  EXPECT_EQ(choose_device({}, {.chips_per_worker = 2}, machine).kind, DeviceKind::gpu);
  const DeviceChoice many = choose_device({}, {.chips_per_worker = 3}, machine);
  EXPECT_EQ(many.kind, DeviceKind::cpu);
  EXPECT_NE(many.why.find("but the job has 3 chips, and 2 GPUs are visible"), std::string::npos);
  const DeviceChoice workers = choose_device({}, {.num_workers = 2}, machine);
  EXPECT_EQ(workers.kind, DeviceKind::cpu);
  EXPECT_NE(workers.why.find("one worker drives all GPUs"), std::string::npos);
  expect_error(Errc::invalid_argument,
               {"scaling.use_gpu = true", "the job has 2 workers", "num_workers to 1"},
               [&] { choose_device({.use_gpu = true}, {.num_workers = 2}, machine); });
  expect_error(Errc::invalid_argument, {"3 chips, and 2 GPUs are visible"},
               [&] { choose_device({.use_gpu = true}, {.chips_per_worker = 3}, machine); });
}

TEST(DeviceChoice, CountsTheDevicesOfAContainerWhateverTheirNumbers) {
  Machine gpus({"nvidia10", "nvidia3", "nvidiactl", "nvidia-uvm"});
  gpus.add_plugin();
  const DeviceChoice choice = choose_device({}, {.chips_per_worker = 2}, gpus.machine());
  EXPECT_EQ(choice.kind, DeviceKind::gpu);
  EXPECT_NE(choice.why.find("/dev/nvidia3: present"), std::string::npos) << choice.why;
  EXPECT_EQ(choose_device({}, {.chips_per_worker = 3}, gpus.machine()).kind, DeviceKind::cpu);
}

TEST(DeviceChoice, LeavesDevicesThatNobodyAskedForToWorkers) {
  Machine gpu({"nvidia0"});
  gpu.add_plugin();
  const DeviceDemand demand{.is_in_trainer = true};
  const DeviceChoice choice = choose_device({}, demand, gpu.machine());
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  EXPECT_NE(choice.why.find("the trainer's process"), std::string::npos) << choice.why;
  EXPECT_EQ(choose_device({.use_gpu = true}, demand, gpu.machine()).kind, DeviceKind::gpu);
}

TEST(DeviceChoice, RespectsTheVariablesThatHideDevices) {
  Machine gpus({"nvidia0", "nvidia1", "nvidia2"});
  gpus.add_plugin();
  const auto choice = [&](std::string shown, int chips) {
    gpus.shown = std::move(shown);
    return choose_device({}, {.chips_per_worker = chips}, gpus.machine());
  };
  EXPECT_EQ(choice("0,2", 2).kind, DeviceKind::gpu);
  EXPECT_EQ(choice("0,2", 3).kind, DeviceKind::cpu);
  EXPECT_EQ(choice("1,-1,2", 2).kind, DeviceKind::cpu);
  for (const char* none : {"", "-1"}) {
    const DeviceChoice hidden = choice(none, 1);
    EXPECT_EQ(hidden.kind, DeviceKind::cpu);
    EXPECT_NE(hidden.why.find(fmt::format("CUDA_VISIBLE_DEVICES = \"{}\" hides it", none)),
              std::string::npos);
  }
}

TEST(DeviceChoice, ComparesTheTypeOfAGpu) {
  Machine gpu({"nvidia0"});
  gpu.add_plugin();
  const std::string folder = gpu.folder.path() + "/proc/driver/nvidia/gpus/0000:01:00.0";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/information") << "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ: 7\n";
  for (const char* type : {"A100", "A100-80G", "GPU"}) {
    EXPECT_EQ(choose_device({.accelerator_type = type}, {}, gpu.machine()).kind, DeviceKind::gpu);
  }
  for (const char* type : {"H100", "A10", "A100-8G"}) {
    expect_error(Errc::unavailable,
                 {fmt::format("scaling.accelerator_type = \"{}\"", type),
                  "the machine has NVIDIA A100-SXM4-80GB"},
                 [&] { choose_device({.accelerator_type = type}, {}, gpu.machine()); });
  }
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
                 [&] { choose_device(scaling, {}, none.machine()); });
  }
  for (const ScalingConfig& scaling :
       {ScalingConfig{.device = DeviceKind::cpu}, ScalingConfig{.accelerator_type = "CPU"},
        ScalingConfig{.resources_per_worker = {{"CPU", 2}}}}) {
    EXPECT_EQ(choose_device(scaling, {}, none.machine()).kind, DeviceKind::cpu);
  }
}

TEST(DeviceChoice, NamesTheFieldAndWhatIsMissing) {
  Machine gpu({"nvidia0"});
  expect_error(Errc::unavailable,
               {"scaling.accelerator_type = \"TPU-V4\"", "/dev/accel0", "pip install libtpu"},
               [&] { choose_device({.accelerator_type = "TPU-V4"}, {}, gpu.machine()); });
  expect_error(Errc::unavailable,
               {"scaling.use_gpu = true", "/dev/nvidia0: present", "no PJRT plug-in"},
               [&] { choose_device({.use_gpu = true}, {}, gpu.machine()); });
}

TEST(DeviceChoice, TakesAPluginForCpusByNameOnly) {
  Machine machine({});
  expect_error(Errc::unavailable,
               {"scaling.device = pjrt:cpu", "no PJRT plug-in for CPUs",
                "pip install lammps-jax-pjrt-cpu", "WEFT_PJRT_PLUGIN"},
               [&] { choose_device({.device = DeviceKind::pjrt_cpu}, {}, machine.machine()); });
  const std::string plugin = machine.add_plugin("xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  const DeviceChoice choice =
      choose_device({.device = DeviceKind::pjrt_cpu}, {}, machine.machine());
  EXPECT_EQ(choice.kind, DeviceKind::pjrt_cpu);
  EXPECT_EQ(choice.why,
            "chips are devices of the PJRT plug-in " + plugin + ": scaling.device = pjrt:cpu");
  EXPECT_EQ(choose_device({}, {}, machine.machine()).kind, DeviceKind::cpu);
  EXPECT_EQ(choose_device({.device = DeviceKind::pjrt_mirrored}, {}, machine.machine()).kind,
            DeviceKind::pjrt_mirrored);
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
