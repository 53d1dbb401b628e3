#pragma once
/// Parameters and modules, named as in torch's state_dict.

#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weft/tensor.hpp>

namespace weft {

/// A tensor that a module or an optimizer owns: state that is kept from step to step. Assigning
/// sets the value that it has from the next sync on.
class Parameter : public Tensor {
 public:
  Parameter() = default;
  explicit Parameter(std::shared_ptr<TensorNode> node) : Tensor(std::move(node)) {}

  /// The full name, "fc1.weight".
  const std::string& name() const;
  /// Later reads of the parameter return `value`, which must have its type; throws invalid_argument
  /// otherwise.
  void assign(const Tensor& value, std::source_location loc = std::source_location::current());
};

/// A parameter with these initial elements (f32, the same on every worker). `name` is its full
/// name.
Parameter make_parameter(std::string name, std::span<const float> elements, const Shape& shape);
/// State of an optimizer, of which all elements are `value` at first.
Parameter make_opt_state(std::string name, double value, const Shape& shape,
                         DType dtype = DType::f32);
/// State that no optimizer updates: the loop assigns it (torch's buffers).
Parameter make_buffer(std::string name, double value, const Shape& shape, DType dtype = DType::f32);
Parameter make_buffer(std::string name, std::span<const float> elements, const Shape& shape);

/// d loss / d wrt[i]; see grad in tensor.hpp.
std::vector<Tensor> grad(const Tensor& loss, std::span<const Parameter> wrt,
                         std::source_location loc = std::source_location::current());

/// Registers its parameters, buffers and children by name. Throws invalid_argument for an empty
/// name or one that the parent already has. Not movable: children and parent point to each other.
class Module {
 public:
  /// A root; the name distinguishes two models that are trained together.
  explicit Module(std::string name = "") : name_(std::move(name)) {}
  Module(Module& parent, std::string name);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module();

  /// Own parameters in order of registration, then the children's; names are dotted paths.
  std::vector<Parameter> parameters() const;
  /// The buffers, in the same order: state that is saved and restored, but not trained.
  std::vector<Parameter> buffers() const;

  /// Switches training mode on (the default) or off for the whole module: Dropout acts only in
  /// training mode.
  void train(bool training = true);
  void eval() { train(false); }
  bool is_training() const { return training_; }

 protected:
  /// The parameter `name` of this module.
  Parameter add_parameter(std::string_view name, std::span<const float> elements,
                          const Shape& shape);
  /// The buffer `name` of this module; see make_buffer().
  Parameter add_buffer(std::string_view name, double value, const Shape& shape,
                       DType dtype = DType::f32);
  Parameter add_buffer(std::string_view name, std::span<const float> elements, const Shape& shape);
  /// The full name of this module's parameter `name`; without `name`, that of the module.
  std::string path(std::string_view name) const;
  std::string path() const { return parent_ == nullptr ? name_ : parent_->path(name_); }

 private:
  void expect_free(std::string_view name) const;
  void append(std::vector<Parameter>& all, std::vector<Parameter> Module::*own) const;

  Module* parent_ = nullptr;
  std::string name_;
  bool training_ = true;
  std::vector<Parameter> parameters_;
  std::vector<Parameter> buffers_;
  std::vector<Module*> children_;
};

}  // namespace weft
