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
  /// Throws where the function makes more than one program of a call, as by item().
  bool full_graph = false;
  /// That may be compiled for it, each for other shapes; 0: any number.
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

/// A function of tensors, vectors of tensors and host values (arithmetic, strings), which returns a
/// tensor, a tuple or vector of tensors, or nothing. It is called, and traced, once for each
/// combination of shapes, shardings and host values; later calls run what was traced. So that
/// branches of the host's are frozen, as is any number but a Scalar, and tensors that it reads
/// besides its arguments are those of the first call; parameters and Scalars are read anew. Only
/// what it returns and what it assigns to parameters comes out of it. Where it reads a value in the
/// middle (item()), it is called every time.
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

/// Calls `function` with the tensors' values once the step has ended, in the order in which they
/// were added: at the end of a later step, so that nothing waits, or of the loop. It gets doubles
/// for tensors of one element, or the tensors if it takes those.
template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, const Operand& first, const Tensors&... others);
template <typename Function, std::same_as<Tensor>... Tensors>
void add_step_closure(Function function, double first, const Tensors&... others) = delete;
void add_step_closure(std::function<void()> function,
                      std::source_location loc = std::source_location::current());

}  // namespace weft

#include <weft/compile_impl.hpp>  // the templates
