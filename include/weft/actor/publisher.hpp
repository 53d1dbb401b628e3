#pragma once
/// Publisher: lets other processes read the parameters of a loop while it trains (Parameters).
///
///   weft::Publisher policy(ctx, "policy", net.parameters());
///   for (const weft::Batch& batch : batches) {
///     adam.step(weft::grad(loss(net, batch), net.parameters()));
///     policy.publish();  // the values of this step, when it ends
///   }

#include <memory>
#include <source_location>
#include <string_view>
#include <vector>

#include <weft/nn/parameter.hpp>
#include <weft/train/train_context.hpp>

namespace weft {

class LoopPublisher;

/// Publishes versions of tensors in shared memory. The number of a version is the number of steps
/// that had ended when the loop had these values. Readers get a version once all workers have
/// copied their parts, which happens in parallel to the loop. The loop doesn't wait for readers:
/// each name has room for eight versions, and if readers keep seven of them, the next version is
/// skipped; Parameters::skipped() counts such versions. publish() waits if three versions are still
/// to be copied.
///
/// A loop that begins again after the loss of a worker doesn't publish a version a second time, so
/// the bytes of a version never change. All workers must publish in the same steps.
class Publisher {
 public:
  /// Also publishes the present values, as version ctx.step(). Names are unique in the loop: make a
  /// Publisher once, before the first step. Throws invalid_argument; unavailable if the job has no
  /// mesh; no_space; and program_divergence if the workers publish different tensors.
  Publisher(TrainContext& ctx, std::string_view name, std::vector<Parameter> tensors,
            std::source_location where = std::source_location::current());

  /// Publishes the values that the tensors have at the end of the running step. If no tensor has
  /// changed since the last step ended, publishes at once, as the version of that step. Throws
  /// invalid_argument after the end of the loop, and no_space if there is no memory for the first
  /// version.
  void publish(std::source_location where = std::source_location::current());

 private:
  std::weak_ptr<LoopPublisher> publisher_;
};

}  // namespace weft
