#include "tests/property/hlo_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "chips/pjrt/foreign_calls.hpp"
#include "chips/pjrt/self_test.hpp"
#include "spmd/program/custom_function.hpp"
#include "spmd/program/element.hpp"
#include "spmd/reference/shards.hpp"
#include "tests/support/real_plugins.hpp"

namespace weft::testing {
namespace {

constexpr std::int64_t kChipCount = 8;

std::vector<std::byte> to_bytes(DType dtype, const Elements& elements) {
  const auto size = static_cast<std::size_t>(byte_size(dtype));
  std::vector<std::byte> bytes(elements.size() * size);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    store_element(dtype, elements[i], bytes.data() + i * size);
  }
  return bytes;
}

Elements to_elements(DType dtype, const std::vector<std::byte>& bytes) {
  const auto size = static_cast<std::size_t>(byte_size(dtype));
  Elements elements(bytes.size() / size);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = load_element(dtype, bytes.data() + i * size);
  }
  return elements;
}

/// Runs the custom ops that a chip's program calls. Several replicas may call at the same time.
class CustomOps final : public pjrt::ForeignReceiver {
 public:
  explicit CustomOps(const Program& program) {
    for (OpId op = 0; op < program.num_ops(); ++op) {
      if (program.kind(op) == OpKind::custom_call) ops_.emplace(op, BoundCustomCall(program, op));
    }
  }
  void on_collective(const pjrt::ForeignCall& call) override {
    fail(Errc::corrupt, "the program calls collective {}: expected one of XLA", call.number);
  }
  void on_custom_op(const pjrt::ForeignCall& call) override {
    ops_.at(static_cast<OpId>(call.number)).run(call.operands, call.results[0]);
  }

 private:
  std::map<OpId, BoundCustomCall> ops_{};
};

}  // namespace

HloRunner* HloRunner::get() {
  static const std::unique_ptr<HloRunner> runner = []() -> std::unique_ptr<HloRunner> {
    const std::vector<pjrt::PluginFile> plugins = real_plugins();
    if (plugins.empty()) return nullptr;
    const auto client =
        pjrt::Client::make(pjrt::Plugin::load(plugins.front().path),
                           {{"cpu_device_count", kChipCount}}, [](const std::string&) {});
    pjrt::test_plugin(*client);
    client->set_flag("xla_allow_excess_precision", false);
    return std::unique_ptr<HloRunner>(new HloRunner(client));
  }();
  return runner.get();
}

HloRunner::Results HloRunner::run(const Run& run) {
  const StableHlo made =
      to_stablehlo(run.program, run.mesh, "test", {.detects_anomaly = run.detects_anomaly});
  std::vector<int> devices;
  for (int chip = 0; chip < run.mesh.size(); ++chip) {
    devices.push_back(client_->devices().at(static_cast<std::size_t>(chip)).id);
  }
  CustomOps custom_ops(run.program);
  const pjrt::ForeignContext context(client_, custom_ops);
  const pjrt::Executable executable = client_->compile(made.text, devices);
  std::vector<pjrt::Buffer> buffers;
  std::vector<std::vector<void*>> arguments(devices.size());
  for (const StableHloArgument& argument : made.arguments) {
    const ProgramInput& input = run.program.inputs[argument.number];
    const ChipElements shards =
        cut_shards(run.mesh, run.inputs[argument.number],
                   {input.name, run.input_types[argument.number], argument.type, input.sharding});
    for (std::size_t chip = 0; chip < devices.size(); ++chip) {
      std::vector<std::byte> bytes = to_bytes(argument.type.dtype, shards[chip]);
      bytes.reserve(1);  // so that an empty tensor also has an address
      buffers.push_back(
          client_->from_host(chip, bytes.data(), pjrt::element_type(argument.type.dtype),
                             argument.type.shape, pjrt::HostMemory::only_during_call));
      arguments[chip].push_back(buffers.back().handle());
    }
  }
  std::vector<pjrt::LaunchedRun> runs = executable.launch_replicas(arguments, {}, context.handle());
  for (pjrt::LaunchedRun& launched : runs) launched.done.await();
  Results results;
  for (std::size_t i = 0; i < made.results.size(); ++i) {
    const StableHloResult& result = made.results[i];
    ChipElements shards;
    for (const pjrt::LaunchedRun& launched : runs) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(result.type.bytes()));
      launched.outputs.at(i).download(bytes);
      shards.push_back(to_elements(result.type.dtype, bytes));
    }
    if (result.role == StableHloResult::Role::faults) {
      for (const Elements& chip : shards) results.faults.emplace_back(chip.begin(), chip.end());
      continue;
    }
    const ProgramOutput& output = run.program.outputs[result.number];
    results.outputs.push_back(
        join_shards(run.mesh, shards,
                    {output.name, run.output_types[result.number], result.type, output.sharding}));
  }
  return results;
}

void expect_near(const TensorType& type, const Elements& expected, const Elements& actual,
                 double tolerance) {
  ASSERT_EQ(expected.size(), actual.size());
  double scale = 1;
  for (const double element : expected) {
    if (std::isfinite(element)) scale = std::max(scale, std::abs(element));
  }
  if (!is_floating(type.dtype)) tolerance = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isfinite(expected[i])) {
      ASSERT_NEAR(expected[i], actual[i], tolerance * scale) << "element " << i;
    } else if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(actual[i])) << "element " << i << " is " << actual[i];
    } else {
      ASSERT_EQ(expected[i], actual[i]) << "element " << i;
    }
  }
}

}  // namespace weft::testing
