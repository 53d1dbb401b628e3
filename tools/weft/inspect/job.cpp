#include "tools/weft/inspect/job.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

#include "data/files/utf8.hpp"
#include "tools/weft/inspect/past_run.hpp"

namespace weft {
namespace {

/// Returns the job that was started last, among those whose boards can be read; "" if there is
/// none.
std::string newest_job() {
  std::string newest;
  std::int64_t started = 0;
  for (const std::string& job : whole_jobs()) {
    try {
      const BoardHeader header = Board::open(job, true).header();
      if (!newest.empty() && header.started_unix_ns <= started) continue;
      newest = job;
      started = header.started_unix_ns;
    } catch (const Error&) {
    }
  }
  return newest;
}

}  // namespace

std::optional<std::string> find_job_in(const std::string& run_dir) {
  for (const std::string& job : whole_jobs()) {
    std::error_code error;
    try {
      if (std::filesystem::equivalent(Board::open(job, true).header().run_dir, run_dir, error)) {
        return job;
      }
    } catch (const Error&) {
    }
  }
  return {};
}

void say_unreadable(const std::string& job, const std::exception& e) {
  fmt::print(stderr, "{}{}\n", job.empty() ? "" : fmt::format("job {}: ", visible(job)),
             visible(e.what()));
}

std::optional<std::string> find_job(const std::string& asked) {
  const std::vector<std::string> found = find_jobs(asked);
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    fmt::print(stderr, "there is no job \"{}\": `weft inspect` lists the jobs\n", visible(asked));
  } else {
    fmt::print(stderr, "\"{}\" matches {} jobs; give more of the id: {}\n", visible(asked),
               found.size(), visible(fmt::format("{}", fmt::join(found, ", "))));
  }
  return {};
}

std::optional<JobReader> open_asked(const std::string& asked, int& code) {
  code = kNoSuchJob;
  try {
    if (asked.find('/') != std::string::npos) {
      const std::optional<std::string> job = find_job_in(asked);
      return job ? JobReader::of_job(*job) : JobReader::of_folder(asked);
    }
    const std::string newest = asked.empty() ? newest_job() : "";
    if (!newest.empty()) return JobReader::of_job(newest);
    if (asked.empty() || find_jobs(asked).empty()) {
      if (const auto run = find_past_run(asked)) return JobReader::of_folder(*run);
    }
    if (asked.empty()) {
      fmt::print(stderr,
                 "there is no job, and there is no run in ~/weft_runs; give a run folder\n");
    } else if (const std::optional<std::string> job = find_job(asked)) {
      return JobReader::of_job(*job);
    }
  } catch (const Error& e) {
    say_unreadable(asked, e);
    if (e.code() != Errc::not_found) code = kUnreadable;
  }
  return {};
}

}  // namespace weft
