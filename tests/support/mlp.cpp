#include "tests/support/mlp.hpp"

#include <array>

#include "spmd/ops/builder.hpp"

namespace weft::testing {
namespace {

struct State {
  ValueId value;
  std::int32_t index;  // the value's index among the program's inputs
};

class MlpBuilder {
 public:
  MlpBuilder(const Mlp& mlp, const Mesh& mesh) : mlp_(mlp), mesh_(mesh) {}

  Program run() {
    const ValueId x = input({mlp_.batch, mlp_.in}, InputKind::data, "x", mlp_.x).value;
    const ValueId y = input({mlp_.batch, mlp_.out}, InputKind::data, "y", mlp_.y).value;
    const State fc1 = parameter({mlp_.hidden, mlp_.in}, "fc1.weight", mlp_.fc1);
    const State bias = parameter({mlp_.hidden}, "fc1.bias", mlp_.fc1_bias);
    const State fc2 = parameter({mlp_.out, mlp_.hidden}, "fc2.weight", mlp_.fc2);
    lr_ = input({}, InputKind::runtime_scalar, "lr", std::nullopt).value;

    const Shape hidden_shape{mlp_.batch, mlp_.hidden};
    const ValueId before =
        b_.binary(OpKind::add, dot(x, 1, fc1.value, 1),
                  b_.broadcast_in_dim(bias.value, hidden_shape, std::array<std::int64_t, 1>{1}));
    const ValueId zero = b_.constant(0, {DType::f32, hidden_shape});
    const ValueId positive = b_.compare(CompareDirection::gt, before, zero);
    const ValueId hidden = b_.select(positive, before, zero);
    const ValueId error = b_.binary(OpKind::subtract, dot(hidden, 1, fc2.value, 1), y);
    const ValueId loss = b_.reduce(ReduceKind::add, b_.binary(OpKind::multiply, error, error),
                                   std::array<std::int64_t, 2>{0, 1});

    const ValueId two = b_.constant(2, {DType::f32, {mlp_.batch, mlp_.out}});
    const ValueId d_error = b_.binary(OpKind::multiply, error, two);
    const ValueId d_hidden = dot(d_error, 1, fc2.value, 0);
    const ValueId d_before = b_.select(positive, d_hidden, zero);

    program_.add_output(loss, "loss", Sharding::closed());
    if (mlp_.input_gradient) {
      program_.add_output(dot(d_before, 1, fc1.value, 0), "x.grad", Sharding::open(2));
    }
    update(fc2, dot(d_error, 0, hidden, 0), "fc2.weight", mlp_.fc2_momentum, mlp_.momentum);
    update(bias, b_.reduce(ReduceKind::add, d_before, std::array<std::int64_t, 1>{0}), "fc1.bias",
           std::nullopt, false);
    update(fc1, dot(d_before, 0, x, 0), "fc1.weight", mlp_.fc1_momentum, mlp_.momentum);
    return std::move(program_);
  }

 private:
  State input(const Shape& shape, InputKind kind, const std::string& name,
              const std::optional<PartitionSpec>& spec, int priority = 0) {
    const Sharding sharding = spec ? Sharding::from_spec(mesh_, *spec, shape, name, priority)
                                   : Sharding::open(shape.size());
    const auto index = static_cast<std::int32_t>(program_.inputs.size());
    return {program_.add_input({DType::f32, shape}, kind, name, sharding), index};
  }

  State parameter(const Shape& shape, const std::string& name,
                  const std::optional<PartitionSpec>& spec) {
    return input(shape, InputKind::param, name, spec, mlp_.priority);
  }

  ValueId dot(ValueId lhs, std::int64_t lhs_dim, ValueId rhs, std::int64_t rhs_dim) {
    return b_.dot_general(lhs, rhs, {{}, {}, {lhs_dim}, {rhs_dim}});
  }

  /// Returns state - lr * gradient. With momentum, the gradient is first added to twice the
  /// momentum.
  void update(const State& state, ValueId gradient, const std::string& name,
              const std::optional<PartitionSpec>& momentum_spec, bool momentum) {
    const Shape shape = program_.shape(state.value);
    const auto splat = [&](ValueId scalar) { return b_.broadcast_in_dim(scalar, shape, {}); };
    if (momentum) {
      const State old =
          input(shape, InputKind::opt_state, name + ".momentum", momentum_spec, mlp_.priority);
      const ValueId two = splat(b_.constant(2, {DType::f32, {}}));
      gradient = b_.binary(OpKind::add, b_.binary(OpKind::multiply, old.value, two), gradient);
      add_updated(gradient, old);
    }
    const ValueId scaled = b_.binary(OpKind::multiply, splat(lr_), gradient);
    add_updated(b_.binary(OpKind::subtract, state.value, scaled), state);
  }

  void add_updated(ValueId value, const State& state) {
    const ProgramInput& input = program_.inputs[static_cast<std::size_t>(state.index)];
    program_.add_output(value, input.name, input.sharding, state.index);
  }

  const Mlp& mlp_;
  const Mesh& mesh_;
  Program program_;
  Builder b_{program_};
  ValueId lr_ = kNoId;
};

}  // namespace

Program Mlp::program(const Mesh& mesh) const { return MlpBuilder(*this, mesh).run(); }

}  // namespace weft::testing
