#pragma once
/// compile(): a function of tensors that is traced once and then run without tracing it again
/// (torch_xla.compile). StepScope and step closures.

#include <concepts>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/tensor.hpp>

namespace weft {

struct CompileOptions {
  /// Throw an error if one call of the function makes more than one program, for example by item().
  bool full_graph = false;
  /// The maximum number of programs compiled for the function, one for each combination of shapes;
  /// 0: no limit.
  int max_programs = 0;
  /// Whether a call ends a step, as sync() does.
  bool ends_step = true;
};

class CompiledFunction;

/// A compiled function, as compile() returns it.
template <typename Function>
class Compiled {
 public:
  Compiled(Function function, std::shared_ptr<CompiledFunction> core)
      : function_(std::move(function)), core_(std::move(core)) {}

  /// The results of the function for these arguments.
  template <typename... Args>
  auto operator()(const Args&... args);

 private:
  Function function_;
  std::shared_ptr<CompiledFunction> core_;
};

/// `function` takes tensors, vectors of tensors and host values (arithmetic, strings), and returns
/// a tensor, a tuple or vector of tensors, or nothing. It is called and traced once for each
/// combination of shapes, shardings and host values; later calls run the traced program. Branches
/// on host values, and numbers other than Scalars, are therefore constants of the program. Captured
/// tensors keep the values of the first call; parameters and Scalars are read in each call. The
/// function's only effects are its results and its assignments to parameters. A function that reads
/// a value (item()) is called every time.
template <typename Function>
Compiled<Function> compile(Function function, const CompileOptions& options = {},
                           std::source_location loc = std::source_location::current());

/// One step lies between its construction and its destruction (`with torch_xla.step():`). Ops
/// recorded before it run as a program of their own. The destructor calls sync(), unless an
/// exception leaves the scope.
class StepScope {
 public:
  explicit StepScope(std::source_location loc = std::source_location::current());
  ~StepScope() noexcept(false);
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  std::source_location loc_;
  int exceptions_;
};

/// Calls `function` with the tensors' values after the step has ended. Closures run in the order of
/// the add_step_closure() calls, at the end of a later step, so that the loop doesn't wait, or at
/// the end of the loop. `function` gets each tensor of one element as a double, or the tensors if
/// it takes tensors.
template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, const Operand& first, const Tensors&... others);
template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, double first, const Tensors&... others) = delete;
void add_step_closure(std::function<void()> function,
                      std::source_location loc = std::source_location::current());

}  // namespace weft

#include <weft/compile_impl.hpp>  // the templates
