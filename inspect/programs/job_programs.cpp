#include "inspect/programs/job_programs.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/columns.hpp"
#include "inspect/why/words.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {
namespace {

/// Returns the text for an empty list of programs.
std::string no_programs(const Snapshot& job) {
  return fmt::format("no program of job {} is listed in {}/programs: none has run yet\n",
                     visible(job.job), visible(job.header.run_dir));
}

}  // namespace

std::vector<JobProgram> programs_of(std::span<const ProgramEntry> entries) {
  std::map<std::tuple<std::uint64_t, std::uint32_t, std::string>, JobProgram> found;
  for (const ProgramEntry& entry : entries) {
    const auto [known, is_new] =
        found.try_emplace({entry.generation, entry.number, entry.fingerprint});
    JobProgram& program = known->second;
    if (is_new) program.entry = entry;
    program.entry.seconds = std::max(program.entry.seconds, entry.seconds);
    program.workers.push_back(entry.worker);
  }
  std::vector<JobProgram> programs;
  for (auto& [key, program] : found) {
    std::ranges::sort(program.workers);
    programs.push_back(std::move(program));
  }
  return programs;
}

std::string programs_text(const Snapshot& job, std::span<const JobProgram> programs) {
  if (programs.empty()) return no_programs(job);
  Table table({columns::kProgram, columns::kGeneration, columns::kStep, columns::kOfWorkers,
               columns::kCompiled, columns::kFrom, columns::kFingerprint, columns::kAt});
  for (const auto& [entry, workers] : programs) {
    table.add({std::to_string(entry.number), std::to_string(entry.generation),
               std::to_string(entry.step), ranges_text(workers), time_text(entry.seconds),
               entry.stored ? "cache" : "new", entry.fingerprint.substr(0, 12), entry.site});
  }
  std::string text = table.to_string();
  for (const auto& [entry, workers] : programs) {
    if (entry.reason.empty()) continue;
    text += fmt::format("\nprogram {} of {}: {}\n", entry.number, workers_text(workers),
                        visible(entry.reason));
  }
  return text;
}

std::string programs_json(const Snapshot& job, std::span<const JobProgram> programs) {
  nlohmann::json json{
      {"schema", "weft.programs/1"}, {"job", job.job}, {"programs", nlohmann::json::array()}};
  for (const auto& [entry, workers] : programs) {
    json["programs"].push_back({{"number", entry.number},
                                {"generation", entry.generation},
                                {"step", entry.step},
                                {"workers", workers},
                                {"compile_s", entry.seconds},
                                {"stored", entry.stored},
                                {"fingerprint", entry.fingerprint},
                                {"site", entry.site},
                                {"reason", entry.reason}});
  }
  return json_text(json);
}

void fail_without_program(const Snapshot& job, std::span<const JobProgram> programs,
                          std::optional<std::uint32_t> number) {
  const std::string asked = number ? fmt::format("job {} has no program {}", job.job, *number)
                                   : fmt::format("job {} has no program", job.job);
  if (programs.empty()) {
    fail(Errc::not_found,
         "{}: {}/programs/list.jsonl lists none. Workers write this list when they compile their "
         "first program; a copy of a run folder needs its programs folder, too",
         asked, job.header.run_dir);
  }
  if (number) fail(Errc::not_found, "{}: weft inspect programs lists the job's programs", asked);
  fail(Errc::not_found,
       "{} whose plan was kept: a worker keeps only the plans of its first {} programs", asked,
       ProgramList::kFilesMax);
}

Plan read_plan(const Snapshot& job, const JobProgram& program) {
  const std::string path = program_plan_path(job.header.run_dir, program.entry);
  if (!std::filesystem::exists(path)) {
    fail(Errc::not_found,
         "{} doesn't exist: a worker keeps only the plans of its first {} programs, and this is "
         "number {}",
         path, ProgramList::kFilesMax, program.entry.number);
  }
  return decode_plan(read_file_bytes(path, kPlanBytesMax));
}

}  // namespace weft
