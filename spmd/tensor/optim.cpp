#include <weft/spmd/tensor/optim.hpp>

#include <cmath>
#include <limits>

#include <weft/spmd/tensor/call.hpp>
#include <weft/spmd/tensor/ops.hpp>

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_between(std::string_view option, double value, double limit) {
  if (!(value >= 0 && value < limit)) {
    fail(Errc::invalid_argument, "{} = {} must be at least 0 and below {}", option, value, limit);
  }
}

void expect_gradients(Call& call, std::span<const Tensor> grads,
                      std::span<const Parameter> parameters) {
  if (grads.size() != parameters.size()) {
    call.refuse("{} gradients are given for {} parameters", grads.size(), parameters.size());
  }
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (call.type(grads[i]) != parameters[i].type()) {
      call.refuse("grads[{}] is {}, but its parameter is {}", i, call.node(grads[i])->label(),
                  parameters[i].node()->label());
    }
  }
}

/// One state tensor for each parameter, zero at first.
std::vector<Parameter> make_state(std::span<const Parameter> parameters, std::string_view name) {
  std::vector<Parameter> states;
  for (const Parameter& parameter : parameters) {
    states.push_back(
        make_opt_state(fmt::format("{}.{}", parameter.name(), name), 0, parameter.shape()));
  }
  return states;
}

/// State that nobody marked, and that isn't on the chips yet, is asked for as its parameter is or
/// lies.
void follow_sharding(const Parameter& state, const Parameter& parameter) {
  TensorNode& node = *state.node();
  if (node.marked || !std::holds_alternative<HostData>(node.storage)) return;
  node.marked = parameter.node()->input_sharding();
}

}  // namespace

SGD::SGD(std::vector<Parameter> parameters, const Options& options)
    : options_(options), parameters_(std::move(parameters)) {
  expect_between("SGD: lr", options.lr, kInfinity);
  expect_between("SGD: momentum", options.momentum, kInfinity);
  expect_between("SGD: weight_decay", options.weight_decay, kInfinity);
  if (options.nesterov && options.momentum == 0) {
    fail(Errc::invalid_argument, "SGD: nesterov needs a momentum above 0");
  }
  if (options.momentum > 0) momentum_buffer_ = make_state(parameters_, "momentum_buffer");
}

void SGD::step(std::span<const Tensor> grads, std::source_location loc) {
  Call call("SGD::step", loc);
  expect_gradients(call, grads, parameters_);
  const Tensor lr = scalar(options_.lr);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    Parameter& p = parameters_[i];
    Tensor direction = grads[i];
    if (options_.weight_decay > 0) direction = direction + p * options_.weight_decay;
    if (options_.momentum > 0) {
      Parameter& buffer = momentum_buffer_[i];
      follow_sharding(buffer, p);
      const Tensor next = buffer * options_.momentum + direction;
      direction = options_.nesterov ? direction + next * options_.momentum : next;
      buffer.assign(next);
    }
    p.assign(p - lr * direction);
  }
}

AdamW::AdamW(std::vector<Parameter> parameters, const Options& options)
    : options_(options), parameters_(std::move(parameters)) {
  expect_between("AdamW: lr", options.lr, kInfinity);
  expect_between("AdamW: beta1", options.beta1, 1);
  expect_between("AdamW: beta2", options.beta2, 1);
  expect_between("AdamW: eps", options.eps, kInfinity);
  expect_between("AdamW: weight_decay", options.weight_decay, kInfinity);
  exp_avg_ = make_state(parameters_, "exp_avg");
  exp_avg_sq_ = make_state(parameters_, "exp_avg_sq");
}

void AdamW::step(std::span<const Tensor> grads, std::source_location loc) {
  Call call("AdamW::step", loc);
  expect_gradients(call, grads, parameters_);
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const Tensor decay = scalar(1 - options_.lr * options_.weight_decay);
  const Tensor step_size = scalar(options_.lr / (1 - std::pow(options_.beta1, t)));
  const Tensor correction = scalar(std::sqrt(1 - std::pow(options_.beta2, t)));
  for (std::size_t i = 0; i < grads.size(); ++i) {
    Parameter& p = parameters_[i];
    follow_sharding(exp_avg_[i], p);
    follow_sharding(exp_avg_sq_[i], p);
    const Tensor& g = grads[i];
    const Tensor m = exp_avg_[i] * options_.beta1 + g * (1 - options_.beta1);
    const Tensor v = exp_avg_sq_[i] * options_.beta2 + g * g * (1 - options_.beta2);
    const Tensor denominator = sqrt(v) / correction + options_.eps;
    p.assign(p * decay - step_size * (m / denominator));
    exp_avg_[i].assign(m);
    exp_avg_sq_[i].assign(v);
  }
}

std::vector<Parameter> AdamW::state() const {
  std::vector<Parameter> all = exp_avg_;
  all.insert(all.end(), exp_avg_sq_.begin(), exp_avg_sq_.end());
  return all;
}

Tensor clip_by_global_norm(std::span<Tensor> grads, double max_norm, std::source_location loc) {
  Call call("clip_by_global_norm", loc);
  if (!(max_norm > 0)) call.refuse("max_norm {} must be above 0", max_norm);
  if (grads.empty()) call.refuse("no gradients are given");
  Tensor squares = sum(grads[0] * grads[0]);
  for (const Tensor& g : grads.subspan(1)) squares = squares + sum(g * g);
  const Tensor norm = sqrt(squares);
  const Tensor scale = minimum(max_norm / (norm + 1e-6), 1.0);
  for (Tensor& g : grads) g = g * scale;
  return norm;
}

}  // namespace weft
