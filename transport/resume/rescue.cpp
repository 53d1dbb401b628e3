#include "transport/resume/rescue.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/remote/storages.hpp"
#include "transport/job/job_folder.hpp"
#include "transport/job/remains.hpp"
#include "transport/resume/dead_memory.hpp"
#include "transport/resume/rescue_note.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/part_table.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The longest wait for another rescue that has locked the folder of checkpoints.
constexpr std::chrono::minutes kFolderPatience{10};
constexpr std::chrono::milliseconds kFolderInterval{100};
/// The beginning of the owner's name in the folder's lock if the owner is a rescue. Another rescue
/// then waits for it.
constexpr std::string_view kOwner = "weft rescue (pid ";

RunCard read_card(const std::string& root, const std::string& job) {
  return decode_run_card(read_file_bytes(run_card_in(root, job), kRunCardBytesMax));
}

/// Takes the job's lock, which keeps the job from being swept. Getting it shows that the trainer is
/// dead.
JobLock hold(const DeadJob& dead) {
  JobLock lock = JobLock::try_take(dead.root, dead.memory_id);
  if (!lock)
    fail(Errc::unavailable, "job {} is alive, or another process is rescuing it", dead.job);
  return lock;
}

/// Returns the control root with the job's run card; "" if there is none.
std::string root_of_card(const JobRemains& remains) {
  const auto root = std::ranges::find_if(remains.roots, [&](const std::string& one) {
    return ::access(run_card_in(one, remains.job).c_str(), F_OK) == 0;
  });
  return root == remains.roots.end() ? "" : *root;
}

DeadJob dead_job_of(const JobRemains& remains) {
  if (remains.life != JobLife::dead && remains.life != JobLife::kept) {
    fail(Errc::unavailable, "job {} is {}: {}", remains.job, to_string(remains.life), remains.why);
  }
  const std::string root = root_of_card(remains);
  if (root.empty()) {
    fail(Errc::not_found,
         "job {} has no run card, because it was not to keep its state after its end: "
         "run.failure.max_failures = 0 and run.keep_for_rescue_s = 0",
         remains.job);
  }
  const RunCard card = read_card(root, remains.job);
  return {.job = card.job.empty() ? remains.job : card.job,
          .memory_id = remains.job,
          .root = root,
          .card = card,
          .step = DeadMemory(remains.job, card).step()};
}

/// Returns whether these remains are a host's memory of this job.
bool is_part_of(const JobRemains& remains, std::string_view job) {
  try {
    const std::string root = root_of_card(remains);
    return !root.empty() && read_card(root, remains.job).job == job;
  } catch (const Error&) {
    return false;
  }
}

/// Locks the folder of checkpoints. If another rescue has locked it, waits for that rescue.
void take_folder(std::optional<CheckpointLock>& lock, const std::string& folder) {
  const Clock::time_point deadline = Clock::now() + kFolderPatience;
  for (;;) {
    try {
      lock.emplace(folder, fmt::format("{}{})", kOwner, ::getpid()));
      return;
    } catch (const Error& error) {
      const bool is_rescue = std::string_view(error.what()).find(kOwner) != std::string_view::npos;
      if (error.code() != Errc::unavailable || !is_rescue || Clock::now() > deadline) throw;
    }
    std::this_thread::sleep_for(kFolderInterval);
  }
}

/// Saves the state of a dead job to a folder of checkpoints.
class Saver {
 public:
  Saver(const DeadJob& dead, std::string folder)
      : dead_(dead), folder_(std::move(folder)), memory_(dead.memory_id, dead.card) {}

  Rescued save(std::chrono::milliseconds patience) {
    return memory_.is_divided() ? save_part(Clock::now() + patience) : save_whole();
  }

 private:
  /// Returns the checkpoint of this or a later step, if another host of the job has saved one.
  std::optional<Rescued> find_saved(std::uint64_t step) const {
    if (dead_.card.num_hosts == 1) return {};
    for (const CheckpointEntry& entry : list_checkpoints(folder_)) {
      if (entry.step < step || read_manifest(entry.path).rescued_from != memory_.run_dir())
        continue;
      return Rescued{.path = entry.path, .step = entry.step, .is_of_other_host = true};
    }
    return {};
  }

  Rescued save_whole() {
    std::optional<CheckpointLock> lock;
    take_folder(lock, folder_);
    if (auto saved = find_saved(dead_.step)) return *saved;
    const std::uint64_t last = require_no_later();
    // If each host stores copies, the job continues at a step that all hosts have saved, so this
    // host saves all steps that may be that one.
    const auto steps = dead_.card.has_copies ? memory_.steps() : std::vector{dead_.step};
    for (const std::uint64_t step : steps) {
      if (step > last) write_whole(step);
    }
    return noted();
  }

  /// Returns the step of the folder's last checkpoint, or 0 if there is none. Throws
  /// invalid_argument if this step isn't before the job's.
  std::uint64_t require_no_later() const {
    const auto there = list_checkpoints(folder_);
    const std::uint64_t last = there.empty() ? 0 : there.back().step;
    if (last < dead_.step) return last;
    fail(Errc::invalid_argument,
         "job {} had reached step {}, but {} has a checkpoint of step {} already: give another "
         "folder",
         dead_.job, dead_.step, folder_, last);
  }

  void write_whole(std::uint64_t step) {
    // A rescue that was killed may have left an unfinished folder of this name.
    remove_unfinished(files_, folder_);
    const std::string unfinished = begin_checkpoint(files_, folder_, step, dead_.job, step);
    const CheckpointManifest manifest = write(unfinished, step, 0, 1);
    rescued_.path = commit_checkpoint(files_, folder_, unfinished, manifest);
    rescued_.step = step;
  }

  /// Writes this host's part, and joins the parts once those of all hosts are there. Meanwhile
  /// waits for the other hosts; one of them may join the parts instead.
  Rescued save_part(Clock::time_point deadline) {
    require_shared_folder();
    const std::vector<std::uint64_t> steps = memory_.steps();
    if (auto saved = find_saved(steps.front())) return *saved;
    (void)require_no_later();
    std::vector<CheckpointManifest> tables;
    for (const std::uint64_t step : steps) {
      const std::string folder = step_folder(step);
      make_folders(folder);
      remove_part(files_, folder, dead_.card.host, dead_.card.num_hosts);
      tables.push_back(write(folder, step, dead_.card.host, dead_.card.num_hosts));
    }
    for (;;) {
      {
        // Only the owner of the lock writes or reads tables, so a table is always complete when it
        // is read.
        std::optional<CheckpointLock> lock;
        take_folder(lock, folder_);
        if (auto saved = find_saved(steps.front())) return *saved;
        for (const CheckpointManifest& table : tables) {
          write_part_table(files_, step_folder(table.step), dead_.card.host, dead_.card.num_hosts,
                           table);
        }
        tables.clear();
        if (join(steps)) return noted();
      }
      if (Clock::now() >= deadline) return rescued_;
      std::this_thread::sleep_for(kFolderInterval);
    }
  }

  void require_shared_folder() const {
    const bool is_own = dead_.card.has_copies && folder_ == dead_.card.checkpoints;
    if (!is_own && !is_remote(folder_)) return;
    fail(Errc::invalid_argument,
         "job {}: its state is divided over {} hosts, and {} is no folder that they share: run "
         "`weft rescue -o FOLDER {}` on each of them, with a folder that they share",
         dead_.job, dead_.card.num_hosts, folder_, dead_.job);
  }

  /// Joins the parts of the last step for which all hosts have written parts. Returns false if
  /// parts are missing.
  bool join(const std::vector<std::uint64_t>& steps) {
    const auto lacks = [&](int host) {
      return std::ranges::none_of(files_.list(parts_folder()), [&](const FolderEntry& step) {
        return has_part(parts_folder() + "/" + step.name, host);
      });
    };
    rescued_.parts = parts_folder();
    rescued_.missing.clear();
    for (int host = 0; host < dead_.card.num_hosts; ++host) {
      if (lacks(host)) rescued_.missing.push_back(host);
    }
    if (!rescued_.missing.empty()) return false;
    const auto common = std::find_if(steps.rbegin(), steps.rend(), [&](std::uint64_t step) {
      for (int host = 0; host < dead_.card.num_hosts; ++host) {
        if (!has_part(step_folder(step), host)) return false;
      }
      return true;
    });
    if (common == steps.rend()) {
      fail(Errc::corrupt, "job {}: its hosts have no step in common: see the parts in {}",
           dead_.job, parts_folder());
    }
    rescued_.step = *common;
    rescued_.path = join_parts(files_, folder_, step_folder(*common), dead_.card.num_hosts);
    std::error_code ignored;  // not thrown, because the parts of other steps do no harm
    fs::remove_all(parts_folder(), ignored);
    return true;
  }

  std::string parts_folder() const { return fmt::format("{}/rescue-{}", folder_, dead_.job); }
  std::string step_folder(std::uint64_t step) const {
    return fmt::format("{}/step-{:06}", parts_folder(), step);
  }
  /// Returns whether the folder has the host's part. Lists the folder, because a network file
  /// system may remember that a file didn't exist.
  bool has_part(const std::string& folder, int host) const {
    const std::string table = part_table_name(host, dead_.card.num_hosts);
    std::error_code error;
    return fs::is_directory(folder, error) &&
           std::ranges::any_of(files_.list(folder),
                               [&](const FolderEntry& file) { return file.name == table; });
  }

  CheckpointManifest write(const std::string& folder, std::uint64_t step, int part, int num_parts) {
    auto written = memory_.write_part(files_, folder, step, part, num_parts);
    rescued_.num_tensors = written.table.tensors.size();
    rescued_.bytes = written.bytes;
    return std::move(written.table);
  }

  Rescued noted() const {
    write_rescue_note(rescue_note_in(memory_.run_dir()),
                      {.step = rescued_.step, .path = rescued_.path});
    return rescued_;
  }

  const DeadJob& dead_;
  const std::string folder_;
  DeadMemory memory_;
  FileSystem& files_ = posix_file_system();
  Rescued rescued_;
};

}  // namespace

std::vector<DeadJob> list_dead_jobs() {
  std::vector<DeadJob> all;
  for (const JobRemains& remains : find_remains()) {
    try {
      DeadJob dead = dead_job_of(remains);
      if (dead.has_steps()) all.push_back(std::move(dead));
    } catch (const Error&) {
      // This job isn't dead, or has nothing to rescue.
    }
  }
  std::ranges::sort(all, {},
                    [](const DeadJob& dead) { return std::pair(dead.job, dead.card.host); });
  return all;
}

DeadJob find_dead_job(std::string_view job) {
  const std::vector<JobRemains> all = find_remains();
  auto found = std::ranges::find(all, job, &JobRemains::job);
  if (found == all.end()) {
    found = std::ranges::find_if(all, [&](const JobRemains& one) { return is_part_of(one, job); });
  }
  if (found == all.end()) {
    fail(Errc::not_found,
         "nothing of job {} is in memory: `weft rescue --list` shows the jobs that can be saved",
         job);
  }
  return dead_job_of(*found);
}

Rescued rescue(const DeadJob& dead, const std::string& folder, std::chrono::milliseconds patience) {
  if (!dead.has_steps()) {
    fail(Errc::not_found,
         "job {} began at step {} and ended before all its chips had completed one step", dead.job,
         dead.card.begin_step);
  }
  const JobLock lock = hold(dead);
  return Saver(dead, folder.empty() ? dead.card.checkpoints : without_last_slash(folder))
      .save(patience);
}

}  // namespace weft
