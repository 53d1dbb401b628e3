#pragma once
/// Optimizers, with torch.optim's names and numbers.

#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weft/module.hpp>

namespace weft {

/// Parameters with their own options, as torch's parameter groups.
template <typename Options>
struct ParameterGroup {
  std::vector<Parameter> parameters;
  Options options;
};

/// Learning rates are inputs of the program: a schedule (schedule.hpp) calls set_lr() in each step.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates parameters()[i] by grads[i]; throws invalid_argument if that doesn't fit.
  /// Unmarked state is sharded as its parameter is, and over chips of a host that add gradients.
  void step(std::span<const Tensor> grads,
            std::source_location loc = std::source_location::current());

  /// A parameter and its state tensors, of the parameter's dims, some of which may be 1.
  struct Slot {
    Parameter parameter;
    std::vector<Parameter> state;
  };
  /// The parameters of all groups, in order.
  std::vector<Slot> slots() const;
  std::vector<Parameter> parameters() const;
  /// The optimizer state ("fc1.weight.exp_avg"), to shard or save it.
  std::vector<Parameter> state() const;

  double lr(std::size_t group = 0) const { return groups_.at(group).lr.value(); }
  /// Sets the learning rate from the next step() on. Throws invalid_argument for a negative rate.
  void set_lr(double lr);
  void set_lr(double lr, std::size_t group);

 protected:
  struct Group {
    Scalar lr;
    std::vector<Slot> slots;
    std::vector<Parameter> state;  // of the whole group
    bool maximize = false;
  };

  using Shared = std::span<const Tensor>;
  explicit Optimizer(std::string name) : name_(std::move(name)), step_name_(name_ + "::step") {}
  /// Adds a group. Each of its parameters gets these states, zero at first.
  Group& add_group(const std::vector<Parameter>& parameters, double lr, bool maximize,
                   std::span<const char* const> states);
  /// Adds a state f64[] of the whole group, which is named after its first parameter.
  static void add_group_state(Group& group, const char* name);
  const Group& group(std::size_t i) const { return groups_[i]; }
  void expect_parameters(const std::source_location& loc) const;
  /// Called before the updates of a group's parameters, which get the return value as `shared`.
  virtual std::vector<Tensor> begin(std::size_t /*group*/) { return {}; }
  virtual void update(std::size_t group, Slot& slot, const Tensor& grad, Shared shared) = 0;

 private:
  std::string name_;
  std::string step_name_;
  std::vector<Group> groups_;
};

/// torch.optim.SGD with momentum (I. Sutskever et al., 2013).
class SGD : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3;
    double momentum = 0;
    double dampening = 0;     ///< of the gradient in the momentum, but in the first step
    double weight_decay = 0;  ///< added to the gradient: L2
    bool nesterov = false;
    bool maximize = false;  ///< the loss, not minimize it
  };
  /// Throws invalid_argument for options that torch refuses (a negative number, nesterov without
  /// momentum or with dampening), and if no group has a parameter.
  SGD(const std::vector<Parameter>& parameters, const Options& options,
      std::source_location loc = std::source_location::current());
  explicit SGD(const std::vector<ParameterGroup<Options>>& groups,
               std::source_location loc = std::source_location::current());

 private:
  std::vector<Tensor> begin(std::size_t group) override;
  void update(std::size_t group, Slot& slot, const Tensor& grad, Shared shared) override;

  std::vector<Options> options_;
};

/// torch.optim.Adam (D. Kingma, J. Ba, 2015); weight decay is added to the gradient (L2). The bias
/// correction 1 - beta^step is computed on the chips, as the moving average of ones: it is state.
class Adam : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 0;
    bool amsgrad = false;  ///< divide by the largest average so far (S. Reddi et al., 2018)
    bool maximize = false;
  };
  /// Throws as SGD does, and for a beta of 1 or more.
  Adam(const std::vector<Parameter>& parameters, const Options& options,
       std::source_location loc = std::source_location::current());
  explicit Adam(const std::vector<ParameterGroup<Options>>& groups,
                std::source_location loc = std::source_location::current());

 protected:
  Adam(std::string name, bool decoupled, const std::vector<ParameterGroup<Options>>& groups,
       const std::source_location& loc);

 private:
  std::vector<Tensor> begin(std::size_t group) override;
  void update(std::size_t group, Slot& slot, const Tensor& grad, Shared shared) override;

  bool decoupled_;
  std::vector<Options> options_;
};

/// torch.optim.AdamW (I. Loshchilov, F. Hutter, 2019): Adam with decoupled weight decay.
class AdamW : public Adam {
 public:
  struct Options {
    double lr = 1e-3;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double eps = 1e-8;
    double weight_decay = 1e-2;
    bool amsgrad = false;
    bool maximize = false;
  };
  AdamW(const std::vector<Parameter>& parameters, const Options& options,
        std::source_location loc = std::source_location::current());
  explicit AdamW(const std::vector<ParameterGroup<Options>>& groups,
                 std::source_location loc = std::source_location::current());
};

}  // namespace weft
