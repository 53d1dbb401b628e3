#include "actors/job/validate_run.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr double kGraceSecondsMax = 86'400;

void check_checkpoints(const RunConfig& run, bool has_mesh) {
  const CheckpointConfig& checkpoint = run.checkpoint;
  if (checkpoint.save_interval < 0) {
    fail(Errc::invalid_argument,
         "run.checkpoint.save_interval = {}: expected steps, or 0 to save on preemption only",
         checkpoint.save_interval);
  }
  if (checkpoint.max_to_keep < 0) {
    fail(Errc::invalid_argument,
         "run.checkpoint.max_to_keep = {}: expected 1 or more, or 0 to keep all",
         checkpoint.max_to_keep);
  }
  if (checkpoint.keep_every < 0) {
    fail(Errc::invalid_argument, "run.checkpoint.keep_every = {}: expected steps, or 0 for none",
         checkpoint.keep_every);
  }
  if (run.resume.empty()) {
    fail(Errc::invalid_argument,
         "run.resume = \"\": expected \"never\", \"auto\" or the path of a checkpoint");
  }
  if (run.resume == "auto" && checkpoint.path.empty()) {
    fail(Errc::invalid_argument,
         "run.resume = \"auto\" needs run.checkpoint.path: the folder of checkpoints that the runs "
         "share; without it each run has a folder of its own");
  }
  if (run.resume_partial && run.resume == "never") {
    fail(Errc::invalid_argument,
         "run.resume_partial = true with run.resume = \"never\": resume_partial is for state "
         "that a checkpoint lacks; set run.resume to \"auto\" or a checkpoint's path, or leave "
         "it out");
  }
  if (run.resume != "never" && !has_mesh) {
    fail(Errc::invalid_argument,
         "run.resume = \"{}\" with backend.backend = Backend::none: checkpoints need the chips "
         "of a mesh; set run.resume to \"never\", or backend.backend to Backend::spmd",
         run.resume);
  }
}

void check_rescue(const RunConfig& run, bool has_mesh) {
  if (!(run.keep_for_rescue_s >= 0) || !std::isfinite(run.keep_for_rescue_s)) {
    fail(Errc::invalid_argument,
         "run.keep_for_rescue_s = {}: expected seconds, or 0 to leave nothing in memory",
         run.keep_for_rescue_s);
  }
  if (run.keep_for_rescue_s > 0 && run.failure.state_versions == 1) {
    fail(Errc::invalid_argument,
         "run.keep_for_rescue_s = {} with run.failure.state_versions = 1: an interrupted step "
         "leaves no complete state; set state_versions to 2, or keep_for_rescue_s to 0",
         run.keep_for_rescue_s);
  }
  if (run.keep_for_rescue_s > 0 && !has_mesh) {
    fail(Errc::invalid_argument,
         "run.keep_for_rescue_s = {} with backend.backend = Backend::none: checkpoints need "
         "the chips of a mesh; set it to 0, or backend.backend to Backend::spmd",
         run.keep_for_rescue_s);
  }
}

}  // namespace

void check_run(const RunConfig& run, bool has_mesh) {
  const bool good_name = std::ranges::all_of(run.name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
  if (!good_name || run.name.size() > 64 || run.name.starts_with('.')) {
    fail(Errc::invalid_argument,
         "run.name = \"{}\": expected up to 64 letters, digits, '-', '_' and '.', not "
         "beginning with '.', because a folder gets this name",
         run.name);
  }
  if (run.storage_path.empty()) {
    fail(Errc::invalid_argument,
         "run.storage_path = \"\": expected a folder, such as \"~/weft_runs\"");
  }
  check_checkpoints(run, has_mesh);
  if (run.check_replicas_every < 0) {
    fail(Errc::invalid_argument,
         "run.check_replicas_every = {}: expected a number of steps, 1 or more, or 0 to compare "
         "nothing",
         run.check_replicas_every);
  }
  if (run.check_replicas_every > 0 && !has_mesh) {
    fail(Errc::invalid_argument,
         "run.check_replicas_every = {} with backend.backend = Backend::none: without a mesh no "
         "two chips hold the same tensors; set it to 0, or backend.backend to Backend::spmd",
         run.check_replicas_every);
  }
  if (run.check_replicas_every > 0 && run.failure.state_versions == 1) {
    fail(Errc::invalid_argument,
         "run.check_replicas_every = {} with run.failure.state_versions = 1: the check "
         "compares the state that state_versions = 2 keeps; set state_versions to 2, or "
         "check_replicas_every to 0",
         run.check_replicas_every);
  }
  check_rescue(run, has_mesh);
  if (!(run.grace_s >= 0) || run.grace_s > kGraceSecondsMax) {
    fail(Errc::invalid_argument,
         "run.grace_s = {}: expected seconds, from 0 (SIGTERM cancels the job) to {}", run.grace_s,
         kGraceSecondsMax);
  }
  for (const auto& callback : run.callbacks) {
    if (!callback) fail(Errc::invalid_argument, "run.callbacks holds a null pointer");
  }
}

void check_kept_state(const RunConfig& run, const Target& target) {
  if (target.keeps_memory) return;
  if (run.failure.max_failures != 0 && run.failure.state_versions == 2) {
    fail(Errc::invalid_argument,
         "run.failure.max_failures = {} with run.failure.state_versions = 2: the memory of {} "
         "chips is lost when their process ends; set state_versions to 1, so that the job "
         "continues from its last checkpoint, or max_failures to 0",
         run.failure.max_failures, target.name);
  }
  if (run.keep_for_rescue_s > 0) {
    fail(Errc::invalid_argument,
         "run.keep_for_rescue_s = {}: the memory of {} chips is lost when their process ends; "
         "set it to 0, and save checkpoints (run.checkpoint)",
         run.keep_for_rescue_s, target.name);
  }
}

}  // namespace weft
