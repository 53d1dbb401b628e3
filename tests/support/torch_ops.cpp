#include "tests/support/torch_ops.hpp"

#include <cstring>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/module.hpp>
#include <weft/ops/elementwise.hpp>

#include "tests/support/safetensors.hpp"
#include "tests/support/simulate_runtime.hpp"
#include "tests/support/torch_training.hpp"

namespace weft::testing {

std::ostream& operator<<(std::ostream& out, const OpCase& which) { return out << which.name; }

namespace {

void divide(const Tensor& operand, const Mesh* mesh) {
  const int num_dims = operand.shape().size();
  if (mesh == nullptr || num_dims == 0) return;
  std::vector<AxisNames> dims(static_cast<std::size_t>(num_dims));
  dims.back() = {"model"};
  if (num_dims > 1) dims.front() = {"data"};
  mark_sharding(operand, *mesh, PartitionSpec(dims));
}

}  // namespace

void expect_op_as_torch(const OpCase& which, const std::string& golden, const Mesh* mesh) {
  const Safetensors file(golden);
  const std::string prefix = which.name + ".";
  std::unique_ptr<Runtime> runtime = std::make_unique<InterpretRuntime>();
  if (mesh != nullptr) runtime = std::make_unique<SimulateRuntime>(*mesh);
  const RuntimeScope scope(*runtime);
  Operands operands;
  Tensor index;
  for (const std::string& name : file.names(prefix)) {
    if (name == "y" || name == "weight" || name.starts_with("grad.")) continue;
    const TensorType type = file.type(prefix + name);
    if (type.dtype == DType::i32) {
      index = to_device(file.elements<std::int32_t>(prefix + name), type.shape);
    } else {
      operands[name] = make_parameter(name, file.elements<float>(prefix + name), type.shape);
    }
  }
  for (const auto& [name, operand] : operands) divide(operand, mesh);
  const Tensor y = which.function(operands, index);
  EXPECT_EQ(y.type(), file.type(prefix + "y"));
  if (!file.contains(prefix + "weight")) {
    const std::vector<std::byte> bytes = y.to_bytes();
    std::vector<std::int32_t> elements(bytes.size() / sizeof(std::int32_t));
    std::memcpy(elements.data(), bytes.data(), bytes.size());
    EXPECT_EQ(elements, file.elements<std::int32_t>(prefix + "y"));
    return;
  }
  const Tensor weight =
      to_device(file.elements<float>(prefix + "weight"), file.type(prefix + "weight").shape);
  const Tensor loss = sum(y * weight);
  std::vector<Parameter> wrt;
  for (const auto& [name, operand] : operands) wrt.push_back(operand);
  const std::vector<Tensor> grads = grad(loss, wrt);
  sync();
  expect_as_torch(prefix + "y", y.to_vector(), file.elements<float>(prefix + "y"));
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    const std::string name = prefix + "grad." + wrt[i].name();
    expect_as_torch(name, grads[i].to_vector(), file.elements<float>(name));
  }
}

void expect_all_in(const std::string& golden, std::span<const OpCase> cases) {
  std::set<std::string> expected;
  for (const std::string& name : Safetensors(golden).names("")) {
    if (name.ends_with(".y")) expected.insert(name.substr(0, name.size() - 2));
  }
  std::set<std::string> present;
  for (const OpCase& which : cases) present.insert(which.name);
  EXPECT_EQ(present, expected);
}

}  // namespace weft::testing
