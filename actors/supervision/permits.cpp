#include "actors/supervision/permits.hpp"

#include <utility>

#include <weft/tensor/error.hpp>
#include <weft/train/train_context.hpp>

namespace weft {

namespace {

using Verdict = WorkerState::Verdict;

/// The time that a worker whose loop has failed waits for the trainer's verdict.
constexpr std::chrono::seconds kFailedPatience{30};

}  // namespace

template <typename Change>
auto Permits::change(const Change& change) {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
  return change();
}

template <typename Predicate>
void Permits::wait(const char* what, Predicate predicate) {
  std::unique_lock lock(mutex_);
  const bool held =
      changed_.wait_for(lock, timeout_, [&] { return state_.is_over() || predicate(); });
  throw_if_over();
  if (!held) {
    fail(Errc::timeout, "waited {} s for the trainer to {} (backend.timeout_s)",
         static_cast<double>(timeout_.count()) / 1000, what);
  }
}

void Permits::throw_if_over() const {
  if (!state_.is_over()) return;
  throw Error(state_.cancelled() ? Errc::cancelled : Errc::peer_lost, state_.reason());
}

void Permits::set_timeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  timeout_ = timeout;
}

void Permits::start(const Start& start) {
  change([&] {
    state_.start(start);
    commands_.start(start.step, start.commands);
  });
}

void Permits::unwind(std::string reason) {
  change([&] { state_.unwind(std::move(reason)); });
}

void Permits::admit(std::uint64_t programs) {
  change([&] { state_.admit(programs); });
}

void Permits::grant(std::uint64_t steps) {
  change([&] { state_.grant(steps); });
}

std::uint64_t Permits::pause() {
  return change([&] { return state_.pause(); });
}

void Permits::end_at(std::uint64_t step) {
  change([&] { state_.end_at(step); });
}

std::uint64_t Permits::hold() {
  return change([&] { return commands_.hold(); });
}

void Permits::let_go(std::vector<StoredCommand> commands) {
  change([&] { commands_.let_go(std::move(commands)); });
}

void Permits::wires(WireAddresses all) {
  change([&] { wires_ = std::move(all); });
}

std::optional<LoopEnded> Permits::read_elsewhere(const ReadElsewhere& read) {
  return change([&]() -> std::optional<LoopEnded> {
    auto missed = commands_.read_elsewhere(read);
    if (!missed) return {};
    return state_.uneven(std::move(*missed));
  });
}

void Permits::join_parts(std::uint64_t generation, std::uint64_t save) {
  change([&] { state_.join_parts(generation, save); });
}

void Permits::drop_parts(std::uint64_t generation, std::uint64_t save) {
  change([&] {
    state_.drop_parts(generation, save);
    if (state_.drops_parts(part_)) drops_part_ = true;
  });
}

void Permits::saved(SaveEnded ended) {
  change([&] { state_.saved(std::move(ended)); });
}

std::optional<ProgramSeen> Permits::asked(std::uint32_t sequence, std::uint64_t run) {
  return change([&] { return state_.asked(sequence, run); });
}

std::optional<LoopEnded> Permits::peer_ended(int worker, std::uint64_t runs, std::string last) {
  return change([&] { return state_.peer_ended(worker, runs, std::move(last)); });
}

void Permits::cancel(std::string reason) {
  change([&] { state_.cancel(std::move(reason)); });
}

void Permits::stop() {
  change([&] { state_.stop(); });
}

Start Permits::wait_started(std::uint64_t after) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_.cancelled() || state_.started(after) != nullptr; });
  if (state_.cancelled()) throw Error(Errc::cancelled, state_.reason());
  return *state_.started(after);
}

WireAddresses Permits::wait_wires(std::uint64_t generation) {
  wait("tell where the chips of other hosts can be reached",
       [&] { return wires_.generation == generation; });
  const std::lock_guard lock(mutex_);
  return wires_;
}

void Permits::wait_over() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_.is_over(); });
  throw Error(state_.cancelled() ? Errc::cancelled : Errc::peer_lost, state_.reason());
}

void Permits::wait_admitted(std::uint64_t sequence, std::uint64_t run) {
  auto admission = WorkerState::Admission::waits;
  wait("confirm that all workers run the same program", [&] {
    admission = state_.admission(sequence, run);
    return admission != WorkerState::Admission::waits;
  });
  if (admission == WorkerState::Admission::admitted) return;
  const std::lock_guard lock(mutex_);
  throw Error(Errc::uneven_loops, state_.overtaken(run, state_.last_shown_site()));
}

void Permits::begin_step(std::uint64_t step) {
  auto begin = WorkerState::StepBegin::waits;
  std::optional<std::string> missed;
  wait("grant the lease of the next steps", [&] {
    if (!commands_.may_begin(step)) return false;
    begin = state_.begin_step(step);
    if (begin == WorkerState::StepBegin::begun) missed = commands_.begun(step);
    return begin != WorkerState::StepBegin::waits;
  });
  if (missed) throw Error(Errc::uneven_loops, *missed);
  if (begin == WorkerState::StepBegin::leaves) throw Preempted();
}

bool Permits::reached_preemption() {
  std::function<void()> tell;
  bool reached = false;
  {
    const std::lock_guard lock(mutex_);
    if (state_.asks()) tell = std::exchange(on_first_question_, nullptr);
    reached = state_.reached_preemption();
  }
  if (tell) tell();
  return reached;
}

bool Permits::knows_preemption() const {
  const std::lock_guard lock(mutex_);
  return state_.knows_preemption();
}

bool Permits::is_ending() const {
  const std::lock_guard lock(mutex_);
  return state_.is_ending();
}

bool Permits::wait_command(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  bool is_to_leave = false;
  const bool has_come = changed_.wait_for(lock, time, [&] {
    return state_.is_over() || commands_.has_due() || state_.end_here(is_to_leave);
  });
  throw_if_over();
  if (is_to_leave) throw Preempted();
  return has_come;
}

SaveEnded Permits::wait_saved(std::uint64_t save) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return state_.is_over() || state_.save_ended(save) != nullptr; });
  throw_if_over();
  return *state_.save_ended(save);
}

const std::atomic<bool>& Permits::begin_part(std::uint64_t save) {
  const std::lock_guard lock(mutex_);
  part_ = save;
  has_left_part_ = false;
  drops_part_ = state_.drops_parts(save);
  return drops_part_;
}

void Permits::leave_part() {
  change([&] { drops_part_ = has_left_part_ = true; });
}

bool Permits::wait_parts(std::uint64_t save) {
  std::unique_lock lock(mutex_);
  const auto has_ended = [&] {
    return has_left_part_ || state_.is_over() || state_.save_ended(save) != nullptr;
  };
  changed_.wait(lock, [&] { return has_ended() || state_.may_join_parts(save); });
  return !has_ended();
}

std::optional<SaveEnded> Permits::wait_end(std::uint64_t save) {
  std::unique_lock lock(mutex_);
  const SaveEnded* ended = nullptr;
  changed_.wait(lock, [&] {
    ended = state_.save_ended(save);
    return ended != nullptr || has_left_part_ || state_.is_over();
  });
  return ended != nullptr ? std::optional(*ended) : std::nullopt;
}

std::optional<std::uint64_t> Permits::lease_to_ask(std::uint64_t step) const {
  const std::lock_guard lock(mutex_);
  return state_.lease_to_ask(step);
}

std::optional<LoopEnded> Permits::loop_ended(LoopEnded ended) {
  const std::lock_guard lock(mutex_);
  return state_.loop_ended(std::move(ended));
}

Verdict Permits::wait_verdict() {
  std::unique_lock lock(mutex_);
  const auto has_come = [this] { return state_.verdict() != Verdict::waits; };
  if (state_.verdict_without_trainer() == Verdict::leaves_well) {
    changed_.wait(lock, has_come);
  } else if (!changed_.wait_for(lock, kFailedPatience, has_come)) {
    return Verdict::leaves_badly;
  }
  return state_.verdict();
}

std::optional<ProgramSeen> Permits::begin_run(std::uint64_t run, std::uint32_t program,
                                              std::uint64_t step, const RunSite& site) {
  const std::lock_guard lock(mutex_);
  throw_if_over();
  auto begin = state_.begin_run(run, program, step, site);
  if (begin.is_overtaken) {
    throw Error(Errc::uneven_loops, state_.overtaken(run, to_string(site)));
  }
  return std::move(begin.contradicts);
}

void Permits::shown(ProgramSeen program) {
  const std::lock_guard lock(mutex_);
  state_.shown(std::move(program));
}

bool Permits::cancelled() const {
  const std::lock_guard lock(mutex_);
  return state_.cancelled();
}

bool Permits::unwinding() const {
  const std::lock_guard lock(mutex_);
  return state_.standing() == WorkerState::Standing::unwinding;
}

std::uint64_t Permits::generation() const {
  const std::lock_guard lock(mutex_);
  return state_.generation();
}

}  // namespace weft
