#pragma once
/// Optimizers, with torch.optim's names and numbers.

#include <cstdint>
#include <source_location>
#include <span>
#include <vector>

#include <weft/spmd/tensor/module.hpp>

namespace weft {

/// torch.optim.SGD with momentum (I. Sutskever et al., 2013), without dampening.
class SGD {
 public:
  struct Options {
    double lr = 1e-3;
    double momentum = 0;
    double weight_decay = 0;  ///< added to the gradient: L2
    bool nesterov = false;
  };
  /// Throws invalid_argument for options that torch refuses as well: a negative number, nesterov
  /// without momentum.
  SGD(std::vector<Parameter> parameters, const Options& options);

  /// Records the update of the parameters; `grads[i]` belongs to parameters[i]. The learning rate
  /// is a runtime scalar. State that isn't marked is sharded as its parameter is.
  void step(std::span<const Tensor> grads,
            std::source_location loc = std::source_location::current());
  void set_lr(double lr) { options_.lr = lr; }

  /// "fc1.weight.momentum_buffer"; none without momentum.
  const std::vector<Parameter>& state() const { return momentum_buffer_; }

 private:
  Options options_;
  std::vector<Parameter> parameters_;
  std::vector<Parameter> momentum_buffer_;
};

/// torch.optim.AdamW (I. Loshchilov, F. Hutter, 2019): decoupled weight decay, bias correction.
/// With weight_decay = 0 it is Adam.
class AdamW {
 public:
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 1e-2;
  };
  /// Throws invalid_argument for options that torch refuses as well: a negative number, a beta of 1
  /// or more.
  AdamW(std::vector<Parameter> parameters, const Options& options);

  /// Records the update of parameters and moments; `grads[i]` belongs to parameters[i]. The
  /// learning rate and the bias corrections are runtime scalars: no step is a new program.
  void step(std::span<const Tensor> grads,
            std::source_location loc = std::source_location::current());
  void set_lr(double lr) { options_.lr = lr; }

  /// The moments, "fc1.weight.exp_avg" and "fc1.weight.exp_avg_sq", for sharding and checkpoints.
  std::vector<Parameter> state() const;
  /// Steps recorded so far. A training that goes on from a checkpoint sets it: the bias corrections
  /// follow from it.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  Options options_;
  std::int64_t steps_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<Parameter> exp_avg_;
  std::vector<Parameter> exp_avg_sq_;
};

/// torch.nn.utils.clip_grad_norm_: scales all gradients by one factor so that the norm of all their
/// elements together is at most `max_norm`. Returns the norm before.
Tensor clip_by_global_norm(std::span<Tensor> grads, double max_norm,
                           std::source_location loc = std::source_location::current());

}  // namespace weft
