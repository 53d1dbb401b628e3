#include <weft/parameter_average.hpp>

#include <weft/ops.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {

ParameterAverage::ParameterAverage(const std::vector<Parameter>& parameters, const Options& options)
    : options_(options), parameters_(parameters) {
  if (!(options.decay >= 0 && options.decay <= 1)) {
    fail(Errc::invalid_argument, "ParameterAverage: decay = {}: expected 0 to 1", options.decay);
  }
  if (parameters.empty()) {
    fail(Errc::invalid_argument, "ParameterAverage: it got an empty parameter list");
  }
  for (const Parameter& parameter : parameters) {
    averages_.push_back(make_opt_state(parameter.name() + ".average", 0, parameter.shape()));
  }
  count_ = make_opt_state(parameters.front().name() + ".num_averaged", 0, {}, DType::i32);
}

void ParameterAverage::update(std::source_location loc) {
  Call call("ParameterAverage::update", loc);
  // Of the first value the average takes all.
  const Tensor share = where(equal(count_, 0.0), 1.0, full({}, 1 - options_.decay));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    follow_sharding(averages_[i], parameters_[i]);
    averages_[i].assign(averages_[i] + (parameters_[i] - averages_[i]) * share);
  }
  count_.assign(count_ + 1.0);
}

void ParameterAverage::swap(std::source_location loc) {
  Call call("ParameterAverage::swap", loc);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    follow_sharding(averages_[i], parameters_[i]);
    const Tensor value = present(call, parameters_[i]);
    parameters_[i].assign(present(call, averages_[i]));
    averages_[i].assign(value);
  }
}

std::vector<Parameter> ParameterAverage::state() const {
  std::vector<Parameter> all = averages_;
  all.push_back(count_);
  return all;
}

}  // namespace weft
