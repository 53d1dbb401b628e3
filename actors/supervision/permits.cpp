#include "actors/supervision/permits.hpp"

#include <utility>

#include <weft/error.hpp>
#include <weft/train_context.hpp>

namespace weft {
namespace {

/// Runs that one worker may be ahead of another by: two under way, and what needs no other worker.
constexpr std::size_t kRecentRuns = 4096;

}  // namespace

template <typename Predicate>
void Permits::wait(const char* what, Predicate predicate) {
  std::unique_lock lock(mutex_);
  const bool held =
      changed_.wait_for(lock, timeout_, [&] { return cancelled_ || unwinding_ || predicate(); });
  throw_if_cancelled();
  if (!held) {
    fail(Errc::timeout, "waited {} s for the trainer: {} (backend.timeout_s)",
         static_cast<double>(timeout_.count()) / 1000, what);
  }
}

void Permits::throw_if_cancelled() const {
  if (cancelled_) throw Error(Errc::cancelled, reason_);
  if (unwinding_) throw Error(Errc::peer_lost, reason_);
}

void Permits::set_timeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

void Permits::start(const Start& start) {
  {
    const std::lock_guard lock(mutex_);
    unwinding_ = false;
    now_ = {};
    now_.started = start;
    now_.step = start.step;
  }
  changed_.notify_all();
}

void Permits::unwind(std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_ || cancelled_) return;
    unwinding_ = true;
    reason_ = std::move(reason);
  }
  changed_.notify_all();
}

void Permits::admit(std::uint64_t programs) {
  {
    const std::lock_guard lock(mutex_);
    now_.admitted = std::max(now_.admitted, programs);
  }
  changed_.notify_all();
}

void Permits::grant(std::uint64_t steps) {
  {
    const std::lock_guard lock(mutex_);
    now_.granted = std::max(now_.granted, steps);
  }
  changed_.notify_all();
}

std::uint64_t Permits::pause() {
  const std::lock_guard lock(mutex_);
  now_.paused = true;
  return now_.step + 1;
}

void Permits::end_at(std::uint64_t step) {
  {
    const std::lock_guard lock(mutex_);
    now_.end_at = step;
    now_.granted = std::numeric_limits<std::uint64_t>::max();  // its grace is the limit now
  }
  changed_.notify_all();
}

std::optional<LoopEnded> Permits::loop_ended(int worker, std::uint64_t runs, std::string last) {
  const std::lock_guard lock(mutex_);
  if (runs < now_.ended_runs) {
    now_.ended_runs = runs;
    now_.ended_worker = worker;
    now_.ended_last = std::move(last);
    changed_.notify_all();
  }
  if (now_.begun_runs <= now_.ended_runs) return {};
  return LoopEnded{.step = now_.begun_step,
                   .runs = now_.begun_runs,
                   .error = static_cast<std::uint8_t>(Errc::program_divergence),
                   .message = overtaken(now_.begun_runs, to_string(now_.begun_site)),
                   .last = to_string(now_.begun_site)};
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

Start Permits::wait_started(std::uint64_t after) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return cancelled_ || (now_.started && now_.started->generation > after); });
  if (cancelled_) throw Error(Errc::cancelled, reason_);
  return *now_.started;
}

void Permits::wait_admitted(std::uint64_t sequence, std::uint64_t run) {
  wait("all workers to show the same program",
       [&] { return now_.admitted > sequence || now_.ended_runs < run; });
  const std::lock_guard lock(mutex_);
  if (now_.admitted > sequence) return;
  const std::string site = now_.shown.empty() ? "" : now_.shown.back().site;
  throw Error(Errc::program_divergence, overtaken(run, site));
}

void Permits::begin_step(std::uint64_t step) {
  bool leaves = false;
  wait("the lease of the next steps", [&] {
    const bool may = now_.end_at || (step < now_.granted && (!now_.paused || step <= now_.step));
    if (may) now_.step = step;
    const bool asks = now_.has_asked || (now_.started && now_.started->asks);
    leaves = may && now_.end_at && step > *now_.end_at && !asks;
    if (leaves) now_.knows_preemption = true;
    return may;
  });
  if (leaves) throw Preempted();
}

bool Permits::reached_preemption() {
  std::function<void()> tell;
  bool reached = false;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(now_.has_asked, true)) tell = std::exchange(on_first_question_, nullptr);
    reached = now_.knows_preemption = now_.end_at && now_.step >= *now_.end_at;
  }
  if (tell) tell();
  return reached;
}

bool Permits::knows_preemption() const {
  const std::lock_guard lock(mutex_);
  return now_.knows_preemption;
}

Permits::Verdict Permits::wait_verdict(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return stopped_ || cancelled_ || unwinding_; });
  if (cancelled_) return Verdict::cancelled;
  return unwinding_ ? Verdict::unwound : Verdict::stopped;
}

std::uint64_t Permits::granted() const {
  const std::lock_guard lock(mutex_);
  return now_.granted;
}

std::optional<ProgramSeen> Permits::begin_run(std::uint64_t run, std::uint32_t program,
                                              std::uint64_t step, const RunSite& site) {
  const std::lock_guard lock(mutex_);
  throw_if_cancelled();
  now_.begun_runs = run;
  now_.begun_step = step;
  now_.begun_site = site;
  now_.recent.push_back(program);
  if (now_.recent.size() > kRecentRuns) now_.recent.pop_front();
  if (run > now_.ended_runs) {
    throw Error(Errc::program_divergence, overtaken(run, to_string(site)));
  }
  return run == now_.asked_run ? contradiction(program) : std::nullopt;
}

std::optional<ProgramSeen> Permits::asked(std::uint32_t sequence, std::uint64_t run) {
  const std::lock_guard lock(mutex_);
  now_.asked_sequence = sequence;
  now_.asked_run = run;
  if (run > now_.begun_runs || now_.begun_runs - run >= now_.recent.size()) return {};
  return contradiction(now_.recent[now_.recent.size() - 1 - (now_.begun_runs - run)]);
}

std::optional<ProgramSeen> Permits::contradiction(std::uint32_t program) const {
  if (program >= now_.asked_sequence) return {};
  ProgramSeen known = now_.shown.at(program);
  known.sequence = now_.asked_sequence;
  known.run = now_.asked_run;
  if (now_.asked_run == now_.begun_runs) known.site = to_string(now_.begun_site);
  return known;
}

void Permits::shown(ProgramSeen program) {
  const std::lock_guard lock(mutex_);
  now_.shown.push_back(std::move(program));
}

std::string Permits::overtaken(std::uint64_t run, const std::string& site) const {
  return fmt::format(
      "worker {} ended its loop after {} programs{}, this worker runs number {}{}: every worker's "
      "loop must run the same programs{}",
      now_.ended_worker, now_.ended_runs,
      now_.ended_last.empty() ? "" : ", the last for " + now_.ended_last, run,
      site.empty() ? "" : " for " + site, is_read(site) ? kReadsAreCollective : "");
}

bool Permits::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

bool Permits::unwinding() const {
  const std::lock_guard lock(mutex_);
  return unwinding_;
}

std::uint64_t Permits::generation() const {
  const std::lock_guard lock(mutex_);
  return now_.started ? now_.started->generation : 0;
}

}  // namespace weft
