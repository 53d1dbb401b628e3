// Tests weft with real plug-ins of different versions, because the fake plug-in may behave
// differently.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "chips/pjrt/cpu_devices.hpp"
#include "chips/pjrt/foreign_calls.hpp"
#include "chips/pjrt/self_test.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/real_plugins.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/chips/pjrt/sum_module.hpp"

namespace weft::pjrt::real_plugins_test {
namespace {

using testing::expect_error;
using testing::kSum;
using Pair = std::array<float, 2>;

constexpr std::array<std::int64_t, 1> kDims{2};

class RealPlugins : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const PluginFile& file : testing::real_plugins()) {
      EXPECT_EQ(file.kind, DeviceKind::cpu) << file.path;
      clients_.push_back(
          Client::make(Plugin::load(file.path), {{"cpu_device_count", std::int64_t{2}}},
                       [this](const std::string& text) { warnings_.push_back(text); }));
    }
    if (clients_.empty()) GTEST_SKIP() << testing::kNoRealPlugins;
  }

  std::vector<std::shared_ptr<Client>> clients_{};
  std::vector<std::string> warnings_{};
};

LaunchedRun sum_of(Client& client, const Executable& sum, Pair& place) {
  const auto buffer = [&](const Pair& values, HostMemory semantics) {
    return client.from_host(1, values.data(), ElementType::f32, kDims, semantics);
  };
  const Buffer x = buffer({1, 2}, HostMemory::only_during_call);
  const Buffer y = buffer({10, 20}, HostMemory::until_transfer);
  const Buffer target = buffer(place, HostMemory::used_in_place);
  LaunchedRun run = sum.launch(std::array{x.handle(), y.handle(), target.handle()}, {},
                               client.devices()[1].handle);
  run.done.await();
  return run;
}

TEST_F(RealPlugins, SayWhatTheyAre) {
  for (const auto& client : clients_) {
    EXPECT_EQ(client->platform(), "cpu");
    EXPECT_EQ(client->devices().size(), 2U);
    EXPECT_FALSE(client->memory(0).has_value());
    EXPECT_GE(client->plugin().minor(), Plugin::kOldestTried);
    EXPECT_LE(client->plugin().minor(), Plugin::kNewestTried);
    EXPECT_FALSE(client->plugin().attributes().empty());
  }
}

TEST_F(RealPlugins, PassTheSelfTest) {
  for (const auto& client : clients_) {
    test_plugin(*client);
    const CompileFlags flags = client->flags();
    EXPECT_TRUE(flags.contains("xla_cpu_enable_fast_min_max")) << client->plugin().name();
    // The self-test sets this flag only for API 0.81, because the other plug-ins don't use XNNPACK
    // for products.
    EXPECT_EQ(flags.contains("xla_cpu_use_xnnpack"), client->plugin().minor() == 81);
  }
}

TEST_F(RealPlugins, RunAPortableProgramInPlaceOnADeviceOfItsOwn) {
  for (const auto& client : clients_) {
    const Executable sum = client->compile(kSum);
    alignas(64) Pair place{};
    const LaunchedRun run = sum_of(*client, sum, place);
    EXPECT_EQ(place, (Pair{11, 22}));
    EXPECT_EQ(run.outputs[0].address(), std::as_bytes(std::span(place)).data());
  }
}

TEST_F(RealPlugins, LoadWhatTheyHaveSerialized) {
  for (const auto& client : clients_) {
    const Executable sum = client->load(client->compile(kSum).serialize());
    alignas(64) Pair place{};
    sum_of(*client, sum, place);
    EXPECT_EQ(place, (Pair{11, 22}));
    EXPECT_THROW(client->load("something else"), PluginError);
  }
}

/// Returns the inode of the only file in the folder. A file that is written again gets another
/// inode.
std::uint64_t inode_of_file_in(const std::string& folder) {
  std::vector<std::uint64_t> inodes;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    struct stat status {};
    EXPECT_EQ(::stat(file.path().c_str(), &status), 0);
    inodes.push_back(status.st_ino);
  }
  EXPECT_EQ(inodes.size(), 1U);
  return inodes.at(0);
}

TEST_F(RealPlugins, FindTheirExecutablesInAStore) {
  for (const auto& client : clients_) {
    const testing::TemporaryFolder folder;
    const CompiledStore store(folder.path(),
                              [](const std::string& line) { ADD_FAILURE() << line; });
    std::uint64_t first = 0;
    for (int process = 0; process < 2; ++process) {
      const auto sum = CpuDevices::of_process().compile(*client, std::string(kSum), store);
      alignas(64) Pair place{};
      sum_of(*client, *sum, place);
      EXPECT_EQ(place, (Pair{11, 22}));
      if (process == 0) first = inode_of_file_in(folder.path());
    }
    EXPECT_EQ(inode_of_file_in(folder.path()), first) << "nothing was compiled again";
  }
}

TEST_F(RealPlugins, NameWhatTheyRefuse) {
  for (const auto& client : clients_) {
    expect_error(Errc::unavailable,
                 {client->plugin().name(), "PJRT_Client_Compile", "custom op 'no' is unknown"},
                 [&] { client->compile("no program"); });
    const Executable sum = client->compile(kSum);
    expect_error(Errc::invalid_argument,
                 {client->plugin().name(), "PJRT_LoadedExecutable_Execute", "expected 3"},
                 [&] { sum.launch({}, {}, client->devices()[0].handle); });
  }
}

constexpr std::string_view kCalls = R"(module @calls {
func.func @main(%0: tensor<2xf32>, %1: tensor<i32>) -> tensor<2xf32> {
  %2:2 = "stablehlo.custom_call"(%0, %1) {api_version = 4 : i32,
    backend_config = {collective = 7 : i64}, call_target_name = "weft.collective",
    has_side_effect = true} : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<i32>)
  %3 = "stablehlo.custom_call"(%2#0) {api_version = 4 : i32,
    backend_config = {name = "f", op = 9 : i64, rule = "a -> a"},
    call_target_name = "weft.custom_op"} : (tensor<2xf32>) -> tensor<2xf32>
  "func.return"(%3) : (tensor<2xf32>) -> ()
}
}
)";

/// Adds 100 in the collective, and doubles in the custom op. Throws for numbers below 0.
struct Receiver final : ForeignReceiver {
  void on_collective(const ForeignCall& call) override {
    EXPECT_EQ(call.number, 7);
    apply(call, [](float x) { return x + 100; });
    std::memcpy(call.results[1], call.operands[1], sizeof(std::int32_t));
  }
  void on_custom_op(const ForeignCall& call) override {
    EXPECT_EQ(call.number, 9);
    apply(call, [](float x) { return 2 * x; });
  }
  template <typename Function>
  static void apply(const ForeignCall& call, Function function) {
    Pair values{};
    std::memcpy(values.data(), call.operands[0], sizeof values);
    if (values[0] < 0) fail(Errc::peer_lost, "chip 3 is gone");
    for (float& value : values) value = function(value);
    std::memcpy(call.results[0], values.data(), sizeof values);
  }
};

TEST_F(RealPlugins, CallTheReceiverOfEachRun) {
  for (const auto& client : clients_) {
    Receiver receiver;
    const ForeignContext context(client, receiver);
    const Executable program = client->compile(kCalls);
    const std::int32_t position = 5;
    const auto run = [&](const Pair& values) {
      const Buffer x = client->from_host(0, values.data(), ElementType::f32, kDims,
                                         HostMemory::only_during_call);
      const Buffer token =
          client->from_host(0, &position, ElementType::s32, {}, HostMemory::only_during_call);
      LaunchedRun launched = program.launch(std::array{x.handle(), token.handle()}, {},
                                            client->devices()[0].handle, context.handle());
      launched.done.await();
      Pair result{};
      launched.outputs[0].download(std::as_writable_bytes(std::span(result)));
      return result;
    };
    EXPECT_EQ(run({1, 2}), (Pair{202, 204}));
    expect_error(Errc::unavailable, {"chip 3 is gone"}, [&] { run({-1, 2}); });
    EXPECT_EQ(run({3, 4}), (Pair{206, 208}));  // the plug-in still works after an error
  }
}

TEST_F(RealPlugins, DropAnUnknownFlagWithOneWarning) {
  for (const auto& client : clients_) {
    client->set_flag("xla_of_tomorrow", true);
    client->compile(kSum);
    client->compile(kSum);
    EXPECT_EQ(client->flags(), CompileFlags{});
    ASSERT_EQ(warnings_.size(), 1U);
    EXPECT_NE(warnings_[0].find("xla_of_tomorrow"), std::string::npos) << warnings_[0];
    warnings_.clear();
  }
}

}  // namespace
}  // namespace weft::pjrt::real_plugins_test
