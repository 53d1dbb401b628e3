#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/simulate/simulated_process.hpp"

namespace weft {

// --- Waits for something that isn't a call ---

bool SimulatedProcess::must_end(std::optional<std::uint32_t> row) const {
  if (row) return simulation_->keeper().row(*row).position.phase == ActorPhase::ended;
  return is_cleared_ || simulation_->has_ended();
}

bool SimulatedProcess::await(const WaitFor& wait_for, SimulatedTime deadline) {
  simulation_->require_turn();
  const std::uint32_t waiter = sender();
  const auto is_over = [&] {
    if (must_end({}) || (waiter != 0 && must_end(waiter - 1))) return true;
    try {
      return wait_for({});
    } catch (const Error&) {
      return true;  // it throws again below, where the function runs
    }
  };
  if (!is_over()) {
    simulation_->log(sender_name(waiter) + " waits");
    simulation_->wait(is_over, deadline);
    simulation_->log(sender_name(waiter) + " continues");
  }
  return wait_for({});
}

// --- The job ---

void SimulatedProcess::await_job(const JobWait& wait, SimulatedTime deadline) {
  const SimulatedJob& job = simulation_->job();
  if (job.has_ended()) throw job_never_made_error(wait);
  const std::uint32_t seen = job.changes();
  await([&](std::chrono::nanoseconds) { return job.changes() != seen; }, deadline);
}

std::shared_ptr<VersionSource> SimulatedProcess::open_versions(const std::string& /*job*/,
                                                               const std::string& name) {
  return simulation_->job().versions(name);
}

std::shared_ptr<RowSink> SimulatedProcess::open_rows(const std::string& /*job*/,
                                                     const std::string& name) {
  auto rows = simulation_->job().rows(name);
  if (rows == nullptr) return nullptr;
  return std::make_shared<SimulatedRowSink>(simulation_, id_, std::move(rows), name);
}

std::vector<std::string> SimulatedProcess::published_names(const std::string& /*job*/) const {
  return simulation_->job().published_names();
}

// --- Pipes ---

detail::ProcessPlace SimulatedProcess::place() const {
  return {.system = SimulatedJob::id(), .slot = id_.slot, .incarnation = id_.incarnation};
}

void SimulatedProcess::create_channel(ChannelOptions options) {
  options.job = SimulatedJob::id();
  auto channel = std::make_shared<Channel>(Channel::anonymous(options));
  simulation_->channels().insert_or_assign(options.name, std::move(channel));
}

std::shared_ptr<Channel> SimulatedProcess::open_channel(const std::string& name) {
  const auto found = simulation_->channels().find(name);
  if (found == simulation_->channels().end()) fail(Errc::not_found, "there is no pipe {}", name);
  return found->second;
}

void SimulatedProcess::remove_channel(const std::string& name) noexcept {
  simulation_->channels().erase(name);
}

}  // namespace weft
