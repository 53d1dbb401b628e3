#include "tools/weft/inspect/programs.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/programs/chip_memory.hpp"
#include "inspect/programs/job_programs.hpp"
#include "inspect/programs/program_diff.hpp"
#include "inspect/programs/shards.hpp"
#include "tools/weft/inspect/job.hpp"

namespace weft {
namespace {

struct ProgramsOptions {
  std::string job;
  std::optional<std::uint32_t> program{};
  std::vector<int> workers{};
  std::string name;
  bool json = false;
};

std::vector<JobProgram> programs_in(const Snapshot& job) {
  return programs_of(read_program_list(job.header.run_dir));
}

std::string show_programs(const Snapshot& job, const ProgramsOptions& options) {
  return (options.json ? programs_json : programs_text)(job, programs_in(job));
}

/// Returns how many bytes the memory of the job's chips takes in /dev/shm; a negative number if
/// this memory has no names there.
std::int64_t resident_bytes(const Snapshot& job) {
  std::int64_t bytes = 0;
  for (int chip = 0; chip < job.header.num_chips; ++chip) {
    struct stat status {};
    const std::string path = fmt::format("/dev/shm/weft-{}-chip-{}", job.job, chip);
    if (!job.live || ::stat(path.c_str(), &status) != 0) return -1;
    bytes += std::int64_t{status.st_blocks} * 512;
  }
  return bytes;
}

std::string show_memory(const Snapshot& job, const ProgramsOptions& options) {
  const std::vector<JobProgram> programs = programs_in(job);
  std::optional<Plan> plan;
  const JobProgram* largest = nullptr;
  for (const JobProgram& program : programs) {
    const std::uint32_t number = program.entry.number;
    if (options.program ? number != *options.program : number >= ProgramList::kFilesMax) continue;
    Plan next = read_plan(job, program);
    const auto total = [&](const Plan& any) {
      return memory_of(any, program.entry.keeps_state).total();
    };
    if (plan && total(next) <= total(*plan)) continue;
    plan = std::move(next);
    largest = &program;
  }
  if (largest == nullptr) fail_without_program(job, programs, options.program);
  return (options.json ? memory_json : memory_text)(job, *largest, *plan, resident_bytes(job));
}

std::string show_diff(const Snapshot& job, const ProgramsOptions& options) {
  const std::vector<ProgramEntry> entries = read_program_list(job.header.run_dir);
  const auto [first, second] = options.workers.size() == 2
                                   ? std::pair(options.workers[0], options.workers[1])
                                   : choose_workers(entries);
  const ProgramDiff diff = diff_programs(job, entries, first, second);
  return (options.json ? diff_json : diff_text)(job, diff);
}

std::string show_shards(const Snapshot& job, const ProgramsOptions& options) {
  const JobShards shards = read_shards(job, options.name);
  return (options.json ? shards_json : shards_text)(job, shards);
}

using Show = std::string (*)(const Snapshot&, const ProgramsOptions&);

CLI::App* add_program_view(CLI::App& inspect, int& code, const char* name, const char* help,
                           const std::shared_ptr<ProgramsOptions>& options, Show show) {
  CLI::App* view = inspect.add_subcommand(name, help);
  view->add_option("job", options->job, kJobHelp);
  view->add_flag("--json", options->json, "as JSON (docs/inspect.md)");
  view->callback([=, &code] {
    code = with_job(options->job, [&](JobReader& reader) {
      fmt::print("{}", show(reader.read(), *options));
      return 0;
    });
  });
  return view;
}

}  // namespace

void add_inspect_programs(CLI::App& inspect, int& code) {
  add_program_view(inspect, code, "programs", "show what a job's workers have compiled, and why",
                   std::make_shared<ProgramsOptions>(), show_programs);
  const auto memory = std::make_shared<ProgramsOptions>();
  add_program_view(inspect, code, "memory",
                   "show what a chip's memory is used for, tensor by tensor", memory, show_memory)
      ->add_option("--program", memory->program,
                   "the number of a program; default: the program that takes the most memory");
  const auto diff = std::make_shared<ProgramsOptions>();
  add_program_view(inspect, code, "diff", "show where the programs of two workers differ", diff,
                   show_diff)
      ->add_option("--workers", diff->workers,
                   "two workers, such as 0,3; default: the first two that differ")
      ->expected(2)
      ->delimiter(',');
  const auto shards = std::make_shared<ProgramsOptions>();
  add_program_view(inspect, code, "shards",
                   "show the tensors that a job keeps: their chips, checksums, min, max, NaNs",
                   shards, show_shards)
      ->add_option("--name", shards->name, "only tensors whose name contains this text");
}

}  // namespace weft
