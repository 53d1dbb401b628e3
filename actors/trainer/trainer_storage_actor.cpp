// The part of the trainer's actor that handles checkpoints: where the hosts store them, and from
// which checkpoint the job continues.

#include <fmt/format.h>

#include "actors/process/log.hpp"
#include "actors/trainer/trainer_state_actor.hpp"

namespace weft::trainer_actor {
namespace {

WholeCheckpoint whole(const ResumePoint& point) {
  return {.step = point.step, .path = point.path, .is_saved = true};
}

/// Makes the job continue from the newest offered checkpoint that all hosts have. Returns the
/// reason if there is no such checkpoint.
std::optional<std::string> choose_resume(Self self, const std::vector<OfferedCheckpoint>& offered) {
  auto& state = state_of(self);
  const JobSpec& spec = state.options.spec;
  if (offered.empty()) return state.folders->refuse_begin(0);
  const auto common = state.folders->first_common(offered.size());
  if (!common) return state.folders->missing_text(offered);
  const ResumePoint& point = state.options.resumes.at(*common);
  if (spec.resume.kind != ResumeFrom::Kind::newest) {
    if (auto refusal = state.folders->refuse_begin(point.step)) return refusal;
  }
  auto& checkpoints = state.job->checkpoints();
  if (checkpoints.last_path() != point.path) {
    logger("weft.trainer")
        ->warn("{}; it continues from an earlier one, {}", state.folders->missing_text(offered),
               point.path);
    state.desk->begin_with(point.commands);
    state.options.assignment.seed = point.seed;
    state.saved_told = point.step;
  }
  WholeCheckpoint chosen = whole(point);
  chosen.copies = state.folders->copies(offered, *common);
  checkpoints.resume_from(std::move(chosen));
  return {};
}

/// Adds a host's folder of checkpoints. Returns the reason if the job can't continue with that
/// folder.
std::optional<std::string> use_folder(Self self, const HostFolder& folder) {
  auto& state = state_of(self);
  const bool was_known = state.folders->kind() != HostStorage::unknown;
  if (auto refusal = state.folders->add(folder)) return refusal;
  if (!state.folders->are_per_host()) {
    if (!was_known) {
      logger("weft.trainer")->info("the hosts share the folder of checkpoints");
    }
    return {};
  }
  logger("weft.trainer")
      ->warn(
          "host {} ({}) doesn't share host 0's folder of checkpoints, and stores its own copies "
          "in {}",
          folder.host, folder.machine, folder.path);
  const auto& offered = state.offered[folder.host];
  auto& checkpoints = state.job->checkpoints();
  checkpoints.store_per_host(state.options.spec.place.count);
  if (!has_begun(*state.job)) return choose_resume(self, offered);
  const bool is_last = !offered.empty() && offered.front().path == checkpoints.last_path();
  checkpoints.set_copy(folder.host, is_last ? folder.copies.at(0) : "");
  return {};
}

}  // namespace

JobTerms terms_of(const TrainerLinkOptions& options) {
  const JobSpec& spec = options.spec;
  std::optional<WholeCheckpoint> resume;
  if (!options.resumes.empty()) resume = whole(options.resumes.front());
  return {.num_workers = spec.num_joins(),
          .num_hosts = spec.place.count,
          .recovery = spec.recovery,
          .keeps_state = spec.keeps_state,
          .resume = std::move(resume),
          .timeout_s = spec.timeout_s,
          .grace_s = spec.grace_s,
          .any_process_joins = options.any_process_joins,
          .has_processes = spec.num_workers > 0};
}

std::vector<OfferedCheckpoint> offer(Self self, int host) {
  auto& state = state_of(self);
  std::vector<OfferedCheckpoint> offered;
  if (!has_begun(*state.job)) {
    for (const ResumePoint& point : state.options.resumes) {
      offered.push_back({.step = point.step, .id = point.copy_id, .path = point.path});
    }
  } else if (const auto& last = state.job->checkpoints().last(); last && !last->copies.empty()) {
    try {
      offered.push_back({.step = last->step, .id = id_of_copy(last->path), .path = last->path});
    } catch (const Error& error) {
      logger("weft.trainer")->warn("can't offer a checkpoint to host {}: {}", host, error.what());
    }
  }
  return state.offered[host] = offered;
}

caf::result<bool> take_folder(Self self, const HostFolder& folder, const AgentActor& agent) {
  auto& state = state_of(self);
  if (agent == nullptr || state.hosts->find(agent.address()) != folder.host ||
      folder.copies.size() != state.offered[folder.host].size()) {
    return caf::make_error(caf::sec::invalid_argument, std::string("this host hasn't joined"));
  }
  const auto refusal = use_folder(self, folder);
  if (!refusal) return true;
  if (!has_begun(*state.job)) carry_out(self, state.job->cancel(Errc::unavailable, *refusal));
  return caf::make_error(caf::sec::invalid_argument, *refusal);
}

void complete(Self self, Start& start) {
  auto& state = state_of(self);
  add_commands(self, start);
  start.folders = state.folders->paths();
  start.seed = state.options.assignment.seed;
}

void tell_whole_checkpoint(Self self) {
  auto& state = state_of(self);
  const auto& whole = state.job->checkpoints().last();
  if (!whole || whole->step <= state.saved_told) return;
  state.saved_told = whole->step;
  state.options.on_event(trainer_event::Saved{.step = whole->step, .path = whole->path});
}

void save_ended(Self self, const SaveEnded& ended) {
  auto& state = state_of(self);
  if (ended.error == 0 && ended.worker == 0) {
    logger("weft.trainer")->info("step {} is saved in {}", ended.step, ended.path);
  }
  carry_out(self, state.job->checkpoints().save_ended(ended));
  tell_whole_checkpoint(self);
}

}  // namespace weft::trainer_actor
