#include <weft/actors/worker/permits.hpp>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// Runs that one worker may be ahead of another by: two under way, and what needs no other worker.
constexpr std::size_t kRecentRuns = 4096;

}  // namespace

template <typename Predicate>
void Permits::wait(const char* what, Predicate predicate) {
  std::unique_lock lock(mutex_);
  const bool held = changed_.wait_for(lock, timeout_, [&] { return cancelled_ || predicate(); });
  throw_if_cancelled();
  if (!held) {
    fail(Errc::timeout, "waited {} s for the trainer: {} (backend.timeout_s)",
         static_cast<double>(timeout_.count()) / 1000, what);
  }
}

void Permits::throw_if_cancelled() const {
  if (cancelled_) throw Error(Errc::cancelled, reason_);
}

void Permits::set_timeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

void Permits::start() {
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
  }
  changed_.notify_all();
}

void Permits::admit(std::uint64_t programs) {
  {
    const std::lock_guard lock(mutex_);
    admitted_ = std::max(admitted_, programs);
  }
  changed_.notify_all();
}

void Permits::grant(std::uint64_t steps) {
  {
    const std::lock_guard lock(mutex_);
    granted_ = std::max(granted_, steps);
  }
  changed_.notify_all();
}

std::optional<LoopEnded> Permits::loop_ended(int worker, std::uint64_t runs) {
  const std::lock_guard lock(mutex_);
  if (runs < ended_runs_) {
    ended_runs_ = runs;
    ended_worker_ = worker;
    changed_.notify_all();
  }
  if (begun_runs_ <= ended_runs_) return {};
  return LoopEnded{.step = begun_step_,
                   .runs = begun_runs_,
                   .error = static_cast<std::uint8_t>(Errc::program_divergence),
                   .message = overtaken(begun_runs_)};
}

void Permits::cancel(std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || cancelled_) return;
    cancelled_ = true;
    reason_ = std::move(reason);
  }
  changed_.notify_all();
}

void Permits::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void Permits::wait_started() {
  wait("the other workers to join", [this] { return started_; });
}

void Permits::wait_admitted(std::uint64_t sequence, std::uint64_t run) {
  wait("all workers to show the same program",
       [&] { return admitted_ > sequence || ended_runs_ < run; });
  const std::lock_guard lock(mutex_);
  if (admitted_ <= sequence) throw Error(Errc::program_divergence, overtaken(run));
}

void Permits::wait_granted(std::uint64_t step) {
  wait("the lease of the next steps", [&] { return granted_ > step; });
}

bool Permits::wait_stopped(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return stopped_ || cancelled_; });
}

std::uint64_t Permits::granted() const {
  const std::lock_guard lock(mutex_);
  return granted_;
}

std::optional<ProgramSeen> Permits::begin_run(std::uint64_t run, std::uint32_t program,
                                              std::uint64_t step) {
  const std::lock_guard lock(mutex_);
  throw_if_cancelled();
  begun_runs_ = run;
  begun_step_ = step;
  recent_.push_back(program);
  if (recent_.size() > kRecentRuns) recent_.pop_front();
  if (run > ended_runs_) throw Error(Errc::program_divergence, overtaken(run));
  return run == asked_run_ ? contradiction(program) : std::nullopt;
}

std::optional<ProgramSeen> Permits::asked(std::uint32_t sequence, std::uint64_t run) {
  const std::lock_guard lock(mutex_);
  asked_sequence_ = sequence;
  asked_run_ = run;
  if (run > begun_runs_ || begun_runs_ - run >= recent_.size()) return {};
  return contradiction(recent_[recent_.size() - 1 - (begun_runs_ - run)]);
}

std::optional<ProgramSeen> Permits::contradiction(std::uint32_t program) const {
  if (program >= asked_sequence_) return {};
  ProgramSeen known = shown_.at(program);
  known.sequence = asked_sequence_;
  known.run = asked_run_;
  return known;
}

void Permits::shown(ProgramSeen program) {
  const std::lock_guard lock(mutex_);
  shown_.push_back(std::move(program));
}

std::string Permits::overtaken(std::uint64_t run) const {
  return fmt::format(
      "worker {} ended its loop after {} programs, this worker runs number {}: every worker's loop "
      "must run the same programs",
      ended_worker_, ended_runs_, run);
}

bool Permits::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

}  // namespace weft
