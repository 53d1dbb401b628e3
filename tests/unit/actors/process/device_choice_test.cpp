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

/// Makes a folder that stands for a machine with these files in /dev.
struct Machine {
  explicit Machine(std::initializer_list<const char*> files) {
    std::filesystem::create_directory(root() + "/dev");
    for (const char* file : files) std::ofstream(root() + "/dev/" + file).put(0);
  }
  std::string root() const { return folder.path(); }
  TemporaryFolder folder;
};

TEST(DeviceChoice, IsAutomaticByDefaultAndSaysWhatItLookedFor) {
  const Machine none({});
  const DeviceChoice choice = choose_device({}, none.root());
  EXPECT_EQ(choice.kind, DeviceKind::cpu);
  EXPECT_FALSE(choice.falls_back);
  EXPECT_EQ(choice.why,
            "chips are threads of the CPU: looked for a TPU (/dev/accel0, /dev/vfio: absent) and a "
            "GPU (/dev/nvidia0, /dev/kfd: absent)");
}

TEST(DeviceChoice, FallsBackToTheCpuWithOneReason) {
  const Machine gpu({"nvidia0"});
  const DeviceChoice tpu = choose_device({.use_tpu = true}, gpu.root());
  EXPECT_EQ(tpu.kind, DeviceKind::cpu);
  EXPECT_TRUE(tpu.falls_back);
  EXPECT_EQ(tpu.why,
            "scaling.use_tpu = true, but chips are threads of the CPU: looked for a TPU "
            "(/dev/accel0, /dev/vfio: absent); scaling.require_device makes this an error");
  EXPECT_EQ(choose_device({.use_gpu = true}, gpu.root()).why,
            "scaling.use_gpu = true, but chips are threads of the CPU: looked for a GPU "
            "(/dev/nvidia0: present, but this version drives CPUs only); scaling.require_device "
            "makes this an error");
}

TEST(DeviceChoice, IsAskedForByAnyOfTheFields) {
  const Machine none({});
  for (const ScalingConfig& scaling :
       {ScalingConfig{.device = DeviceKind::gpu}, ScalingConfig{.use_gpu = true},
        ScalingConfig{.resources_per_worker = {{"CPU", 2}, {"GPU", 1}}},
        ScalingConfig{.accelerator_type = "A100"}}) {
    EXPECT_TRUE(choose_device(scaling, none.root()).falls_back);
  }
  for (const ScalingConfig& scaling :
       {ScalingConfig{.device = DeviceKind::cpu}, ScalingConfig{.accelerator_type = "CPU"},
        ScalingConfig{.resources_per_worker = {{"CPU", 2}}}}) {
    EXPECT_FALSE(choose_device(scaling, none.root()).falls_back);
  }
}

TEST(DeviceChoice, IsAnErrorWhereTheDeviceIsRequired) {
  const Machine none({});
  expect_error(
      Errc::unavailable, {"scaling.accelerator_type = \"TPU-V4\"", "/dev/accel0", "require_device"},
      [&] { choose_device({.require_device = true, .accelerator_type = "TPU-V4"}, none.root()); });
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
