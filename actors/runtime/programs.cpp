// The part of WorkerRuntime that finds or compiles a program's plan, and lets the trainer admit the
// program.

#include <chrono>

#include <fmt/format.h>

#include "actors/process/log.hpp"
#include "actors/protocol/first_plan.hpp"
#include "actors/runtime/unused_axes.hpp"
#include "actors/runtime/worker_runtime.hpp"
#include "spmd/plan/settle.hpp"
#include "spmd/text/text.hpp"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The limit on a program's text in a message. A larger message would delay other messages on the
/// same socket for too long.
constexpr std::size_t kProgramTextBytesMax = 900'000;

/// Ends the loop because only a plan was wanted. Worker 0 writes the plan and then ends the job;
/// the other workers wait for that end.
[[noreturn]] void end_planned(const WorkerRuntimeOptions& options, Permits& permits,
                              const FirstPlan& first) {
  if (options.worker != 0) permits.wait_over();
  write_first_plan(options.plan_folder, first);
  fail(Errc::cancelled, "the first step is planned but not run, because WEFT_PLAN_TO is set");
}

}  // namespace

const CompileCache::Entry& WorkerRuntime::find_or_compile(const Program& program,
                                                          const Fingerprint& key,
                                                          const RunSite& site) {
  if (const CompileCache::Entry* found = cache_.find(program, key)) {
    metrics().count("CachedCompile");
    return *found;
  }
  metrics().count("UncachedCompile");
  const StateScope compiling(
      recorder_, ActorState::compiling, EventKind::compile,
      {.number = programs_, .text = recorder_.events.intern(to_string(site))});
  const auto reason = cache_.explain(program, site);
  // The reason is the same on all workers, so only one of them logs it.
  if (reason && options_.worker == 0) logger("weft.worker")->warn("{}", *reason);
  const std::uint32_t number = programs_;
  listing_.debug(1, [&] {
    return fmt::format("program {} is new: {}", number,
                       reason ? *reason : "the first for " + to_string(site));
  });
  ProgramEntry entry{.worker = options_.worker,
                     .generation = options_.generation,
                     .number = number,
                     .step = step_,
                     .fingerprint = key.to_string(),
                     .site = to_string(site),
                     .reason = reason.value_or(""),
                     .arena_bytes = memory_.arena_capacity(),
                     .keeps_state = options_.keeps_state};
  auto plan = load_or_compile(program, key, entry);
  metrics().sample("ArenaBytes", MetricUnit::bytes, static_cast<double>(plan->temp_bytes));
  metrics().sample("ArenaBytesBound", MetricUnit::bytes,
                   static_cast<double>(plan->temp_bytes_bound));
  listing_.dump_plan(number, *plan);
  say_unused_axes(*plan, site);
  std::string text = to_text(program, mesh_);
  program_list_.add(entry, text, *plan);
  if (options_.has_mesh) admit(number, std::move(text), key, site);
  // All workers have shown the same program by now, so the plan is valid for all.
  if (site.ends_step && !options_.plan_folder.empty()) {
    end_planned(options_, link_.permits(),
                {.plan = *plan,
                 .site = to_string(site),
                 .num_workers = options_.num_workers,
                 .chips_per_worker = static_cast<int>(devices_.size()),
                 .keeps_state = options_.keeps_state,
                 .arena_bytes = memory_.arena_capacity(),
                 .compile_seconds = entry.seconds});
  }
  auto load = std::make_shared<const DeviceLoad>(
      DeviceLoad{.program = number, .plan = plan, .site = to_string(site)});
  for (const auto& device : devices_) device->load(load);
  logger("weft.worker")
      ->info("program {} ({}): {} ops, {} per chip, {} bytes of temporaries, {:.1f} ms", number,
             key.to_string(), program.num_ops(), plan->program.num_ops(), plan->temp_bytes,
             1e3 * entry.seconds);
  ++programs_;
  executed_[number] = {.plan = plan, .fingerprint = key.low, .overwriters = overwriters(*plan)};
  return cache_.add(program, key, {number, std::move(plan)});
}

/// Warns, at most once per job, of a mesh axis along which all chips do the same work.
void WorkerRuntime::say_unused_axes(const Plan& plan, const RunSite& site) {
  if (axes_said_ || options_.worker != 0 || options_.resume_step != 0) return;
  const auto hint = hint_at_unused_axes(plan, mesh_, to_string(site));
  if (!hint) return;
  axes_said_ = true;
  logger("weft.worker")->warn("{}", *hint);
}

/// Loads the program's plan again, with checks for anomalies. Returns the number of this copy.
std::uint32_t WorkerRuntime::find_checked(std::uint32_t program, const RunSite& site) {
  const auto [found, is_new] = checked_.try_emplace(program, programs_);
  if (!is_new) return found->second;
  const std::uint32_t number = programs_;
  if (options_.has_mesh) {
    const std::string text = fmt::format("program {} with detect_anomaly", program);
    admit(number, text, {.low = program, .high = ~std::uint64_t{0}}, site);
  }
  const Executed& plain = executed_.at(program);
  auto load = std::make_shared<const DeviceLoad>(
      DeviceLoad{.program = number, .plan = plain.plan, .checks = true, .site = to_string(site)});
  for (const auto& device : devices_) device->load(load);
  executed_[number] = {
      .plan = plain.plan, .fingerprint = plain.fingerprint, .overwriters = plain.overwriters};
  ++programs_;
  return number;
}

/// Loads the plan from the store, or compiles and stores it. Records in `entry` how long this took
/// and whether the plan was in the store.
std::shared_ptr<const Plan> WorkerRuntime::load_or_compile(const Program& program,
                                                           const Fingerprint& key,
                                                           ProgramEntry& entry) {
  const auto begin = Clock::now();
  std::shared_ptr<const Plan> plan;
  if (store_.is_on()) {
    plan = store_.load(key, program);
    metrics().count(plan ? "PersistentCacheHit" : "PersistentCacheMiss");
  }
  entry.stored = plan != nullptr;
  if (!plan) {
    const PassObserver passes = listing_.passes(entry.number);
    plan = std::make_shared<const Plan>(compile_settled(program, mesh_, options_.target, passes));
  }
  entry.seconds = seconds_since(begin);
  if (!entry.stored) {
    metrics().sample("CompileTime", MetricUnit::seconds, entry.seconds);
    if (options_.worker == 0) store_.keep(key, *plan);
  }
  return plan;
}

void WorkerRuntime::admit(std::uint32_t number, std::string text, const Fingerprint& key,
                          const RunSite& site) {
  if (text.size() > kProgramTextBytesMax) {
    text.resize(kProgramTextBytesMax);
    text += "\n(cut)";
  }
  const ProgramSeen seen{.worker = options_.worker,
                         .generation = options_.generation,
                         .sequence = number,
                         .run = runs_ + 1,
                         .fingerprint_low = key.low,
                         .fingerprint_high = key.high,
                         .text = std::move(text),
                         .site = to_string(site)};
  const StateScope admission(recorder_, ActorState::admission, EventKind::admission,
                             {.number = number, .value = key.low});
  link_.permits().shown(seen);
  link_.show_program(seen);
  link_.permits().wait_admitted(number, runs_ + 1);
}

}  // namespace weft
