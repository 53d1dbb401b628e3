#pragma once
/// Layers one behind the other.

#include <concepts>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <weft/spmd/tensor/functional.hpp>
#include <weft/spmd/tensor/module.hpp>

namespace weft {

/// torch.nn.Sequential: its parts are named "0", "1", ...
class Sequential : public Module {
 public:
  using Module::Module;

  /// `add<Linear>(Linear::Options{...})`
  template <std::derived_from<Module> Layer, typename... Options>
  Sequential& add(const Options&... options) {
    auto layer = std::make_shared<Layer>(*this, std::to_string(parts_.size()), options...);
    parts_.push_back(
        [layer](const Tensor& x, std::source_location loc) { return (*layer)(x, loc); });
    return *this;
  }
  /// A function, `add(relu)`; it takes a number as torch's modules without parameters do.
  Sequential& add(Tensor (*function)(Operand));
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

 private:
  std::vector<std::function<Tensor(const Tensor&, std::source_location)>> parts_;
};

}  // namespace weft
