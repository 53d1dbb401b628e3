#include <weft/optim/parameter_average.hpp>

#include <exception>
#include <memory>
#include <utility>

#include <weft/ops/elementwise.hpp>

#include "spmd/nn/optimizer_parts.hpp"

namespace weft {

ParameterAverage::ParameterAverage(const std::vector<Parameter>& parameters, const Options& options)
    : options_(options), parameters_(parameters) {
  if (!(options.decay >= 0 && options.decay <= 1)) {
    fail(Errc::invalid_argument, "ParameterAverage: decay = {}: expected 0 to 1", options.decay);
  }
  if (parameters.empty()) {
    fail(Errc::invalid_argument, "ParameterAverage: the parameter list is empty");
  }
  for (const Parameter& parameter : parameters) {
    averages_.push_back(make_opt_state(parameter.name() + ".average", 0, parameter.shape()));
  }
  count_ = make_opt_state(parameters.front().name() + ".num_averaged", 0, {}, DType::i32);
}

void ParameterAverage::update(std::source_location loc) {
  Call call("ParameterAverage::update", loc);
  // The first update copies the parameter's value to the average.
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

AverageScope::AverageScope(const ParameterAverage& average, std::source_location loc)
    : average_(average), loc_(loc), exceptions_(std::uncaught_exceptions()) {
  Call call("AverageScope", loc);
  if (const auto scope = call.trace().function()) {
    call.refuse(
        "this scope is in the function compiled at {}, whose program can't switch its state: call "
        "that function inside the scope",
        file_line(scope->loc));
  }
  for (std::size_t i = 0; i < average.parameters_.size(); ++i) {
    if (average.parameters_[i].node()->is_exchanged) {
      call.refuse("'{}' is already exchanged in another AverageScope: end that scope first",
                  average.averages_[i].name());
    }
    follow_sharding(average.averages_[i], average.parameters_[i]);
  }
  call.trace().run({"AverageScope", loc});
  exchange(true);
}

AverageScope::~AverageScope() noexcept(false) {
  const std::shared_ptr<void> last(nullptr, [this](void*) { exchange(false); });
  Trace& trace = Trace::current(loc_);
  if (std::uncaught_exceptions() > exceptions_) {
    trace.discard();
  } else {
    trace.run({"AverageScope", loc_});
  }
}

/// Exchanges the contents of each parameter and its average. Their names are exchanged too, because
/// a job identifies the state that a program reads by its name.
void AverageScope::exchange(bool is_exchanged) {
  for (std::size_t i = 0; i < average_.parameters_.size(); ++i) {
    TensorNode& parameter = *average_.parameters_[i].node();
    TensorNode& average = *average_.averages_[i].node();
    std::swap(parameter.name, average.name);
    std::swap(parameter.kind, average.kind);
    std::swap(parameter.storage, average.storage);
    std::swap(parameter.kept, average.kept);
    std::swap(parameter.marked, average.marked);
    parameter.is_exchanged = average.is_exchanged = is_exchanged;
  }
}

}  // namespace weft
