// Compares second gradients of a scan in a scan with a cond, under every sharding of the
// parameters.

#include <algorithm>
#include <cmath>
#include <tuple>

#include <weft/nn/module.hpp>
#include <weft/ops/control_flow.hpp>

#include "tests/support/simulate_runtime.hpp"
#include "tests/unit/spmd/tensor/tensor_fixture.hpp"

namespace weft::nested_loops_test {
namespace {

/// A variant of the program and of its shardings: each bit turns one feature on.
struct Form {
  unsigned bits;

  bool has(unsigned bit) const { return (bits & bit) != 0; }
};

Parameter parameter(const char* name, const Shape& shape) {
  std::vector<float> elements(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    elements[i] = static_cast<float>(i * 37 % 101) / 101 - 0.5F;
  }
  return make_parameter(name, elements, shape);
}

struct Parameters {
  Parameter h0 = parameter("h0", {4, 4});
  Parameter u = parameter("u", {4, 4});
  Parameter xs = parameter("xs", {2, 4, 4});
  std::vector<Parameter> all{h0, u, xs};
};

void shard(const Parameters& p, const Form& form, const Mesh& mesh) {
  if (form.has(1)) mark_sharding(p.h0, mesh, {{"data"}, {}});
  if (form.has(2)) mark_sharding(p.u, mesh, {{"model"}, {"data"}});
  if (form.has(4)) mark_sharding(p.u, mesh, {{"data"}, {}});
  if (form.has(8)) mark_sharding(p.xs, mesh, {{}, {"data"}, {}});
}

Tensor inner_loop(const Tensor& x, const Tensor& u) {
  return scan(
             [&](const Tensor& k, const std::tuple<>&) {
               return std::pair(sin(matmul(k, u)) + k * 0.5, std::tuple<>());
             },
             x, std::tuple<>(), {.length = 2})
      .carry;
}

Tensor branches(const Tensor& x, const Tensor& u, bool has_product) {
  return cond(
      greater(mean(x), 0.0),
      [&](const Tensor& v) { return has_product ? tanh(matmul(v, u)) : v * 2.0; },
      [](const Tensor& v) { return v * 0.25; }, x);
}

Tensor loss_of(const Parameters& p, const Form& form) {
  const auto [last, all] = scan(
      [&](const Tensor& h, const Tensor& x) {
        Tensor next = tanh(x + matmul(h, p.u));
        if (!form.has(32)) next = inner_loop(next, p.u);
        if (form.has(16)) next = branches(next, p.u, !form.has(64));
        return std::pair(next, next * x);
      },
      Tensor(p.h0), Tensor(p.xs));
  return sum(last * last) + (form.has(128) ? sum(last) : sum(tanh(all)));
}

Tensor sum_of_squares(const std::vector<Tensor>& tensors) {
  Tensor squares = full({}, 0);
  for (const Tensor& x : tensors) squares = squares + sum(x * x);
  return squares;
}

/// Returns the sum of the squares of the second gradients.
double run(Runtime& runtime, const Form& form, const Mesh* mesh) {
  const RuntimeScope scope(runtime);
  const Parameters p;
  if (mesh != nullptr) shard(p, form, *mesh);
  const std::vector<Tensor> first = grad(loss_of(p, form), p.all);
  return sum_of_squares(grad(sum_of_squares(first), p.all)).item();
}

TEST(NestedLoops, HaveGradientsOfGradientsHoweverTheyAreSharded) {
  const Mesh mesh({2, 2}, {"data", "model"});
  for (unsigned bits = 0; bits < 256; ++bits) {
    const Form form{bits};
    if ((form.has(2) && form.has(4)) || (form.has(64) && !form.has(16))) continue;
    testing::InterpretRuntime one_chip;
    testing::SimulateRuntime partitioned(mesh);
    const double expected = run(one_chip, form, nullptr);
    EXPECT_NEAR(run(partitioned, form, &mesh), expected, 1e-6 * std::abs(expected)) << bits;
  }
}

}  // namespace
}  // namespace weft::nested_loops_test
