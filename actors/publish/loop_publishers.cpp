#include "actors/publish/loop_publishers.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

LoopPublishers::LoopPublishers(WorkerRuntime& runtime, std::string job_id, int worker,
                               int num_workers)
    : runtime_(runtime), job_id_(std::move(job_id)), worker_(worker), num_workers_(num_workers) {
  runtime.observers().push_back(this);
}

LoopPublishers::~LoopPublishers() {
  std::erase(runtime_.observers(), static_cast<LoopObserver*>(this));
}

std::weak_ptr<LoopPublisher> LoopPublishers::make(std::string name, std::vector<Parameter> tensors,
                                                  const std::source_location& where) {
  runtime_.require_loop_thread("Publisher", where);
  if (runtime_.mesh() == nullptr) {
    fail(Errc::unavailable,
         "Publisher \"{}\" at {}: the job has no mesh (backend.backend = Backend::none), so each "
         "worker has its own tensors: set backend.backend = Backend::spmd",
         name, file_line(where));
  }
  if (std::ranges::any_of(publishers_, [&](const auto& each) { return each->name() == name; })) {
    fail(Errc::invalid_argument,
         "Publisher \"{}\" at {}: the loop has a Publisher of this name already; make it once, "
         "before the first step, or choose another name",
         name, file_line(where));
  }
  publishers_.push_back(
      std::make_shared<LoopPublisher>(runtime_,
                                      LoopPublisherOptions{.job_id = job_id_,
                                                           .worker = worker_,
                                                           .num_workers = num_workers_,
                                                           .name = std::move(name),
                                                           .tensors = std::move(tensors)},
                                      where));
  publishers_.back()->publish(where);
  return publishers_.back();
}

void LoopPublishers::finish(const std::source_location& where) {
  if (publishers_.empty()) return;
  // Worker 0 waits for the copies of all workers, so all must have published equally often.
  std::string text;
  for (const auto& publisher : publishers_) text += publisher->count_text();
  runtime_.require_alike(text, {.function = "Publisher", .loc = where});
  for (const auto& publisher : publishers_) publisher->finish();
}

void LoopPublishers::step_ended() {
  for (const auto& publisher : publishers_) publisher->step_ended();
}

}  // namespace weft
