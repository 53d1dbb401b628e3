#include <weft/nn/lora.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <weft/ops/elementwise.hpp>

#include "spmd/nn/init.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {
namespace {

bool is_target(const std::string& path, const std::string& target) {
  return path == target || path.ends_with("." + target);
}

}  // namespace

LoRA::LoRA(Module& module, const Options& options, std::source_location loc) : options_(options) {
  if (options.rank < 1 || !(options.dropout >= 0 && options.dropout <= 1)) {
    fail(Errc::invalid_argument,
         "LoRA: rank = {} and dropout = {}: expected 1 or more, and 0 to 1 (at {})", options.rank,
         options.dropout, file_line(loc));
  }
  std::vector<Linear*> layers;
  std::vector<std::string> paths;
  for (Module* one : module.modules()) {
    auto* layer = dynamic_cast<Linear*>(one);
    if (layer == nullptr) continue;
    layers.push_back(layer);
    paths.push_back(layer->path());
  }
  const auto& targets = options.target_modules;
  for (const std::string& target : targets) {
    const auto fits = [&](const std::string& path) { return is_target(path, target); };
    if (std::ranges::any_of(paths, fits)) continue;
    fail(Errc::invalid_argument,
         "LoRA: the target '{}' isn't a Linear of the module; its Linear layers are '{}' (at {})",
         target, fmt::join(paths, "', '"), file_line(loc));
  }
  for (Linear* layer : layers) {
    const auto fits = [&](const std::string& target) { return is_target(layer->path(), target); };
    if (!targets.empty() && std::ranges::none_of(targets, fits)) continue;
    if (layer->adapter_) {
      fail(Errc::invalid_argument, "LoRA: '{}' already has an adapter (at {})", layer->path(),
           file_line(loc));
    }
    adapt(*layer);
  }
  if (adapters_.empty()) {
    fail(Errc::invalid_argument, "LoRA: the module has no Linear layers (at {})", file_line(loc));
  }
  module.requires_grad(false);
  attach();
}

LoRA::~LoRA() {
  if (!is_merged_) detach();  // otherwise, layers may have another LoRA's adapters
}

void LoRA::attach() {
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    adapters_[i].layer->adapter_ = [this, i](const Tensor& x) { return added(adapters_[i], x); };
  }
}

void LoRA::detach() {
  for (const Adapter& adapter : adapters_) adapter.layer->adapter_ = nullptr;
}

void LoRA::adapt(Linear& layer) {
  const std::string name = "base_model.model." + layer.path();
  const std::int64_t out = layer.weight.dim(0);
  const std::int64_t in = layer.weight.dim(1);
  const std::int64_t rank = options_.rank;
  const std::string a = name + ".lora_A.weight";
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  adapters_.push_back({.layer = &layer,
                       .a = begin_uniform(make_parameter(a, 0, {rank, in}), bound),
                       .b = make_parameter(name + ".lora_B.weight", 0, {out, rank})});
}

Tensor LoRA::added(const Adapter& adapter, const Tensor& x) const {
  const bool drops = options_.dropout > 0 && adapter.layer->is_training();
  const Tensor kept = drops ? dropout(x, options_.dropout) : x;
  return linear(linear(kept, adapter.a, {}), adapter.b, {}) * scale();
}

std::vector<Parameter> LoRA::parameters() const {
  std::vector<Parameter> all;
  for (const Adapter& adapter : adapters_) {
    all.push_back(adapter.a);
    all.push_back(adapter.b);
  }
  return all;
}

void LoRA::add_to_weights(double factor, const std::source_location& loc) {
  for (const Adapter& adapter : adapters_) {
    Parameter& weight = adapter.layer->weight;
    weight.assign(weight + matmul(adapter.b, adapter.a) * factor, loc);
  }
}

void LoRA::merge(std::source_location loc) {
  const Call call("LoRA::merge", loc);
  if (is_merged_) call.refuse("the adapters are already merged");
  add_to_weights(scale(), loc);
  detach();
  is_merged_ = true;
}

void LoRA::unmerge(std::source_location loc) {
  const Call call("LoRA::unmerge", loc);
  if (!is_merged_) call.refuse("the adapters aren't merged");
  for (const Adapter& adapter : adapters_) {
    if (adapter.layer->adapter_ == nullptr) continue;
    call.refuse("'{}' now has the adapter of another LoRA: merge or destroy that LoRA first",
                adapter.layer->path());
  }
  add_to_weights(-scale(), loc);
  attach();
  is_merged_ = false;
}

}  // namespace weft
