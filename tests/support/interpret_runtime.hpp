#pragma once
/// A Runtime that runs programs with the reference interpreter, for tests of the tensor API.

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/element.hpp"
#include "spmd/reference/interpret.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft::testing {

/// A buffer with the global tensor's elements in double, and the sharding that it would have on
/// chips.
struct ElementBuffer : Buffer {
  ElementBuffer(const TensorType& type, const Sharding& sharding, Elements buffer_elements)
      : Buffer(type, sharding), elements(std::move(buffer_elements)) {}

  Elements elements;
  bool replaced = false;  ///< an output has replaced this input
};

inline Elements to_elements(const TensorType& type, std::span<const std::byte> bytes) {
  const auto size = static_cast<std::size_t>(byte_size(type.dtype));
  Elements elements(static_cast<std::size_t>(type.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = load_element(type.dtype, bytes.data() + i * size);
  }
  return elements;
}

inline std::vector<std::byte> to_bytes(const TensorType& type, const Elements& elements) {
  const auto size = static_cast<std::size_t>(byte_size(type.dtype));
  std::vector<std::byte> bytes(elements.size() * size);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    store_element(type.dtype, elements[i], bytes.data() + i * size);
  }
  return bytes;
}

/// A Runtime that interprets global programs. Values are rounded to their dtype only when they pass
/// through the host. Open shardings stay unsharded. The test fails if a replaced buffer is read.
class InterpretRuntime : public Runtime {
 public:
  /// `positions` are those of this worker's chips; by default the worker has the whole mesh.
  explicit InterpretRuntime(std::optional<Mesh> mesh = std::nullopt,
                            std::vector<int> positions = {})
      : mesh_(std::move(mesh)), positions_(std::move(positions)) {
    if (!positions_.empty()) return;
    positions_.resize(mesh_ ? static_cast<std::size_t>(mesh_->size()) : 1);
    std::iota(positions_.begin(), positions_.end(), 0);
  }

  const Mesh* mesh() const override { return mesh_ ? &*mesh_ : nullptr; }
  std::span<const int> positions() const override { return positions_; }

  RunResult run(const Program& program, const Fingerprint& key, std::span<const Binding> inputs,
                const RunSite& site) override {
    EXPECT_EQ(key, fingerprint(program));
    programs.push_back(program);
    sites.push_back(fmt::format("{} at {}", site.function, file_line(site.loc)));
    std::vector<Elements> elements;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      elements.push_back(elements_of(program.type(program.inputs[i].value), inputs[i]));
    }
    const Execution execution = execute(program, key, elements, site);
    RunResult result;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      result.input_buffers.push_back(place(inputs[i], program.type(program.inputs[i].value),
                                           execution.input_shardings[i], elements[i]));
    }
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const ProgramOutput& output = program.outputs[i];
      result.outputs.push_back(std::make_shared<ElementBuffer>(
          program.type(output.value), execution.output_shardings[i], execution.outputs[i]));
      if (output.updates < 0) continue;
      const auto updated = static_cast<std::size_t>(output.updates);
      const auto* bound = std::get_if<BoundBuffer>(&inputs[updated]);
      if (bound != nullptr && !bound->may_be_overwritten()) continue;
      static_cast<ElementBuffer&>(*result.input_buffers[updated]).replaced = true;
    }
    return result;
  }

  std::vector<std::byte> read(const Buffer& buffer) override {
    const auto& held = static_cast<const ElementBuffer&>(buffer);
    EXPECT_FALSE(held.replaced);
    EXPECT_TRUE(held.sharding().is_replicated());
    return weft::testing::to_bytes(held.type(), held.elements);
  }

  std::uint64_t step() const override { return static_cast<std::uint64_t>(steps); }
  void end_step() override { ++steps; }
  void warn(const std::string& text) override { warnings.push_back(text); }

  std::vector<Program> programs;   ///< the programs that have run
  std::vector<std::string> sites;  ///< for each of `programs`, the source line that ran it
  int steps = 0;                   ///< the number of ended steps
  std::vector<std::string> warnings;

 protected:
  struct Execution {
    std::vector<Elements> outputs;
    std::vector<Sharding> input_shardings;
    std::vector<Sharding> output_shardings;
  };

  virtual Execution execute(const Program& program, const Fingerprint& /*key*/,
                            std::span<const Elements> inputs, const RunSite& /*site*/) {
    const auto settled = [](Sharding sharding) {
      sharding.open_mask = 0;
      return sharding;
    };
    Execution execution{
        .outputs = mesh_ ? interpret(program, *mesh_, inputs) : interpret(program, inputs),
        .input_shardings = {},
        .output_shardings = {}};
    for (const ProgramInput& input : program.inputs) {
      execution.input_shardings.push_back(settled(input.sharding));
    }
    for (const ProgramOutput& output : program.outputs) {
      execution.output_shardings.push_back(
          output.updates < 0 ? settled(output.sharding)
                             : execution.input_shardings[static_cast<std::size_t>(output.updates)]);
    }
    return execution;
  }

 private:
  static Elements elements_of(const TensorType& type, const Binding& binding) {
    if (const auto* data = std::get_if<HostData>(&binding)) return to_elements(type, **data);
    if (const auto* source = std::get_if<SourcePtr>(&binding)) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
      const TensorSource::Target target{whole_box(type.shape), bytes.data()};
      (*source)->read({&target, 1});
      return to_elements(type, bytes);
    }
    const auto& buffer = static_cast<const ElementBuffer&>(*std::get<BoundBuffer>(binding).buffer);
    EXPECT_FALSE(buffer.replaced);
    return buffer.elements;
  }

  static BufferPtr place(const Binding& binding, const TensorType& type, const Sharding& sharding,
                         const Elements& elements) {
    if (const auto* bound = std::get_if<BoundBuffer>(&binding)) {
      EXPECT_TRUE(bound->buffer->sharding().same_layout(sharding));
      return bound->buffer;
    }
    return std::make_shared<ElementBuffer>(type, sharding, elements);
  }

  std::optional<Mesh> mesh_;
  std::vector<int> positions_;
};

}  // namespace weft::testing
