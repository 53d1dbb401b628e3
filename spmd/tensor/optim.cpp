#include <weft/spmd/tensor/optim.hpp>

#include <cmath>
#include <limits>

#include <weft/spmd/tensor/call.hpp>

namespace weft {
namespace {

void expect_between(std::string_view option, double value, double limit) {
  if (!(value >= 0 && value < limit)) {
    fail(Errc::invalid_argument, "AdamW: {} = {} must be at least 0 and below {}", option, value,
         limit);
  }
}

/// A moment that nobody marked, and that isn't on the chips yet, takes its parameter's sharding, if
/// that is settled.
void follow_sharding(const Parameter& moment, const Parameter& parameter) {
  TensorNode& node = *moment.node();
  if (node.marked || !std::holds_alternative<HostData>(node.storage)) return;
  const Sharding sharding = parameter.node()->input_sharding();
  if (sharding.open_mask == 0) node.marked = sharding;
}

}  // namespace

AdamW::AdamW(std::vector<Parameter> parameters, const Options& options)
    : options_(options), parameters_(std::move(parameters)) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  expect_between("lr", options.lr, kInfinity);
  expect_between("beta1", options.beta1, 1);
  expect_between("beta2", options.beta2, 1);
  expect_between("eps", options.eps, kInfinity);
  expect_between("weight_decay", options.weight_decay, kInfinity);
  for (const Parameter& parameter : parameters_) {
    exp_avg_.push_back(make_opt_state(parameter.name() + ".exp_avg", 0, parameter.shape()));
    exp_avg_sq_.push_back(make_opt_state(parameter.name() + ".exp_avg_sq", 0, parameter.shape()));
  }
}

void AdamW::step(std::span<const Tensor> grads, std::source_location loc) {
  Call call("AdamW::step", loc);
  if (grads.size() != parameters_.size()) {
    call.refuse("{} gradients are given for {} parameters", grads.size(), parameters_.size());
  }
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (call.type(grads[i]) != parameters_[i].type()) {
      call.refuse("grads[{}] is {}, but its parameter is {}", i, call.node(grads[i])->label(),
                  parameters_[i].node()->label());
    }
  }
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

}  // namespace weft
