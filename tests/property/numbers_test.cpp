// Tests that random training steps whose numbers have become inputs give the same bits as steps
// with constants, and that a loop that continues after a worker's death uses constants again if its
// numbers have changed. WEFT_TEST_SEED=<seed> runs one case again.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "chips/cpu/cpu_target.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/program/element.hpp"
#include "spmd/tensor/compile_cache.hpp"
#include "spmd/text/text.hpp"
#include "tests/property/seeds.hpp"
#include "tests/support/engine_mesh.hpp"
#include "tests/support/random_training.hpp"

namespace weft::numbers_test {
namespace {

using testing::EngineMesh;
using testing::Random;

/// A Runtime that runs nothing and keeps the last program that it is asked to run.
class LastProgram : public Runtime {
 public:
  explicit LastProgram(const Mesh& mesh) : mesh_(mesh) {}

  const Mesh* mesh() const override { return &mesh_; }
  std::span<const int> positions() const override { return {}; }
  RunResult run(const Program& asked, const Fingerprint&, std::span<const Binding> inputs,
                const RunSite& site) override {
    program = asked;
    num_numbers = site.num_numbers;
    bindings.assign(inputs.begin(), inputs.end());
    return {.input_buffers = std::vector<BufferPtr>(inputs.size()), .outputs = {}};
  }
  std::vector<std::byte> read(const Buffer&) override { return {}; }
  std::uint64_t step() const override { return 0; }
  void end_step() override {}
  void warn(const std::string&) override {}

  Program program;
  std::vector<Binding> bindings;
  std::size_t num_numbers = 0;

 private:
  const Mesh& mesh_;
};

/// Returns the program with another number in each splat: 1 in place of 0, and 0 in place of
/// others.
Program with_other_numbers(Program program) {
  for (OpId op = 0; op < program.num_ops(); ++op) {
    if (program.kind(op) != OpKind::constant || !program.is_fill(op)) continue;
    const DType dtype = program.type(program.result(op)).dtype;
    std::byte* const element = program.const_pool.data() + program.op_attrs(op)[0];
    store_element(dtype, load_element(dtype, element) == 0 ? 1 : 0, element);
  }
  return program;
}

TEST(Numbers, GiveTheSameBitsAsInputs) {
  const std::vector<Mesh> all = testing::small_meshes();
  std::size_t lifted = 0;
  for (const std::uint64_t seed : testing::seeds(300)) {
    Random random(seed);
    const Mesh& mesh = all[random.below(all.size())];
    const Program program = testing::random_training(mesh, random);
    std::vector<Elements> inputs = testing::small_integers(program, random);
    LastProgram last(mesh);
    ChangingNumbers numbers;
    for (const Program& each : {with_other_numbers(program), program}) {
      numbers.run(last, each, fingerprint(each), std::vector<Binding>(inputs.size()),
                  {.function = "sync", .loc = std::source_location::current()});
    }
    ASSERT_EQ(last.bindings.size(), inputs.size() + last.num_numbers);
    lifted += last.num_numbers;
    const auto run = [&](const Program& each) {
      const Plan plan = compile(each, mesh, kCpuTarget);
      EngineMesh chips(mesh);
      std::vector<std::vector<std::uint64_t>> bits;
      for (const Elements& output :
           testing::join(plan, mesh, chips.run(plan, inputs, EngineMesh::Schedule::one_thread))) {
        bits.emplace_back();
        for (const double element : output)
          bits.back().push_back(std::bit_cast<std::uint64_t>(element));
      }
      return bits;
    };
    const auto expected = run(program);
    for (std::size_t i = inputs.size(); i < last.bindings.size(); ++i) {
      const DType dtype = last.program.type(last.program.inputs[i].value).dtype;
      inputs.push_back({load_element(dtype, std::get<HostData>(last.bindings[i])->data())});
    }
    ASSERT_EQ(run(last.program), expected)
        << "seed " << seed << " on mesh " << mesh.to_string() << "\n"
        << to_text(program, mesh);
  }
  EXPECT_GT(lifted, 0U);
}

}  // namespace
}  // namespace weft::numbers_test
