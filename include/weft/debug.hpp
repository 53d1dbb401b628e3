#pragma once
/// Finding what is wrong: values that are not finite, and what lies where.

#include <source_location>
#include <string>

#include <weft/tensor.hpp>

namespace weft {

// Finding the first op that gives a NaN or an infinity (torch.autograd.detect_anomaly).

class Trace;

/// See detect_anomaly().
class AnomalyScope {
 public:
  explicit AnomalyScope(std::source_location loc = std::source_location::current());
  ~AnomalyScope();
  AnomalyScope(const AnomalyScope&) = delete;
  AnomalyScope& operator=(const AnomalyScope&) = delete;

 private:
  Trace& trace_;
  bool before_;
};

/// While the returned scope lives, each program of this thread's loop is checked op by op, the
/// backward pass too. The first op that makes a NaN, or an infinity of finite operands, ends the
/// job with the op's name and source line. In the loop, in all workers:
///
///     const auto scope = weft::detect_anomaly();
///
/// The same for an unchanged program: WEFT_DETECT_ANOMALY=1. Use it for debugging only: every op
/// reads its operands and results once more.
[[nodiscard]] inline AnomalyScope detect_anomaly(
    std::source_location loc = std::source_location::current()) {
  return AnomalyScope(loc);
}

// What lies where.

/// Which chips hold which part of a tensor, as a grid of the two first dims that are sharded
/// (torch_xla's function of this name):
///
///     'fc1.weight' f32[128,64] [{"model"}, {}]
///     rows of dim 0: 64, columns of dim 1: 64
///     | 0 2 |
///     | 1 3 |
///
/// Throws invalid_argument for a value that is yet to be computed, unavailable without a mesh.
std::string visualize_tensor_sharding(const Tensor& tensor,
                                      std::source_location loc = std::source_location::current());

}  // namespace weft
