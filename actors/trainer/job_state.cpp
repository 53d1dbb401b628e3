#include <weft/actors/trainer/job_state.hpp>

#include <algorithm>
#include <cstring>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft {
namespace {

/// " at step 204, in all_reduce #812 'fc1.weight.grad'".
std::string describe(const Whereabouts& where) {
  return fmt::format(" at step {}{}", where.step,
                     where.collective.empty() ? "" : ", in " + where.collective);
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("signal {} (SIG{})", signal, name)
                         : fmt::format("signal {}", signal);
}

struct Difference {
  int line = 0;
  std::string first, second;
};

/// The first line in which two listings differ.
Difference first_difference(const std::string& first, const std::string& second) {
  std::istringstream a(first), b(second);
  Difference difference;
  for (;;) {
    ++difference.line;
    const bool more_a = static_cast<bool>(std::getline(a, difference.first));
    const bool more_b = static_cast<bool>(std::getline(b, difference.second));
    if (!more_a) difference.first = "(end)";
    if (!more_b) difference.second = "(end)";
    if (!more_a || !more_b || difference.first != difference.second) return difference;
  }
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? text : text.substr(begin);
}

}  // namespace

JobState::JobState(int num_workers, std::uint64_t lease_steps)
    : workers_(static_cast<std::size_t>(num_workers)), lease_steps_(lease_steps) {}

JobState::Worker& JobState::at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
const JobState::Worker& JobState::at(int worker) const {
  return workers_[static_cast<std::size_t>(worker)];
}

bool JobState::takes_part(int worker) const {
  return worker >= 0 && worker < static_cast<int>(workers_.size()) && at(worker).joined;
}

std::string JobState::name(int worker) const {
  return fmt::format("worker {} (pid {})", worker, at(worker).pid);
}

void JobState::started(int worker, int pid) { at(worker).pid = pid; }

std::optional<std::string> JobState::refuse_join(int worker) const {
  if (worker < 0 || worker >= static_cast<int>(workers_.size())) {
    return fmt::format("worker {} can't join: this job has workers 0 to {}", worker,
                       workers_.size() - 1);
  }
  if (at(worker).joined) {
    return fmt::format("{} has joined already", name(worker));
  }
  if (phase_ != JobPhase::joining) return "the job is over";
  return {};
}

Actions JobState::joined(int worker, int pid) {
  auto& joining = at(worker);
  joining.joined = true;
  joining.pid = pid;
  if (!std::ranges::all_of(workers_, &Worker::joined)) return {};
  phase_ = JobPhase::running;
  granted_ = lease_steps_;
  return {{.kind = Action::Kind::grant, .number = granted_}, {.kind = Action::Kind::start}};
}

Actions JobState::program(const ProgramSeen& program) {
  if (phase_ != JobPhase::running || !takes_part(program.worker)) return {};
  auto& seen = pending_[program.sequence];
  if (!seen.empty() && (seen.front().fingerprint_low != program.fingerprint_low ||
                        seen.front().fingerprint_high != program.fingerprint_high)) {
    return compare(seen.front(), program);
  }
  seen.push_back(program);
  if (seen.size() < workers_.size()) {
    if (seen.size() > 1) return {};
    return {{.kind = Action::Kind::asked,
             .worker = program.worker,
             .number = program.run,
             .sequence = program.sequence}};
  }
  pending_.erase(program.sequence);
  return {{.kind = Action::Kind::admit, .number = program.sequence + std::uint64_t{1}}};
}

Actions JobState::compare(const ProgramSeen& first, const ProgramSeen& second) {
  const auto [line, a, b] = first_difference(first.text, second.text);
  return fail_with({.code = Errc::program_divergence,
                    .message = fmt::format(
                        "{} and {} traced different programs for run {}; the first line that "
                        "differs is {}: worker {}: `{}`, worker {}: `{}`; every worker's loop "
                        "must do the same tensor operations in the same order",
                        name(first.worker), name(second.worker), first.run, line, first.worker,
                        trimmed(a), second.worker, trimmed(b)),
                    .worker = second.worker,
                    .pid = at(second.worker).pid});
}

Actions JobState::lease_wanted(std::uint64_t step) {
  if (phase_ != JobPhase::running || step + lease_steps_ <= granted_) return {};
  granted_ = step + lease_steps_;
  return {{.kind = Action::Kind::grant, .number = granted_}};
}

Actions JobState::loop_ended(const LoopEnded& ended, const std::optional<Missing>& missing) {
  if (over() || !takes_part(ended.worker)) return {};
  auto& worker = at(ended.worker);
  worker.ended = ended;
  if (missing && takes_part(missing->worker)) {
    return fail_with(
        {.code = static_cast<Errc>(ended.error),
         .message = fmt::format("{} did not come{}: {}", name(missing->worker),
                                missing->how.empty() ? "" : ", it " + missing->how, ended.message),
         .worker = missing->worker,
         .pid = at(missing->worker).pid,
         .step = ended.step});
  }
  if (ended.error != 0) {
    return fail_with({.code = static_cast<Errc>(ended.error),
                      .message = fmt::format("{} failed at step {}: {}", name(ended.worker),
                                             ended.step, ended.message),
                      .worker = ended.worker,
                      .pid = worker.pid,
                      .step = ended.step});
  }
  for (const auto& other : workers_) {
    if (!other.ended || other.ended->runs == ended.runs) continue;
    return fail_with(
        {.code = Errc::program_divergence,
         .message = fmt::format("{} ended its loop after {} programs, {} after {}: every worker's "
                                "loop must run the same programs",
                                name(ended.worker), ended.runs, name(other.ended->worker),
                                other.ended->runs),
         .worker = ended.worker,
         .pid = worker.pid,
         .step = ended.step});
  }
  Actions actions{{.kind = Action::Kind::loop_ended, .worker = ended.worker, .number = ended.runs}};
  if (std::ranges::all_of(workers_, [](const Worker& w) { return w.ended.has_value(); })) {
    phase_ = JobPhase::succeeded;
    actions.push_back({.kind = Action::Kind::stop});
  }
  return actions;
}

Actions JobState::process_ended(const ProcessEnded& ended, const Whereabouts& where) {
  auto& worker = at(ended.worker);
  worker.gone = true;
  if (over() || worker.ended) return {};
  const std::string how = ended.signal != 0 ? "was killed by " + signal_name(ended.signal)
                                            : fmt::format("exited with code {}", ended.exit_code);
  const std::string when = worker.joined ? describe(where) : " before it joined";
  return fail_with({.code = Errc::peer_lost,
                    .message = fmt::format("{} {}{}", name(ended.worker), how, when),
                    .worker = ended.worker,
                    .pid = worker.pid,
                    .signal = ended.signal,
                    .exit_code = ended.exit_code,
                    .step = where.step,
                    .collective = where.collective});
}

Actions JobState::link_lost(int worker, const Whereabouts& where) {
  const auto& lost = at(worker);
  if (over() || lost.gone || lost.ended) return {};
  return fail_with({.code = Errc::peer_lost,
                    .message = fmt::format("{} lost its control connection{}, and its process "
                                           "has not been seen to end: it ends with the job",
                                           name(worker), describe(where)),
                    .worker = worker,
                    .pid = lost.pid,
                    .step = where.step,
                    .collective = where.collective});
}

Actions JobState::join_deadline(double timeout_s) {
  if (phase_ != JobPhase::joining) return {};
  std::vector<std::string> missing;
  int first = -1;
  for (int w = 0; w < static_cast<int>(workers_.size()); ++w) {
    if (at(w).joined) continue;
    missing.push_back(name(w));
    if (first < 0) first = w;
  }
  return fail_with(
      {.code = Errc::timeout,
       .message = fmt::format("{} of {} workers have not joined within backend.timeout_s = {}: {}; "
                              "what runs before fit() in main() runs in every worker too",
                              missing.size(), workers_.size(), timeout_s, fmt::join(missing, ", ")),
       .worker = first,
       .pid = at(first).pid});
}

Actions JobState::cancel(Errc code, std::string message) {
  if (over()) return {};
  return fail_with({.code = code, .message = std::move(message)});
}

Actions JobState::fail_with(Failure failure) {
  WEFT_CHECK(!over());
  phase_ = JobPhase::failed;
  failure_ = std::move(failure);
  return {{.kind = Action::Kind::cancel, .text = failure_->message}};
}

}  // namespace weft
