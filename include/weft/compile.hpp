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
  /// An error where one call of the function makes more than one program, for example by item().
  bool full_graph = false;
  /// The most programs that may be compiled for the function, one for each combination of shapes;
  /// 0: any number.
  int max_programs = 0;
  /// A call ends a step, as sync() does.
  bool ends_step = true;
};

class CompiledFunction;

/// What compile() returns.
template <typename Function>
class Compiled {
 public:
  Compiled(Function function, std::shared_ptr<CompiledFunction> core)
      : function_(std::move(function)), core_(std::move(core)) {}

  /// What the function returns for these arguments.
  template <typename... Args>
  auto operator()(const Args&... args);

 private:
  Function function_;
  std::shared_ptr<CompiledFunction> core_;
};

/// `function` takes tensors, vectors of tensors and host values (arithmetic, strings), and returns
/// a tensor, a tuple or vector of tensors, or nothing. It is called and traced once for each
/// combination of shapes, shardings and host values; later calls run the traced program. Branches
/// on the host and numbers other than Scalars are therefore frozen. Tensors that it reads besides
/// its arguments are those of the first call; parameters and Scalars are read anew. Its only
/// effects are its results and assignments to parameters. A function that reads a value (item()) is
/// called every time.
template <typename Function>
Compiled<Function> compile(Function function, const CompileOptions& options = {},
                           std::source_location loc = std::source_location::current());

/// Between its making and its end lies one step (`with torch_xla.step():`): what was recorded
/// before runs on its own. It ends with sync(), unless it is left by an exception.
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

/// Calls `function` with the tensors' values after the step has ended, in the order of the
/// add_step_closure() calls: at the end of a later step, so that nothing waits, or at the end of
/// the loop. It gets doubles for tensors of one element, or the tensors if it takes tensors.
template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, const Operand& first, const Tensors&... others);
template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, double first, const Tensors&... others) = delete;
void add_step_closure(std::function<void()> function,
                      std::source_location loc = std::source_location::current());

}  // namespace weft

#include <weft/compile_impl.hpp>  // the templates
