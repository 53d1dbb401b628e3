#pragma once
/// Layers, with the options, initial values and parameter names of torch.nn.

#include <cstdint>
#include <source_location>
#include <string>

#include <weft/functional.hpp>
#include <weft/module.hpp>

namespace weft {

/// torch.nn.Linear: weight f32[out_features, in_features], bias f32[out_features], both uniform in
/// +-1/sqrt(in_features).
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

/// torch.nn.Embedding: weight f32[num_embeddings, embedding_dim], normal. Maps i32[...] from 0 to
/// num_embeddings - 1 to [..., embedding_dim]; another index ends the run.
class Embedding : public Module {
 public:
  struct Options {
    std::int64_t num_embeddings = 0;
    std::int64_t embedding_dim = 0;
    double standard_deviation = 1;
  };
  Embedding(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& index,
                    std::source_location loc = std::source_location::current()) const;

  Parameter weight;
};

/// torch.nn.LayerNorm over the last dim: weight f32[size] of ones, bias of zeros.
class LayerNorm : public Module {
 public:
  struct Options {
    std::int64_t size = 0;
    double eps = 1e-5;
    bool bias = true;
  };
  LayerNorm(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

  Parameter weight;
  Parameter bias;

 private:
  double eps_;
};

/// torch.nn.RMSNorm over the last dim: weight f32[size] of ones.
class RMSNorm : public Module {
 public:
  struct Options {
    std::int64_t size = 0;
    double eps = 1e-6;
  };
  RMSNorm(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

  Parameter weight;

 private:
  double eps_;
};

/// torch.nn.Conv2d, for x[N,in_channels,H,W]: weight f32[out_channels, in_channels / groups,
/// height, width] and bias f32[out_channels], both uniform in +-1/sqrt(in_channels / groups *
/// height * width).
class Conv2d : public Module {
 public:
  struct Options {
    std::int64_t in_channels = 0;
    std::int64_t out_channels = 0;
    HeightWidth kernel_size = 1;
    Conv2dOptions window = {};
    bool bias = true;
  };
  Conv2d(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

  Parameter weight;
  Parameter bias;

 private:
  Conv2dOptions window_;
};

/// torch.nn.Dropout: in training mode each element becomes 0 with probability p, and the others are
/// scaled by 1/(1-p).
class Dropout : public Module {
 public:
  Dropout(Module& parent, std::string name, double p = 0.5);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

 private:
  double p_;
};

/// torch.nn.Identity: returns x; a place for another layer.
class Identity : public Module {
 public:
  using Module::Module;
  Tensor operator()(const Tensor& x,
                    std::source_location /*loc*/ = std::source_location::current()) const {
    return x;
  }
};

}  // namespace weft
