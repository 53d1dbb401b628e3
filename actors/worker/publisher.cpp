#include <weft/actor/publisher.hpp>

#include <weft/actor/experience.hpp>

#include <string>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/worker/worker_context.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {

namespace {

LoopPublishers& publishers_of(TrainContext& ctx, const char* what, std::string_view name,
                              const std::source_location& where) {
  auto* worker = dynamic_cast<WorkerContext*>(&ctx);
  if (worker != nullptr) return worker->publishers();
  fail(Errc::invalid_argument,
       "{} \"{}\" at {}: `ctx` isn't the context that weft passes to a loop", what, name,
       file_line(where));
}

}  // namespace

Publisher::Publisher(TrainContext& ctx, std::string_view name, std::vector<Parameter> tensors,
                     std::source_location where)
    : publisher_(publishers_of(ctx, "Publisher", name, where)
                     .make(std::string(name), std::move(tensors), where)) {}

DatasetPtr experience(TrainContext& ctx, std::string_view name, std::vector<Field> fields,
                      const ExperienceOptions& options, std::source_location where) {
  return publishers_of(ctx, "experience", name, where)
      .experience(std::string(name), std::move(fields), options, where);
}

void Publisher::publish(std::source_location where) {
  // Only this thread, the loop's, destroys the LoopPublisher, so it exists until this call returns.
  const std::shared_ptr<LoopPublisher> publisher = publisher_.lock();
  if (publisher == nullptr) {
    fail(Errc::invalid_argument,
         "publish at {}: the training loop of this Publisher has ended: make it inside the loop",
         file_line(where));
  }
  publisher->publish(where);
}

}  // namespace weft
