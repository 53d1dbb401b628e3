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

/// Publishes versions of tensors in shared memory. A version is the number of steps after which the
/// loop had these values. Readers get a version as soon as all workers have copied their parts of
/// it, which they do beside the loop. The loop doesn't wait for readers: each name has eight
/// places, and if readers hold seven of them, the next version is skipped, which
/// Parameters::skipped() counts. publish() waits if three versions are still to be copied.
///
/// A loop that continues after the loss of a worker doesn't publish a version again, so its bytes
/// never change. All workers must publish in the same steps.
class Publisher {
 public:
  /// Publishes the present values as well, as version ctx.step(). Names are unique in the loop:
  /// make a Publisher once, before the first step. Throws invalid_argument; unavailable if the job
  /// has no mesh; no_space; and program_divergence if the workers publish different tensors.
  Publisher(TrainContext& ctx, std::string_view name, std::vector<Parameter> tensors,
            std::source_location where = std::source_location::current());

  /// Publishes the values at the end of the running step. If no tensor has changed since the last
  /// step ended, publishes the values of that step at once. Throws invalid_argument after the end
  /// of the loop, and no_space if there is no memory for a first version.
  void publish(std::source_location where = std::source_location::current());

 private:
  std::weak_ptr<LoopPublisher> publisher_;
};

}  // namespace weft
