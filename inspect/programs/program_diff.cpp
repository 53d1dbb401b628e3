#include "inspect/programs/program_diff.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "data/files/utf8.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "spmd/text/difference.hpp"
#include "spmd/text/listing_difference.hpp"
#include "spmd/text/text.hpp"

namespace weft {
namespace {

using Programs = std::vector<ProgramEntry>;

constexpr std::size_t kListingBytesMax = std::size_t{256} << 20;

/// Returns each worker's programs of the last generation, in the order of their numbers.
std::map<int, Programs> by_worker(std::span<const ProgramEntry> entries) {
  std::uint64_t generation = 0;
  for (const ProgramEntry& entry : entries) generation = std::max(generation, entry.generation);
  std::map<int, Programs> programs;
  for (const ProgramEntry& entry : entries) {
    if (entry.generation == generation) programs[entry.worker].push_back(entry);
  }
  for (auto& [worker, list] : programs) {
    std::ranges::stable_sort(list, {}, &ProgramEntry::number);
  }
  return programs;
}

std::size_t common_count(const Programs& a, const Programs& b) {
  const auto parting =
      std::ranges::mismatch(a, b, {}, &ProgramEntry::fingerprint, &ProgramEntry::fingerprint);
  return static_cast<std::size_t>(parting.in1 - a.begin());
}

const Programs& programs_of(const std::map<int, Programs>& all, int worker) {
  const auto found = all.find(worker);
  if (found == all.end()) fail(Errc::not_found, "worker {} has no program in the list", worker);
  return found->second;
}

std::string listing_of(const Snapshot& job, const ProgramEntry& entry) {
  return find_file_text(program_text_path(job.header.run_dir, entry), kListingBytesMax)
      .value_or("");
}

/// Returns the causes of the difference between two listings. The listings come from files, which
/// may be damaged. If one can't be parsed, returns no causes.
std::vector<std::string> causes_of(const Snapshot& job, const std::string& first,
                                   const std::string& second) {
  const std::optional<Mesh> mesh = job.mesh();
  if (!mesh) return {};
  try {
    return differences(parse_program(first, *mesh), parse_program(second, *mesh)).causes;
  } catch (const Error&) {
    return {};
  }
}

void compare(const Snapshot& job, ProgramDiff& diff) {
  const std::string first = listing_of(job, *diff.first);
  const std::string second = listing_of(job, *diff.second);
  diff.causes = causes_of(job, first, second);
  const Difference parting = first_difference(first, second);
  if (parting.line != 0) diff.lines = {parting.first, parting.second};
}

std::string site_of(int worker, const std::optional<ProgramEntry>& entry) {
  if (!entry) return fmt::format("  worker {:<3} has no further program\n", worker);
  return fmt::format("  worker {:<3} {} (program {})\n", worker, visible(entry->site),
                     entry->fingerprint.substr(0, 12));
}

nlohmann::json to_json(const std::optional<ProgramEntry>& entry) {
  if (!entry) return {};
  return {{"number", entry->number}, {"fingerprint", entry->fingerprint}, {"site", entry->site}};
}

}  // namespace

ProgramDiff diff_programs(const Snapshot& job, std::span<const ProgramEntry> entries,
                          int first_worker, int second_worker) {
  const std::map<int, Programs> all = by_worker(entries);
  const Programs& a = programs_of(all, first_worker);
  const Programs& b = programs_of(all, second_worker);
  ProgramDiff diff{
      .first_worker = first_worker, .second_worker = second_worker, .common = common_count(a, b)};
  if (diff.common < a.size()) diff.first = a[diff.common];
  if (diff.common < b.size()) diff.second = b[diff.common];
  if (diff.first && diff.second) compare(job, diff);
  return diff;
}

std::pair<int, int> choose_workers(std::span<const ProgramEntry> entries) {
  const std::map<int, Programs> all = by_worker(entries);
  if (all.size() < 2) {
    fail(Errc::not_found, "programs of {} workers are listed: expected at least two workers",
         all.size());
  }
  const auto& [first, programs] = *all.begin();
  for (const auto& [worker, others] : all) {
    if (common_count(programs, others) < std::max(programs.size(), others.size())) {
      return {first, worker};
    }
  }
  return {first, std::next(all.begin())->first};
}

std::string diff_text(const Snapshot& job, const ProgramDiff& diff) {
  if (diff.same()) {
    return fmt::format("workers {} and {} have the same {} programs\n", diff.first_worker,
                       diff.second_worker, diff.common);
  }
  std::string text = fmt::format("workers {} and {} differ from program {} on\n", diff.first_worker,
                                 diff.second_worker, diff.common);
  text += site_of(diff.first_worker, diff.first) + site_of(diff.second_worker, diff.second);
  for (const std::string& cause : diff.causes) text += fmt::format("  {}\n", visible(cause));
  if (!diff.lines.empty()) {
    text += fmt::format("- {}\n+ {}\n", visible(diff.lines[0]), visible(diff.lines[1]));
  }
  if (diff.first && diff.second) {
    text +=
        fmt::format("diff -u {} {}\n", visible(program_text_path(job.header.run_dir, *diff.first)),
                    visible(program_text_path(job.header.run_dir, *diff.second)));
  }
  return text;
}

std::string diff_json(const Snapshot& job, const ProgramDiff& diff) {
  const nlohmann::json json{{"schema", "weft.diff/1"},
                            {"job", job.job},
                            {"workers", {diff.first_worker, diff.second_worker}},
                            {"same", diff.same()},
                            {"common", diff.common},
                            {"first", to_json(diff.first)},
                            {"second", to_json(diff.second)},
                            {"causes", diff.causes},
                            {"lines", diff.lines}};
  return json_text(json);
}

}  // namespace weft
