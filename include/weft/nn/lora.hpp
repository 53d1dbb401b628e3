#pragma once
/// LoRA: trains small adapters of a model's layers while the layers themselves stay frozen.

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <weft/nn/layers.hpp>

namespace weft {

/// Low-rank adaptation (E. Hu et al., 2021), like PEFT's LoraModel. Each chosen Linear of a module
/// computes W x + b + alpha / rank * B (A dropout(x)) from then on. All parameters of the module
/// are frozen, and only A and B are trained. A begins as a Linear's weight does, B as zeros.
///
///   Gpt net(config);
///   weft::load(net, "gpt2");
///   weft::LoRA lora(net, {.rank = 8, .alpha = 16, .target_modules = {"q_proj", "v_proj"}});
///   weft::AdamW optimizer(lora.parameters(), {.lr = 1e-4});
///   ...
///   optimizer.step(weft::grad(loss, lora.parameters()));
///   weft::save(lora.parameters(), "adapter_model.safetensors");
///
/// The module must outlive this object. The destructor removes the adapters from the layers.
class LoRA {
 public:
  struct Options {
    std::int64_t rank = 8;
    double alpha = 8;    ///< PEFT's lora_alpha
    double dropout = 0;  ///< PEFT's lora_dropout, applied to the adapters' input in training mode
    /// A layer is chosen if its path equals one of these strings, or ends with a dot and one of
    /// them. An empty list chooses every Linear.
    std::vector<std::string> target_modules{};
  };
  /// Throws invalid_argument for a rank below 1, a dropout outside 0 to 1, a target that is no
  /// Linear of the module, and a layer that already has an adapter.
  LoRA(Module& module, const Options& options,
       std::source_location loc = std::source_location::current());
  ~LoRA();
  LoRA(const LoRA&) = delete;
  LoRA& operator=(const LoRA&) = delete;

  /// Returns the adapters' parameters with the names of PEFT's files:
  /// "base_model.model.PATH.lora_A.weight" [rank, in_features] and
  /// "base_model.model.PATH.lora_B.weight" [out_features, rank].
  std::vector<Parameter> parameters() const;
  /// Returns parameters(), so that state_dict() takes this object beside the module.
  std::vector<Parameter> state() const { return parameters(); }

  /// Records W = W + alpha / rank * B A, so that the layers give the same results without their
  /// adapters. Use it to save the whole model, or for inference. Call it at the end of a loop: a
  /// loop that starts again after a worker was lost doesn't know that the adapters were merged.
  /// Throws invalid_argument if the adapters are already merged.
  void merge(std::source_location loc = std::source_location::current());
  /// Records W = W - alpha / rank * B A, which reverses merge() up to rounding. Throws
  /// invalid_argument if the adapters aren't merged.
  void unmerge(std::source_location loc = std::source_location::current());

 private:
  struct Adapter {
    Linear* layer;
    Parameter a;
    Parameter b;
  };
  double scale() const { return options_.alpha / static_cast<double>(options_.rank); }
  void adapt(Linear& layer);
  void attach();
  void detach();
  Tensor added(const Adapter& adapter, const Tensor& x) const;
  void add_to_weights(double factor, const std::source_location& loc);

  Options options_;
  std::vector<Adapter> adapters_;
  bool is_merged_ = false;
};

}  // namespace weft
