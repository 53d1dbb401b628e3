#include "chips/accelerator/gang.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "chips/accelerator/accelerator_client.hpp"
#include "spmd/mesh/hybrid_mesh.hpp"

namespace weft {

GangRun::~GangRun() {
  for (auto& [chip, launched] : results_) {
    try {
      launched.done.await();
    } catch (const pjrt::PluginError&) {
      // The run has ended. Chips that took their results have seen the error.
    }
  }
}

std::exception_ptr GangRun::call_error() const {
  const std::lock_guard lock(call_mutex_);
  return call_error_;
}

void GangRun::on_collective(const pjrt::ForeignCall& call) {
  fail(Errc::corrupt, "a program of replicas calls collective {} of weft", call.number);
}

void GangRun::on_custom_op(const pjrt::ForeignCall& call) try {
  plan_->custom_ops.at(static_cast<OpId>(call.number)).run(call.operands, call.results[0]);
} catch (...) {
  const std::lock_guard lock(call_mutex_);
  if (!call_error_) call_error_ = std::current_exception();
  throw;
}

std::shared_ptr<Gang> Gang::of(DeviceKind kind, const JobMemory& memory, const Mesh& mesh) {
  static std::mutex mutex;
  static auto& gangs = *new std::map<const JobMemory*, std::weak_ptr<Gang>>;
  const std::lock_guard lock(mutex);
  std::erase_if(gangs, [](const auto& known) { return known.second.expired(); });
  std::shared_ptr<Gang> gang = gangs[&memory].lock();
  if (gang == nullptr) {
    gang = std::make_shared<Gang>(accelerator_client(kind, mesh.size()), mesh);
    gangs[&memory] = gang;
  }
  return gang;
}

Gang::Gang(std::shared_ptr<pjrt::Client> client, const Mesh& mesh) : client_(std::move(client)) {
  for (int position = 0; position < mesh.size(); ++position) {
    chips_.push_back(chip_on_host(mesh, position));
  }
}

std::shared_ptr<const pjrt::Executable> Gang::compile(const std::string& text, bool meets) {
  const std::lock_guard lock(compile_mutex_);
  std::erase_if(compiled_, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<const pjrt::Executable>& known = compiled_[text];
  std::shared_ptr<const pjrt::Executable> executable = known.lock();
  if (executable != nullptr) return executable;
  std::vector<int> devices;
  for (const int chip : chips_) {
    if (meets) devices.push_back(client_->devices().at(static_cast<std::size_t>(chip)).id);
  }
  executable = std::make_shared<const pjrt::Executable>(client_->compile(text, devices));
  known = executable;
  return executable;
}

std::shared_ptr<GangRun> Gang::join(int chip, std::shared_ptr<const AcceleratorPlan> plan,
                                    GangPart part) {
  std::shared_ptr<GangRun> run;
  if (!plan->meets) {
    run = std::make_shared<GangRun>(std::move(plan));
    run->parts_.emplace(chip, std::move(part));
  } else {
    const std::lock_guard lock(mutex_);
    const std::uint64_t number = joined_[chip]++;
    std::shared_ptr<GangRun>& gathering = gathering_[number];
    if (gathering == nullptr) gathering = std::make_shared<GangRun>(plan);
    run = gathering;
    WEFT_CHECK(run->plan_->executable == plan->executable, number);
    run->parts_.emplace(chip, std::move(part));
    if (run->parts_.size() < chips_.size()) return run;
    gathering_.erase(number);
  }
  launch(*run);
  return run;
}

void Gang::launch(GangRun& run) {
  try {
    launch_parts(run);
  } catch (...) {
    run.error_ = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    run.is_launched_ = true;
  }
  changed_.notify_all();
}

/// The launch has one list of kept arguments for all chips, so that a run takes an argument's
/// buffer only if no chip keeps that argument.
void Gang::launch_parts(GangRun& run) {
  const AcceleratorPlan& plan = *run.plan_;
  std::vector<int> chips = chips_;
  if (!plan.meets) chips = {run.parts_.begin()->first};
  std::vector<std::vector<void*>> rows;
  std::set<std::int64_t> all_kept;
  for (const int chip : chips) {
    const GangPart& part = run.parts_.at(chip);
    std::vector<void*>& row = rows.emplace_back();
    for (const DeviceCopies::Held& argument : part.arguments) row.push_back(argument->handle());
    all_kept.insert(part.kept.begin(), part.kept.end());
  }
  const std::vector<std::int64_t> kept(all_kept.begin(), all_kept.end());
  if (!plan.custom_ops.empty()) run.context_.emplace(client_, run);
  void* const context = run.context_ ? run.context_->handle() : nullptr;
  if (!plan.meets) {
    void* const device = client_->devices().at(static_cast<std::size_t>(chips[0])).handle;
    run.results_.emplace(chips[0], plan.executable->launch(rows[0], kept, device, context));
    return;
  }
  std::vector<pjrt::LaunchedRun> launched = plan.executable->launch_replicas(rows, kept, context);
  for (std::size_t i = 0; i < chips.size(); ++i) {
    run.results_.emplace(chips[i], std::move(launched.at(i)));
  }
}

std::optional<int> Gang::missing(const GangRun& run, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_until(lock, until, [&] { return run.is_launched_; })) return std::nullopt;
  const auto is_missing = [&](int chip) { return !run.parts_.contains(chip); };
  const auto found = std::ranges::find_if(chips_, is_missing);
  if (found != chips_.end()) return *found;
  // All chips have joined, and the last one's thread is launching the run. With some plug-ins, this
  // lasts until the run has ended.
  changed_.wait(lock, [&] { return run.is_launched_; });
  return std::nullopt;
}

std::vector<pjrt::Buffer> Gang::finish(GangRun& run, int chip) try {
  if (run.error_) std::rethrow_exception(run.error_);
  pjrt::LaunchedRun& launched = run.results_.at(chip);
  launched.done.await();
  return std::move(launched.outputs);
} catch (const pjrt::PluginError&) {
  if (const std::exception_ptr error = run.call_error()) std::rethrow_exception(error);
  throw;
}

}  // namespace weft
