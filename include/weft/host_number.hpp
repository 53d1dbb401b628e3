#pragma once
/// HostNumber: a number of the host that is state of the job.

#include <source_location>
#include <string>
#include <vector>

#include <weft/module.hpp>

namespace weft {

/// A number that the loop sets on the host, such as the best metric so far, for decisions that it
/// takes there. It has its value again in a loop that begins again after a loss, at any step, and,
/// passed to state_dict() beside the optimizer, in one that resumes from a checkpoint:
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
  /// `name`: its own among all state of the loop.
  HostNumber(std::string name, double first,
             std::source_location loc = std::source_location::current());

  double value(std::source_location loc = std::source_location::current()) const;
  /// Sets the number at once; a program that uses state() has it from now on. All workers must set
  /// the same: a metric that is read from the chips is. Call it between steps: a number that is set
  /// after a step has already run a program that updates state may be lost with a worker.
  void set(double value, std::source_location loc = std::source_location::current());
  /// One tensor f64[] of its name.
  std::vector<Parameter> state() const { return {state_}; }

 private:
  Parameter state_;
};

}  // namespace weft
