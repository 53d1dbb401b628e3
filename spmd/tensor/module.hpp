#pragma once
/// Parameters and modules, named as in torch's state_dict.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <weft/spmd/tensor/tensor.hpp>

namespace weft {

/// A tensor that a module or an optimizer owns: state of the training, kept from step to step.
/// Assigning gives it its next value at the next sync.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  const std::string& name() const;
  /// Same type; throws invalid_argument otherwise.
  void assign(const Tensor& value, std::source_location loc = std::source_location::current());
};

/// A parameter with these initial elements (f32, the same on every worker). `name` is its full name.
Parameter make_parameter(std::string name, std::span<const float> elements, const Shape& shape);
/// Optimizer state: as a parameter, of another input kind.
Parameter make_opt_state(std::string name, double value, const Shape& shape);

/// Registers its parameters and children by name. Not movable: children point to their parent.
class Module {
 public:
  Module() = default;
  Module(Module& parent, std::string name);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// Own parameters in order of registration, then the children's; names are dotted paths.
  std::vector<Parameter> parameters() const;

 protected:
  /// The parameter `name` of this module.
  Parameter add_parameter(std::string_view name, std::span<const float> elements, const Shape& shape);
  std::string path(std::string_view name) const;

 private:
  Module* parent_ = nullptr;
  std::string name_;
  std::vector<Parameter> parameters_;
  std::vector<Module*> children_;
};

/// torch.nn.Linear: weight f32[out_features, in_features], bias f32[out_features], both uniform in
/// +-1/sqrt(in_features) from the seed and the parameter's name: the same on every mesh.
class Linear : public Module {
 public:
  struct Options {
    std::int64_t in_features = 0;
    std::int64_t out_features = 0;
    bool bias = true;
  };
  Linear(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

  Parameter weight;
  Parameter bias;
};

/// Seed of the parameters' initial values and of every random op. One per thread; the trainer sets it
/// from RunConfig::seed.
void manual_seed(std::uint64_t seed);

}  // namespace weft
