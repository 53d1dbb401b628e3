#include "chips/pjrt/self_test.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

namespace weft::pjrt {
namespace {

/// An array of floats that begins at a cache line, so that a CPU can use it in place.
class Floats {
 public:
  Floats(std::vector<std::int64_t> dims, float value) : dims_(std::move(dims)) {
    for (const std::int64_t dim : dims_) count_ *= static_cast<std::size_t>(dim);
    lines_.resize((count_ + kLine - 1) / kLine);
    fill(value);
  }
  void fill(float value) { std::ranges::fill(values(), value); }
  std::span<float> values() { return {lines_.front().values, count_}; }
  Buffer on(Client& client) {
    return client.from_host(0, values().data(), ElementType::f32, dims_, HostMemory::used_in_place);
  }

 private:
  static constexpr std::size_t kLine = 16;
  struct alignas(64) Line {
    float values[kLine];
  };
  std::vector<std::int64_t> dims_;
  std::size_t count_ = 1;
  std::vector<Line> lines_{};
};

LaunchedRun run(const Executable& executable, std::initializer_list<const Buffer*> arguments) {
  std::vector<void*> handles;
  for (const Buffer* argument : arguments) handles.push_back(argument->handle());
  LaunchedRun launched = executable.launch(handles);
  launched.done.await();
  return launched;
}

float first_of(const Buffer& buffer, std::size_t count) {
  std::vector<float> values(count);
  buffer.download(std::as_writable_bytes(std::span(values)));
  return values.front();
}

/// The sizes of the product in stale_weights(). With smaller sizes the fault doesn't occur.
constexpr std::int64_t kRows = 256, kDepth = 784, kColumns = 1024;
constexpr std::string_view kProduct = R"(module @weft_self_test_product {
func.func @main(%x: tensor<256x784xf32>, %w: tensor<784x1024xf32>) -> tensor<256x1024xf32> {
  %y = "stablehlo.dot_general"(%x, %w) {dot_dimension_numbers = #stablehlo.dot<
    lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}
    : (tensor<256x784xf32>, tensor<784x1024xf32>) -> tensor<256x1024xf32>
  "func.return"(%y) : (tensor<256x1024xf32>) -> ()
}
}
)";

/// Tests whether products use old values of weights. Like all tests here, returns the fault or "".
std::string stale_weights(Client& client) {
  const Executable product = client.compile(kProduct, {client.devices()[0].id});
  Floats x({kRows, kDepth}, 1);
  Floats w({kDepth, kColumns}, 1);
  for (const float weight : {1.0F, 2.0F, 3.0F}) {
    w.fill(weight);
    const Buffer left = x.on(client);
    const Buffer right = w.on(client);
    const float found = first_of(run(product, {&left, &right}).outputs.at(0), kRows * kColumns);
    const float expected = weight * static_cast<float>(kDepth);
    if (found != expected) {
      return fmt::format(
          "products use old values of weights that have been changed in place: expected {}, found "
          "{}",
          expected, found);
    }
  }
  return "";
}

constexpr std::string_view kInPlace = R"(module @weft_self_test_place {
func.func @main(%x: tensor<16xf32>, %place: tensor<16xf32> {tf.aliasing_output = 0 : i64})
    -> tensor<16xf32> {
  %y = "stablehlo.add"(%x, %x) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  "func.return"(%y) : (tensor<16xf32>) -> ()
}
}
)";

std::string misplaced_output(Client& client) {
  const Executable sum = client.compile(kInPlace, {client.devices()[0].id});
  Floats x({16}, 2);
  Floats place({16}, 0);
  const Buffer operand = x.on(client);
  const Buffer target = place.on(client);
  const std::byte* const wanted = std::as_bytes(place.values()).data();
  if (target.address() != wanted) return "it copies memory of the host that it should use in place";
  const LaunchedRun launched = run(sum, {&operand, &target});
  if (launched.outputs.at(0).address() == wanted && place.values()[0] == 4) return "";
  return "it doesn't write a result to the place of an argument that has tf.aliasing_output";
}

constexpr std::string_view kMaximum = R"(module @weft_self_test_nan {
func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = "stablehlo.maximum"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %i = "stablehlo.minimum"(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "func.return"(%a, %i) : (tensor<2xf32>, tensor<2xf32>) -> ()
}
}
)";

std::string lost_nan(Client& client) {
  const Executable maximum = client.compile(kMaximum, {client.devices()[0].id});
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr std::array<std::int64_t, 1> kDims{2};
  const auto buffer = [&](const std::array<float, 2>& values) {
    return client.from_host(0, values.data(), ElementType::f32, kDims,
                            HostMemory::only_during_call);
  };
  const Buffer x = buffer({1, kNan});
  const Buffer y = buffer({kNan, 1});
  const LaunchedRun launched = run(maximum, {&x, &y});
  for (const Buffer& output : launched.outputs) {
    std::array<float, 2> found{};
    output.download(std::as_writable_bytes(std::span(found)));
    if (!std::isnan(found[0]) || !std::isnan(found[1])) {
      return "maximum and minimum lose a NaN: expected NaN of 1 and NaN";
    }
  }
  return "";
}

struct SelfTest {
  std::string (*fault_of)(Client& client);
  const char* cure;  ///< the flag that cures the fault when set to false; null: none
  bool only_cpu;
};
constexpr SelfTest kSelfTests[] = {
    {lost_nan, "xla_cpu_enable_fast_min_max", false},
    {misplaced_output, nullptr, true},
    {stale_weights, "xla_cpu_use_xnnpack", true},
};

}  // namespace

void test_plugin(Client& client) {
  if (client.devices().empty()) {
    fail(Errc::unavailable, "{}: it has no device in this process", client.plugin().name());
  }
  for (const SelfTest& test : kSelfTests) {
    if (test.only_cpu && client.platform() != "cpu") continue;
    std::string fault = test.fault_of(client);
    if (!fault.empty() && test.cure != nullptr) {
      client.set_flag(test.cure, false);
      fault = test.fault_of(client);
    }
    if (fault.empty()) continue;
    fail(Errc::unavailable, "{}, platform {} {}: its self-test failed: {}; install another plug-in",
         client.plugin().name(), client.platform(), client.platform_version(), fault);
  }
}

}  // namespace weft::pjrt
