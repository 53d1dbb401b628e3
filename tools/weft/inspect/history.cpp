#include "tools/weft/inspect/history.hpp"

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "data/files/utf8.hpp"
#include "inspect/history/late.hpp"
#include "inspect/history/system_trace.hpp"
#include "inspect/history/trace.hpp"
#include "inspect/why/words.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/systems.hpp"
#include "tools/weft/inspect/trace_file.hpp"

namespace weft {
namespace {

struct LateOptions {
  std::string job;
  bool json = false;
};

struct TraceCommand {
  std::string job;
  std::string file;
  std::string steps;
  double last_s = 0;
};

/// Parses "A..B", or "A" for a single step.
std::optional<StepRange> parse_steps(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) return {};
    return value;
  };
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return {};
  return StepRange{*first, *last};
}

std::string check_steps(const std::string& text) {
  return parse_steps(text) ? "" : fmt::format("\"{}\": expected steps, such as 100..120", text);
}

void print_counts(const TraceCommand& command, const TraceCounts& counts) {
  fmt::print("{}: {} slices, {} instants, {} flows\n", visible(command.file), counts.slices,
             counts.marks, counts.flows);
  fmt::print("left out: {} flows whose other end is missing, {} ends whose beginning is missing\n",
             counts.dropped_flows, counts.lost_begins);
  fmt::print("unfinished: {} slices\n", counts.unfinished);
}

int write(JobReader& reader, const TraceCommand& command) {
  TraceOptions options{.last_s = command.last_s};
  if (!command.steps.empty()) options.steps = parse_steps(command.steps);
  const Snapshot job = reader.read({.control = false, .processes = false, .events = true});
  TraceFile file(command.file);
  const TraceCounts counts =
      write_trace(job, options, [&](std::string_view text) { file.write(text); });
  file.finish();
  print_counts(command, counts);
  for (const HostSight& host : job.hosts) {
    if (host.clock_error_s > 0) {
      fmt::print("host {} ({}): its clock is known to within {}\n", host.host,
                 visible(host.machine), time_text(host.clock_error_s));
    }
    if (!host.silence.empty()) {
      fmt::print("{}: {}\n", visible(silence_text(host)), visible(host.silence));
    }
  }
  return 0;
}

int write_system(const std::string& system, const TraceCommand& command) {
  if (!command.steps.empty()) {
    fmt::print(stderr, "--steps is for jobs: \"{}\" is an actor system, which has no steps\n",
               visible(system));
    return kUsage;
  }
  const SystemEvents events = read_system_events(system);
  TraceFile file(command.file);
  const TraceCounts counts =
      write_system_trace(events, command.last_s, [&](std::string_view text) { file.write(text); });
  file.finish();
  print_counts(command, counts);
  return 0;
}

void add_late(CLI::App& inspect, int& code) {
  auto options = std::make_shared<LateOptions>();
  CLI::App* late = inspect.add_subcommand(
      "late", "show which chips make the others wait in collectives, over the whole run");
  late->add_option("job", options->job, kJobHelp);
  late->add_flag("--json", options->json, "as JSON, schema weft.late/1 (docs/inspect.md)");
  late->callback([options, &code] {
    code = with_job(options->job, [&](JobReader& reader) {
      const Snapshot job = reader.read({.control = false, .processes = false, .events = true});
      fmt::print("{}", options->json ? late_json(job) : late_text(job));
      return 0;
    });
  });
}

void add_trace(CLI::App& inspect, int& code) {
  auto command = std::make_shared<TraceCommand>();
  CLI::App* trace = inspect.add_subcommand(
      "trace",
      "write the last events of a job, or the last calls of an actor system, as a trace for "
      "ui.perfetto.dev");
  trace->add_option("job", command->job, kJobOrSystemHelp);
  trace
      ->add_option("-o,--output", command->file,
                   "file to write, as JSON; compressed if its name ends with .gz")
      ->type_name("FILE")
      ->required();
  trace->add_option("--last", command->last_s, "only the last seconds")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  trace
      ->add_option("--steps", command->steps,
                   "only the time of these steps of a job, or of one step")
      ->type_name("A..B")
      ->check(CLI::Validator(check_steps, ""));
  trace->callback([command, &code] {
    if (selects_system(command->job)) {
      const auto system = read_asked_system(command->job, code);
      if (!system) return;
      try {
        code = write_system(system->id, *command);
      } catch (const std::exception& e) {
        fmt::print(stderr, "actor system {}: {}\n", system->id, visible(e.what()));
        code = kUnreadable;
      }
      return;
    }
    code = with_job(command->job, [&](JobReader& reader) { return write(reader, *command); });
  });
}

}  // namespace

void add_inspect_history(CLI::App& inspect, int& code) {
  add_late(inspect, code);
  add_trace(inspect, code);
}

}  // namespace weft
