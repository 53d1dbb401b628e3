#include "chips/pjrt/client.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/expect_error.hpp"
#include "tests/support/fake_pjrt/loaded_fake.hpp"
#include "tests/unit/chips/pjrt/sum_module.hpp"

namespace weft::pjrt::client_test {
namespace {

using testing::expect_error;
using testing::kSum;
using Pair = std::array<float, 2>;
using testing::FakeRun;
using testing::LoadedFake;

/// A client of a fake plug-in that can compute kSum. At the end, expects that there was no misuse
/// and that all objects were destroyed.
class FakeClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    client_ = Client::make(Plugin::load(fake_.path()), {},
                           [this](const std::string& text) { warnings_.push_back(text); });
    fake_->modules["sum"] = [](const FakeRun& run) {
      for (std::size_t i = 0; i < 2; ++i) {
        run.results[0].floats()[i] = run.arguments[0].floats()[i] + run.arguments[1].floats()[i];
      }
    };
  }
  void TearDown() override {
    client_.reset();
    EXPECT_EQ(fake_->misuses, std::vector<std::string>{});
    EXPECT_EQ(fake_->live_objects, 0U);
  }

  Buffer buffer(const Pair& values, HostMemory semantics = HostMemory::until_transfer) {
    return client_->from_host(0, values.data(), ElementType::f32, kDims, semantics);
  }
  static Pair values_of(const Buffer& buffer) {
    Pair values{};
    buffer.download(std::as_writable_bytes(std::span(values)));
    return values;
  }

  static constexpr std::array<std::int64_t, 1> kDims{2};
  LoadedFake fake_;
  std::vector<std::string> warnings_{};
  std::shared_ptr<Client> client_;
};

TEST_F(FakeClientTest, KnowsItsPlatformAndDevices) {
  EXPECT_EQ(client_->platform(), "cpu");
  EXPECT_EQ(client_->platform_version(), "fake 1");
  ASSERT_EQ(client_->devices().size(), 2U);
  EXPECT_EQ(client_->devices()[1].id, 1);
  EXPECT_EQ(client_->devices()[1].kind, "fake chip");
  EXPECT_FALSE(client_->memory(0).has_value());
  fake_->memory_limit_bytes = 1 << 20;
  const auto memory = client_->memory(1);
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->used_bytes, 1024);
  EXPECT_EQ(memory->limit_bytes, 1 << 20);
}

TEST_F(FakeClientTest, IsMadeWithOptions) {
  const Plugin& plugin = client_->plugin();
  const auto three = Client::make(plugin, {{"cpu_device_count", std::int64_t{3}}}, {});
  EXPECT_EQ(three->devices().size(), 3U);
  expect_error(Errc::invalid_argument, {"fake_plugin.so", "Unexpected option", "cpu_devices"}, [&] {
    Client::make(plugin, {{"cpu_devices", std::int64_t{3}}}, {});
  });
}

TEST_F(FakeClientTest, RunsAProgramAndWritesItsResultInPlace) {
  const Executable sum = client_->compile(kSum);
  EXPECT_EQ(sum.num_outputs(), 1U);
  alignas(64) Pair place{};
  const Buffer x = buffer({1, 2});
  const Buffer y = buffer({10, 20});
  const Buffer target = buffer(place, HostMemory::used_in_place);
  LaunchedRun run = sum.launch(std::array{x.handle(), y.handle(), target.handle()}, {},
                               client_->devices()[1].handle);
  run.done.await();
  EXPECT_EQ(place, (Pair{11, 22}));
  EXPECT_EQ(run.outputs[0].address(), std::as_bytes(std::span(place)).data());
  EXPECT_EQ(values_of(run.outputs[0]), (Pair{11, 22}));
}

TEST_F(FakeClientTest, LeavesAnArgumentThatIsKept) {
  const Executable sum = client_->compile(kSum);
  const Buffer x = buffer({1, 2});
  const Buffer kept = buffer({7, 7});
  const std::array<std::int64_t, 1> kept_inputs{2};
  const LaunchedRun run =
      sum.launch(std::array{x.handle(), x.handle(), kept.handle()}, kept_inputs);
  EXPECT_EQ(values_of(run.outputs[0]), (Pair{2, 4}));
  EXPECT_EQ(values_of(kept), (Pair{7, 7}));
}

TEST_F(FakeClientTest, SeesWhetherARunHasEnded) {
  fake_->holds_runs = true;
  const Executable sum = client_->compile(kSum);
  const Buffer x = buffer({1, 2});
  const Buffer place = buffer({0, 0});
  LaunchedRun run = sum.launch(std::array{x.handle(), x.handle(), place.handle()});
  EXPECT_FALSE(run.done.is_ready());
  fake_->release();
  EXPECT_TRUE(run.done.is_ready());
  run.done.await();
  EXPECT_TRUE(run.done.is_ready());
}

TEST_F(FakeClientTest, LoadsWhatItHasSerialized) {
  const std::string bytes = client_->compile(kSum).serialize();
  const Executable sum = client_->load(bytes);
  const Buffer x = buffer({1, 2});
  const Buffer place = buffer({0, 0});
  const LaunchedRun run = sum.launch(std::array{x.handle(), x.handle(), place.handle()});
  EXPECT_EQ(values_of(run.outputs[0]), (Pair{2, 4}));
  EXPECT_EQ(fake_->compilations, 1);
  expect_error(Errc::unavailable, {"these bytes aren't an executable"},
               [&] { client_->load("something else"); });
}

TEST_F(FakeClientTest, DropsAnUnknownFlagWithOneWarning) {
  client_->set_flag("xla_of_tomorrow", true);
  client_->set_flag("xla_cpu_use_xnnpack", false);
  client_->compile(kSum);
  client_->compile(kSum);
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(warnings_[0],
            "the PJRT plug-in fake_plugin.so (API 0.81) doesn't know the flag xla_of_tomorrow; "
            "programs are compiled without it");
  EXPECT_EQ(client_->flags(), (CompileFlags{{"xla_cpu_use_xnnpack", false}}));
}

TEST_F(FakeClientTest, PassesOnWhatThePluginRefuses) {
  expect_error(Errc::unavailable, {"PJRT_Client_Compile", "expected a module"},
               [&] { client_->compile("no program"); });
  const Executable sum = client_->compile(kSum);
  const Buffer x = buffer({1, 2});
  expect_error(Errc::invalid_argument, {"supplied 1 arguments", "expected 3"},
               [&] { sum.launch(std::array{x.handle()}); });
  const Buffer small =
      client_->from_host(0, "four", ElementType::f32, {}, HostMemory::only_during_call);
  expect_error(Errc::invalid_argument, {"argument 1 has another size"}, [&] {
    sum.launch(std::array{x.handle(), small.handle(), x.handle()});
  });
  std::array<float, 3> large{};
  expect_error(Errc::invalid_argument, {"a buffer has 8 bytes", "expected 12"},
               [&] { x.download(std::as_writable_bytes(std::span(large))); });
}

/// Makes each call fail once. No object may be left after the error.
TEST_F(FakeClientTest, FreesAllObjectsAfterAnErrorAtAnyCall) {
  const auto use = [&] {
    const auto client = Client::make(client_->plugin(), {}, {});
    const Executable sum = client->load(client->compile(kSum).serialize());
    const std::array<float, 2> values{};
    const auto make = [&] {
      return client->from_host(0, values.data(), ElementType::f32, kDims,
                               HostMemory::until_transfer);
    };
    const Buffer x = make();
    const Buffer place = make();
    LaunchedRun run = sum.launch(std::array{x.handle(), x.handle(), place.handle()});
    run.done.await();
    values_of(run.outputs[0]);
    static_cast<void>(run.outputs[0].address());
  };
  use();
  const std::size_t before = fake_->live_objects;
  for (const char* function :
       {"PJRT_Client_Create", "PJRT_Client_PlatformName", "PJRT_Client_PlatformVersion",
        "PJRT_Client_AddressableDevices", "PJRT_Device_GetDescription", "PJRT_DeviceDescription_Id",
        "PJRT_DeviceDescription_Kind", "PJRT_Client_Compile", "PJRT_LoadedExecutable_GetExecutable",
        "PJRT_Executable_NumOutputs", "PJRT_Executable_Serialize",
        "PJRT_Executable_DeserializeAndLoad", "PJRT_Client_BufferFromHostBuffer",
        "PJRT_Event_Await", "PJRT_LoadedExecutable_Execute", "PJRT_Buffer_ToHostBuffer",
        "PJRT_Buffer_UnsafePointer"}) {
    fake_->errors = {{function, {13, "planned"}}};
    expect_error(Errc::unavailable, {function, "planned"}, use);
    fake_->errors.clear();
    EXPECT_EQ(fake_->live_objects, before) << function;
  }
}

}  // namespace
}  // namespace weft::pjrt::client_test
