#pragma once
/// Layers that drop elements or channels at random in training, as torch.nn's do.

#include <source_location>
#include <string>
#include <utility>

#include <weft/nn/functional.hpp>
#include <weft/nn/module.hpp>

namespace weft {

/// Calls a function of functional.hpp in training mode, and returns x otherwise.
class DropoutLayer : public Module {
 public:
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

 protected:
  using Function = Tensor (*)(Operand x, double p);
  DropoutLayer(Module& parent, std::string name, double p, Function function);

 private:
  double p_;
  Function function_;
};

/// torch.nn.Dropout. In training mode each element becomes 0 with probability p; the other elements
/// are scaled by 1/(1-p).
class Dropout : public DropoutLayer {
 public:
  Dropout(Module& parent, std::string name, double p = 0.5)
      : DropoutLayer(parent, std::move(name), p, dropout) {}
};

/// torch.nn.Dropout1d. It drops whole channels of [N,C,L] or [C,L].
class Dropout1d : public DropoutLayer {
 public:
  Dropout1d(Module& parent, std::string name, double p = 0.5)
      : DropoutLayer(parent, std::move(name), p, dropout1d) {}
};

/// torch.nn.Dropout2d. It drops whole channels of [N,C,H,W].
class Dropout2d : public DropoutLayer {
 public:
  Dropout2d(Module& parent, std::string name, double p = 0.5)
      : DropoutLayer(parent, std::move(name), p, dropout2d) {}
};

/// torch.nn.Dropout3d. It drops whole channels of [N,C,D,H,W] or [C,D,H,W].
class Dropout3d : public DropoutLayer {
 public:
  Dropout3d(Module& parent, std::string name, double p = 0.5)
      : DropoutLayer(parent, std::move(name), p, dropout3d) {}
};

/// torch.nn.AlphaDropout. It keeps a mean of 0 and a variance of 1.
class AlphaDropout : public DropoutLayer {
 public:
  AlphaDropout(Module& parent, std::string name, double p = 0.5)
      : DropoutLayer(parent, std::move(name), p, alpha_dropout) {}
};

}  // namespace weft
