/// Compares recurrent layers that are made with scan() with torch.nn's
/// (tests/golden/torch_recurrent/recurrent.py).

#include <vector>

#include <gtest/gtest.h>

#include <weft/nn/functional.hpp>
#include <weft/nn/transforms.hpp>
#include <weft/ops/control_flow.hpp>
#include <weft/ops/shapes.hpp>

#include "tests/support/torch_ops.hpp"

namespace weft::torch_recurrent_test {
namespace {

using testing::OpCase;
using testing::Operands;
using X = const Tensor&;

const char* const kGolden = "torch_recurrent/recurrent.safetensors";

/// Returns the outputs with the last state appended.
Tensor joined(X out, X h) { return cat({out, reshape(h, {1, 4, 4})}, 0); }

OpCase rnn_case(const std::string& name, Tensor (*nonlinearity)(Operand), bool reverse = false,
                bool again = false) {
  return {name, [=](Operands& of, X) {
            const auto cell = [&](X h, X x) {
              const auto compute = [&] {
                return nonlinearity(linear(x, of["w_ih"], of["b_ih"]) +
                                    linear(h, of["w_hh"], of["b_hh"]));
              };
              const Tensor next = again ? checkpoint(compute) : compute();
              return std::pair(next, next);
            };
            const auto [last, out] = scan(cell, of["h0"], of["x"], {.reverse = reverse});
            return joined(out, last);
          }};
}

struct LstmState {
  Tensor h;
  Tensor c;
};

Tensor lstm(Operands& of, X) {
  const auto cell = [&](const LstmState& state, X x) {
    const std::vector<Tensor> gates =
        chunk(linear(x, of["w_ih"], of["b_ih"]) + linear(state.h, of["w_hh"], of["b_hh"]), 4, 1);
    const Tensor c = sigmoid(gates[1]) * state.c + sigmoid(gates[0]) * tanh(gates[2]);
    const Tensor h = sigmoid(gates[3]) * tanh(c);
    return std::pair(LstmState{h, c}, h);
  };
  const auto [last, out] = scan(cell, LstmState{of["h0"], of["c0"]}, of["x"]);
  return joined(joined(out, last.h), last.c);
}

Tensor gru(Operands& of, X) {
  const auto cell = [&](X h, X x) {
    const std::vector<Tensor> from_x = chunk(linear(x, of["w_ih"], of["b_ih"]), 3, 1);
    const std::vector<Tensor> from_h = chunk(linear(h, of["w_hh"], of["b_hh"]), 3, 1);
    const Tensor reset = sigmoid(from_x[0] + from_h[0]);
    const Tensor update = sigmoid(from_x[1] + from_h[1]);
    const Tensor candidate = tanh(from_x[2] + reset * from_h[2]);
    const Tensor next = candidate + update * (h - candidate);
    return std::pair(next, next);
  };
  const auto [last, out] = scan(cell, of["h0"], of["x"]);
  return joined(out, last);
}

std::vector<OpCase> cases() {
  return {rnn_case("rnn", tanh),
          rnn_case("rnn_relu", relu),
          rnn_case("rnn_reversed", tanh, true),
          {"lstm", lstm},
          {"gru", gru}};
}

class TorchRecurrent : public ::testing::TestWithParam<OpCase> {};

TEST_P(TorchRecurrent, GivesItsValueAndGradients) {
  testing::expect_op_as_torch(GetParam(), kGolden);
}

TEST_P(TorchRecurrent, GivesThemOnChips) {
  for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{4, 1}, {2, 2}}) {
    const Mesh mesh(sizes, {"data", "model"});
    testing::expect_op_as_torch(GetParam(), kGolden, &mesh);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TorchRecurrent, ::testing::ValuesIn(cases()),
                         [](const auto& which) { return which.param.name; });

TEST(TorchRecurrents, CoverTheGoldenFile) { testing::expect_all_in(kGolden, cases()); }

TEST(TorchRecurrents, GiveTheSameFromValuesThatAreComputedAgain) {
  testing::expect_op_as_torch(rnn_case("rnn", tanh, false, true), kGolden);
}

}  // namespace
}  // namespace weft::torch_recurrent_test
