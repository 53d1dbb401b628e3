#pragma once
/// Normalization over batches, groups of channels and instances, with torch's options, initial
/// values and names. Layers over the last dims are in nn.hpp.

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>

#include <weft/functional.hpp>
#include <weft/module.hpp>

namespace weft {

/// torch.nn.functional.group_norm of x[N,C,...]: the channels in `num_groups` groups; in each group
/// of each row (x - mean) / sqrt(variance + eps), then * weight[C] + bias[C], which may be empty
/// tensors.
Tensor group_norm(Operand x, std::int64_t num_groups, const Tensor& weight = {},
                  const Tensor& bias = {}, double eps = 1e-5);
/// torch.nn.functional.instance_norm of x[N,C,...] with x's own statistics: each channel is a
/// group.
Tensor instance_norm(Operand x, const Tensor& weight = {}, const Tensor& bias = {},
                     double eps = 1e-5);

/// What torch's BatchNorm and InstanceNorm layers have: weight f32[num_features] of ones and bias
/// of zeros if `affine`, and the buffers running_mean of zeros, running_var of ones and
/// num_batches_tracked i64[] if `track_running_stats`. Each use in training mode records an update
/// of the buffers, which the sync stores: running = (1 - momentum) * running + momentum * batch,
/// with the unbiased variance.
class ChannelNorm : public Module {
 public:
  Parameter weight;
  Parameter bias;
  Parameter running_mean;
  Parameter running_var;
  Parameter num_batches_tracked;

 protected:
  struct Form {
    std::int64_t num_features;
    double eps;
    std::optional<double> momentum;
    bool affine;
    bool track_running_stats;
    const char* layer;  ///< "BatchNorm2d"
    int dims_min, dims_max;
  };
  ChannelNorm(Module& parent, std::string name, const Form& form);
  /// Throws invalid_argument for another number of dims or channels.
  void expect_input(const Tensor& x, const std::source_location& loc) const;
  void track(const BatchStatistics& unbiased, const Tensor& momentum,
             const std::source_location& loc) const;

  Form form_;
};

struct BatchNormOptions {
  std::int64_t num_features = 0;  ///< C
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: running statistics are means over all batches
  bool affine = true;
  bool track_running_stats = true;
};
/// torch's SyncBatchNorm: training normalizes with the statistics of the global batch, however it
/// is sharded; evaluation with the running ones, or without them with the batch's.
class BatchNorm : public ChannelNorm {
 public:
  /// Throws invalid_argument for an x that doesn't fit, and in training for a batch of one element
  /// for each channel.
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

 protected:
  using ChannelNorm::ChannelNorm;
};
/// Of x[N,C] or x[N,C,L].
class BatchNorm1d : public BatchNorm {
 public:
  BatchNorm1d(Module& parent, std::string name, const BatchNormOptions& options);
};
/// Of x[N,C,H,W].
class BatchNorm2d : public BatchNorm {
 public:
  BatchNorm2d(Module& parent, std::string name, const BatchNormOptions& options);
};

struct InstanceNormOptions {
  std::int64_t num_features = 0;  ///< C
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = false;
  /// For evaluation, as BatchNorm's. As in torch, num_batches_tracked stays 0.
  bool track_running_stats = false;
};
/// Each channel of each row by its own statistics.
class InstanceNorm : public ChannelNorm {
 public:
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

 protected:
  using ChannelNorm::ChannelNorm;
};
/// Of x[N,C,L].
class InstanceNorm1d : public InstanceNorm {
 public:
  InstanceNorm1d(Module& parent, std::string name, const InstanceNormOptions& options);
};
/// Of x[N,C,H,W].
class InstanceNorm2d : public InstanceNorm {
 public:
  InstanceNorm2d(Module& parent, std::string name, const InstanceNormOptions& options);
};

/// torch.nn.GroupNorm of x[N,C,...]: weight f32[num_channels] of ones and bias of zeros.
class GroupNorm : public Module {
 public:
  struct Options {
    std::int64_t num_groups = 0;  ///< a divisor of num_channels
    std::int64_t num_channels = 0;
    double eps = 1e-5;
    bool affine = true;
  };
  GroupNorm(Module& parent, std::string name, const Options& options);
  Tensor operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const;

  Parameter weight;
  Parameter bias;

 private:
  std::int64_t num_groups_;
  double eps_;
};

}  // namespace weft
