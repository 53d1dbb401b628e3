#include <weft/actor/test_job.hpp>

#include "actors/simulate/actor_simulation.hpp"

namespace weft {

const Job* TestJob::handle() const { return simulation_->job().handle(); }

bool TestJob::publish(std::string_view name, std::uint64_t version, const Tensors& tensors) {
  return simulation_->job().publish(name, version, tensors);
}

void TestJob::begin_experience(std::string_view name, const std::vector<Field>& fields,
                               std::int64_t capacity) {
  simulation_->job().begin_experience(name, fields, capacity);
}

std::vector<TestRow> TestJob::take_rows(std::string_view name, std::int64_t at_most) {
  return simulation_->job().take_rows(name, at_most);
}

void TestJob::end() {
  simulation_->require_turn();
  simulation_->job().end();
}

bool TestJob::has_ended() const { return simulation_->job().has_ended(); }

}  // namespace weft
