#pragma once
/// Parameter: a tensor whose value stays from step to step.

#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/tensor/tensor.hpp>

namespace weft {

/// A tensor that a module or an optimizer owns: state that stays from step to step. assign()
/// records a new value, which the next sync stores.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  explicit Parameter(std::shared_ptr<TensorNode> node) : Tensor(std::move(node)) {}

  /// Returns the full name, such as "fc1.weight".
  const std::string& name() const;
  /// Makes later reads of the parameter return `value`. Throws invalid_argument unless `value` has
  /// the parameter's type.
  void assign(const Tensor& value, std::source_location loc = std::source_location::current());

  /// If `on` is false, freezes the parameter: grad() computes no gradient for it, and optimizers
  /// leave it unchanged. A new parameter isn't frozen. All handles of the parameter share the
  /// setting.
  void requires_grad(bool on);
  bool requires_grad() const;
};

/// Returns d loss / d wrt[i]; see grad() in tensor.hpp. The gradient of a frozen parameter is an
/// empty tensor.
std::vector<Tensor> grad(const Tensor& loss, std::span<const Parameter> wrt,
                         std::source_location loc = std::source_location::current());

}  // namespace weft
