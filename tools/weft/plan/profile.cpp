#include "tools/weft/plan/profile.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/profile/plan_profile.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/trace_file.hpp"
#include "tools/weft/plan/machine_limits.hpp"
#include "transport/job/job_record.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

/// Returns the lower half of a fingerprint, which is the part that events contain.
std::uint64_t low_half(const std::string& fingerprint) {
  std::uint64_t low = 0;
  const std::size_t begin = fingerprint.size() - std::min<std::size_t>(fingerprint.size(), 16);
  std::from_chars(fingerprint.data() + begin, fingerprint.data() + fingerprint.size(), low, 16);
  return low;
}

/// Returns the program that the options ask for, or else the program whose runs took longest in
/// total, not counting first runs.
JobProgram choose_program(const Snapshot& job, const ProfileOptions& options) {
  const std::vector<JobProgram> programs = programs_of(read_program_list(job.header.run_dir));
  const std::map<std::uint64_t, std::int64_t> times = run_times(job);
  const JobProgram* chosen = nullptr;
  std::int64_t longest = -1;
  for (const JobProgram& program : programs) {
    if (options.program && program.entry.number != *options.program) continue;
    const auto found = times.find(low_half(program.entry.fingerprint));
    const std::int64_t ns = found != times.end() ? found->second : 0;
    if (ns <= longest) continue;
    longest = ns;
    chosen = &program;
  }
  if (chosen == nullptr) fail_without_program(job, programs, options.program);
  return *chosen;
}

/// Throws not_found if the job has left no events.
void expect_events(const Snapshot& job) {
  if (!job.rings.empty()) return;
  if (job.live) fail(Errc::not_found, "there is no black box of this job that can be read");
  for (const char* name : {"box.bin", "board.bin"}) {
    const std::string path = incident_in(job.header.run_dir) + "/" + name;
    if (std::filesystem::exists(path)) continue;
    fail(Errc::not_found,
         "{} doesn't exist: the times come from the events in blackbox/box.bin. A job that has "
         "ended well keeps them only if it was started with WEFT_TRACE=full",
         path);
  }
  fail(Errc::not_found, "{}/box.bin can't be read", incident_in(job.header.run_dir));
}

/// Returns the largest number of bytes that a step of the plan moves.
std::int64_t most_bytes(const Plan& plan, const Mesh& mesh) {
  std::int64_t most = 0;
  for (const StepCost& cost : step_costs(plan, mesh)) most = std::max(most, cost.bytes());
  return most;
}

bool is_running(const Snapshot& job) { return job.live && job.held && !job.over(); }

ChipLimits limits_of(const Snapshot& job, const ProfileOptions& options, const Plan& plan,
                     const Mesh& mesh) {
  const bool given = options.gflops > 0 && options.gbytes > 0;
  ChipLimits limits;
  if (!given) {
    // A plan without a mesh is for one chip, but all workers run such plans at the same time.
    const int chips = std::max(job.header.num_chips, 1);
    limits = measure_limits(chips, usable_cores(), most_bytes(plan, mesh));
  }
  if (options.gflops > 0) limits.f32_flops = limits.bf16_flops = 1e9 * options.gflops;
  if (options.gbytes > 0) limits.memory = {{.bytes = 0, .bytes_per_s = 1e9 * options.gbytes}};
  if (given) {
    limits.from = "as given";
  } else if (options.gflops > 0 || options.gbytes > 0) {
    limits.from += options.gflops > 0 ? ", arithmetic as given" : ", memory as given";
  }
  if (!given && is_running(job)) {
    limits.from +=
        "; the job ran during the measurement, so the limits are too low: give --gflops and "
        "--gbytes, or measure after the job has ended";
  }
  return limits;
}

PlanProfile read_profile(const Snapshot& job, const ProfileOptions& options) {
  const JobProgram program = choose_program(job, options);
  expect_events(job);
  const Plan plan = read_plan(job, program);
  const Mesh mesh = mesh_of(plan);
  verify(plan, mesh);
  const PlanTimes times = plan_times(job, low_half(program.entry.fingerprint), plan);
  if (times.runs == 0) {
    fail(Errc::not_found,
         "there is no run of program {} with the times of its steps. A job that runs has them "
         "unless WEFT_TRACE is off; one that has ended well keeps them if it was started with "
         "WEFT_TRACE=full",
         program.entry.number);
  }
  return profile_of(program.entry, plan, times, limits_of(job, options, plan, mesh));
}

}  // namespace

int show_profile(const ProfileOptions& options) {
  return with_job(options.job, [&](JobReader& reader) {
    const Snapshot job = reader.read({.control = false, .processes = false, .events = true});
    const PlanProfile profile = read_profile(job, options);
    if (!options.svg.empty()) {
      TraceFile file(options.svg);
      file.write(roofline_svg(job, profile));
      file.finish();
    }
    fmt::print("{}", (options.json ? profile_json : profile_text)(job, profile));
    return 0;
  });
}

}  // namespace weft
