/// Tests edge cases of ops (tests/golden/torch/edges.py) in the engine, on every path of its
/// kernels. The engine must differ from torch in the same samples as the interpreter.

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/engine_runtime.hpp"
#include "tests/support/kernel_paths.hpp"
#include "tests/support/torch_samples.hpp"

namespace weft::edges_test {
namespace {

using testing::Json;

/// Returns the samples in which the runtime differs from torch, each with the difference.
template <typename AnyRuntime>
std::map<std::string, std::string> differing(const std::vector<Json>& samples) {
  std::map<std::string, std::string> found;
  for (const Json& sample : samples) {
    AnyRuntime runtime;
    const RuntimeScope scope(runtime);
    const std::string difference = testing::disagreement(sample);
    if (!difference.empty()) found[sample.dump()] = difference;
  }
  return found;
}

TEST(Edges, AreThoseOfTheInterpreterOnEveryPath) {
  const std::vector<Json> samples = testing::torch_samples("edges.json");
  ASSERT_GT(samples.size(), 100U);
  const auto expected = differing<testing::InterpretRuntime>(samples);
  EXPECT_LT(expected.size(), samples.size() / 4);
  const testing::PathScope restored;
  for (const kernels::KernelPath& path : testing::kernel_paths()) {
    kernels::set_kernel_path(path);
    SCOPED_TRACE(
        fmt::format("vectors {}, compiles {}", static_cast<int>(path.vectors), path.compiles));
    const auto actual = differing<testing::EngineRuntime>(samples);
    for (const auto& [sample, difference] : actual) {
      EXPECT_TRUE(expected.contains(sample)) << sample << "\n" << difference;
    }
    for (const auto& [sample, difference] : expected) {
      EXPECT_TRUE(actual.contains(sample)) << sample << "\n" << difference;
    }
  }
}

}  // namespace
}  // namespace weft::edges_test
