#pragma once
/// HostNumber: a number on the host that belongs to the state of the job.

#include <source_location>
#include <string>
#include <vector>

#include <weft/nn/module.hpp>

namespace weft {

/// A number that the loop sets and uses on the host, such as the best metric so far. A loop that
/// starts again after a worker was lost gets the number's value of the step at which it starts. A
/// loop that resumes from a checkpoint gets the number's value too, if you pass the number to
/// state_dict() beside the optimizer:
///
///   HostNumber best("best_loss", std::numeric_limits<double>::infinity());
///   HostNumber bad("bad_evaluations", 0);
///   while (ctx.step() < steps && bad.value() < 5) {  // stops early
///     ...                                            // a step
///     if (ctx.step() % 100 != 0) continue;
///     const double loss = evaluate(net);
///     bad.set(loss < best.value() ? 0 : bad.value() + 1);
///     best.set(std::min(loss, best.value()));
///     checkpoints.save(state_dict(net, optimizer, best, bad), {.metrics = {{"loss", loss}}});
///   }
class HostNumber {
 public:
  /// `name` must differ from the names of all other state of the loop.
  HostNumber(std::string name, double first,
             std::source_location loc = std::source_location::current());

  double value(std::source_location loc = std::source_location::current()) const;
  /// Sets the number at once; programs that use state() see the new value from now on. All workers
  /// must set the same number, for example a metric that they read from the chips. Call it between
  /// steps. If the present step has already run a program that updates state, and a worker is lost,
  /// a number that was set after that program may be lost too.
  void set(double value, std::source_location loc = std::source_location::current());
  /// Returns one tensor, f64[], with the name of the number.
  std::vector<Parameter> state() const { return {state_}; }

 private:
  Parameter state_;
};

}  // namespace weft
