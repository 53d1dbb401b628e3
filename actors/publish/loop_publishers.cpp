#include "actors/publish/loop_publishers.hpp"

#include <algorithm>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

LoopPublishers::LoopPublishers(WorkerRuntime& runtime, const JobLoaders& loaders,
                               std::string job_id, int worker, int num_workers)
    : runtime_(runtime),
      loaders_(loaders),
      job_id_(std::move(job_id)),
      worker_(worker),
      num_workers_(num_workers) {
  runtime.observers().push_back(this);
}

LoopPublishers::~LoopPublishers() {
  std::erase(runtime_.observers(), static_cast<LoopObserver*>(this));
}

void LoopPublishers::require_mesh(const char* what, const std::string& name,
                                  const std::source_location& where) const {
  runtime_.require_loop_thread(what, where);
  if (runtime_.mesh() != nullptr) return;
  fail(Errc::unavailable,
       "{} \"{}\" at {}: the job has no mesh (backend.backend = Backend::none), so its workers "
       "don't work together: set backend.backend = Backend::spmd",
       what, name, file_line(where));
}

std::weak_ptr<LoopPublisher> LoopPublishers::make(std::string name, std::vector<Parameter> tensors,
                                                  const std::source_location& where) {
  require_mesh("Publisher", name, where);
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

DatasetPtr LoopPublishers::experience(std::string name, std::vector<Field> fields,
                                      const ExperienceOptions& options,
                                      const std::source_location& where) {
  require_mesh("experience", name, where);
  if (std::ranges::any_of(experience_, [&](const auto& each) { return each->name() == name; })) {
    fail(Errc::invalid_argument,
         "experience(\"{}\") at {}: the loop has called it with this name already; use one dataset "
         "for one DeviceLoader, or choose another name",
         name, file_line(where));
  }
  experience_.push_back(
      std::make_unique<LoopExperience>(runtime_, loaders_,
                                       LoopExperienceOptions{.job_id = job_id_,
                                                             .worker = worker_,
                                                             .num_workers = num_workers_,
                                                             .name = std::move(name),
                                                             .fields = std::move(fields),
                                                             .options = options},
                                       where));
  return experience_.back()->dataset();
}

void LoopPublishers::finish() {
  if (publishers_.empty()) return;
  // Worker 0 waits for the copies of all workers, so all workers must have published equally often.
  std::string text;
  for (const auto& publisher : publishers_) text += publisher->count_text();
  runtime_.require_alike(text, {.function = "Publisher", .loc = publishers_.front()->where()});
  for (const auto& publisher : publishers_) publisher->finish();
}

void LoopPublishers::step_ended() {
  for (const auto& publisher : publishers_) publisher->step_ended();
  for (const auto& experience : experience_) experience->step_ended();
}

}  // namespace weft
