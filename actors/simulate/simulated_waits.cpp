#include <string_view>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/simulate/simulated_process.hpp"
#include "transport/published/row_sink.hpp"

namespace weft {
namespace {

/// Gives a process access to the rows of one name.
class SimulatedRowSink final : public RowSink {
 public:
  SimulatedRowSink(std::weak_ptr<ActorSimulation> simulation, PeerId process,
                   std::shared_ptr<SimulatedExperience> rows, std::string name)
      : simulation_(std::move(simulation)),
        process_(process),
        rows_(std::move(rows)),
        name_(std::move(name)) {}

  const std::vector<PublishedTensor>& fields() const override { return rows_->fields(); }
  std::uint64_t capacity() const override { return rows_->capacity(); }
  std::optional<std::vector<std::uint32_t>> take(std::uint64_t rows) override {
    return rows_->take(rows);
  }
  std::byte* row(std::span<const std::uint32_t> blocks, std::uint64_t row) const override {
    return rows_->row(blocks[row]);
  }
  void give_back(std::span<const std::uint32_t> blocks) noexcept override {
    rows_->give_back(blocks);
  }
  /// Sends the rows, unless a fault of the simulation kills the process here.
  void send(std::span<const std::uint32_t> blocks, std::uint64_t rows,
            std::uint64_t version) override {
    const std::shared_ptr<ActorSimulation> simulation = simulation_.lock();
    const auto process = simulation == nullptr ? nullptr : simulation->find(process_);
    if (process == nullptr) return rows_->give_back(blocks);  // the simulation has ended
    if (!process->before_sending()) return rows_->give_back(blocks);
    simulation->log(fmt::format("{} rows arrive at \"{}\"", rows, name_));
    rows_->send(blocks, version);
  }
  bool has_job_ended() const override { return rows_->has_ended(); }
  std::uint32_t news() const noexcept override { return rows_->news(); }
  void wait_for_news(std::uint32_t, std::chrono::nanoseconds) const noexcept override {}

 private:
  std::weak_ptr<ActorSimulation> simulation_;
  PeerId process_;
  std::shared_ptr<SimulatedExperience> rows_;
  std::string name_;
};

}  // namespace

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
      return true;  // the waiting function calls wait_for() again below, which throws the error
                    // there
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
  require_running(wait);
  const SimulatedJob& job = simulation_->job();
  const std::uint32_t seen = job.changes();
  await([&](std::chrono::nanoseconds) { return job.changes() != seen; }, deadline);
}

void SimulatedProcess::require_running(const JobWait& wait) const {
  if (simulation_->job().has_ended()) throw job_never_made_error(wait);
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
