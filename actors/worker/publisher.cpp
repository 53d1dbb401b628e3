#include <weft/actor/publisher.hpp>

#include <string>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/worker/worker_context.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {

Publisher::Publisher(TrainContext& ctx, std::string_view name, std::vector<Parameter> tensors,
                     std::source_location where) {
  auto* worker = dynamic_cast<WorkerContext*>(&ctx);
  if (worker == nullptr) {
    fail(Errc::invalid_argument,
         "Publisher \"{}\" at {}: `ctx` isn't the context that weft passes to a loop", name,
         file_line(where));
  }
  publisher_ = worker->publishers().make(std::string(name), std::move(tensors), where);
}

void Publisher::publish(std::source_location where) {
  // The loop's thread also destroys the LoopPublisher, so it can't vanish after this check.
  const std::shared_ptr<LoopPublisher> publisher = publisher_.lock();
  if (publisher == nullptr) {
    fail(Errc::invalid_argument,
         "publish at {}: the training loop of this Publisher has ended: make it inside the loop",
         file_line(where));
  }
  publisher->publish(where);
}

}  // namespace weft
