#include "tools/weft/plan.hpp"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "data/files/file_bytes.hpp"
#include "inspect/snapshot/json_text.hpp"
#include "inspect/views/table.hpp"
#include "spmd/ops/fingerprint.hpp"
#include "spmd/plan/plan.hpp"
#include "spmd/plan/step_cost.hpp"
#include "spmd/stablehlo/stablehlo.hpp"
#include "tools/weft/plan/first_step.hpp"
#include "tools/weft/plan/profile.hpp"
#include "tools/weft/plan/tiers_text.hpp"
#include "transport/format/plan_file.hpp"
#include "transport/memory/wait.hpp"

namespace weft {
namespace {

using Json = nlohmann::json;

struct PlanArguments {
  LaunchOptions launch{};  ///< for a plan's file, `command` has only the file's path
  bool json = false;
  bool stablehlo = false;
  ProfileOptions profile{};
};

/// Prints the program of one chip as StableHLO, for other compilers.
void print_stablehlo(const Plan& plan) {
  const std::string name = fingerprint(plan.program).to_string();
  fmt::print("{}", to_stablehlo(plan.program, mesh_of(plan), name).text);
}

/// Returns the names of the ops of a step, each once, in the order of their first occurrence. For a
/// wait, the name is that of the op for which it waits.
std::string ops_of(const Plan& plan, const PlanStep& step) {
  if (step.kind == StepKind::wait) return std::string(to_string(plan.program.kind(step.first)));
  std::vector<std::string_view> kinds;
  for (OpId op = step.first; op < step.end(); ++op) {
    const std::string_view kind = to_string(plan.program.kind(op));
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

/// An input or an output; both are shown in the same way.
struct Boundary {
  std::string name;
  std::string role;  ///< an input's kind; for an output, the input that it updates, or ""
  TensorType global;
  TensorType chip;
  std::string sharding;
};

std::vector<Boundary> inputs_of(const Plan& plan, const Mesh& mesh) {
  std::vector<Boundary> rows;
  for (std::size_t i = 0; i < plan.program.inputs.size(); ++i) {
    const ProgramInput& input = plan.program.inputs[i];
    const TensorType& global = plan.input_types[i];
    rows.push_back({input.name, std::string(to_string(input.kind)), global,
                    plan.program.type(input.value),
                    input.sharding.to_string(mesh, global.shape.size())});
  }
  return rows;
}

std::vector<Boundary> outputs_of(const Plan& plan, const Mesh& mesh) {
  std::vector<Boundary> rows;
  for (std::size_t i = 0; i < plan.program.outputs.size(); ++i) {
    const ProgramOutput& output = plan.program.outputs[i];
    const TensorType& global = plan.output_types[i];
    const std::string updates =
        output.updates < 0 ? ""
                           : plan.program.inputs[static_cast<std::size_t>(output.updates)].name;
    rows.push_back({output.name, updates, global, plan.program.type(output.value),
                    output.sharding.to_string(mesh, global.shape.size())});
  }
  return rows;
}

std::int64_t chip_bytes(const std::vector<Boundary>& rows) {
  std::int64_t bytes = 0;
  for (const Boundary& row : rows) bytes += row.chip.bytes();
  return bytes;
}

Json to_json(const std::vector<Boundary>& rows, const char* role) {
  Json json = Json::array();
  for (const Boundary& row : rows) {
    json.push_back({{"name", row.name},
                    {role, row.role},
                    {"type", row.global.to_string()},
                    {"chip_type", row.chip.to_string()},
                    {"sharding", row.sharding}});
  }
  return json;
}

Json to_json(const Plan& plan, const Mesh& mesh) {
  Json json{{"mesh", mesh_json(mesh)},
            {"fingerprint", fingerprint(plan.program).to_string()},
            {"ops", plan.program.num_ops()},
            {"inputs", to_json(inputs_of(plan, mesh), "kind")},
            {"outputs", to_json(outputs_of(plan, mesh), "updates")},
            {"temp_bytes", plan.temp_bytes},
            {"temp_bytes_bound", plan.temp_bytes_bound},
            {"shared_bytes", plan.shared_bytes},
            {"collectives", Json::array()},
            {"steps", Json::array()},
            {"held", plan.held}};
  for (const CollectiveSummary& collective : collectives(plan, mesh)) {
    json["collectives"].push_back({{"kind", to_string(collective.kind)},
                                   {"axes", collective.axes},
                                   {"bytes", collective.bytes},
                                   {"of", collective.value}});
    if (!has_hosts(mesh)) continue;
    json["collectives"].back().update(tier_json(collective));
    json["collectives"].back()["start_step"] = collective.start;
    json["collectives"].back()["end_step"] = collective.end;
  }
  const std::vector<StepCost> costs = step_costs(plan, mesh);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    json["steps"].push_back({{"kind", to_string(step.kind)},
                             {"first_op", step.first},
                             {"ops", step.count},
                             {"of", ops_of(plan, step)},
                             {"flops", costs[i].flops},
                             {"read_bytes", costs[i].read_bytes},
                             {"written_bytes", costs[i].written_bytes},
                             {"traffic_bytes", costs[i].traffic_bytes}});
  }
  return json;
}

void print(const Table& table) {
  table.print();
  fmt::print("\n");
}

void print(const char* heading, const char* role, const std::vector<Boundary>& rows) {
  Table table({{heading}, {role}, {"type"}, {"on a chip"}, {"sharding"}});
  for (const Boundary& row : rows) {
    table.add({row.name, row.role, row.global.to_string(), row.chip.to_string(), row.sharding});
  }
  print(table);
}

Table collectives_table(const Plan& plan, const Mesh& mesh) {
  std::vector<Column> columns{{"collectives"}, {"axes"}, {"bytes", Align::right}};
  if (has_hosts(mesh)) columns.insert(columns.end(), {kTier, kSteps, kSentByHost, kOrderOfSums});
  columns.push_back({"of"});
  Table table(columns);
  for (const CollectiveSummary& collective : collectives(plan, mesh)) {
    std::vector<std::string> row{std::string(to_string(collective.kind)),
                                 fmt::format("{}", fmt::join(collective.axes, ",")),
                                 std::to_string(collective.bytes)};
    if (has_hosts(mesh)) {
      row.insert(row.end(),
                 {std::string(to_string(collective.tier)), steps_of(collective),
                  std::to_string(collective.dcn_bytes), std::string(order_of_sums(collective))});
    }
    row.push_back(collective.value);
    table.add(std::move(row));
  }
  return table;
}

void print(const Plan& plan, const Mesh& mesh) {
  const auto inputs = inputs_of(plan, mesh);
  const auto outputs = outputs_of(plan, mesh);
  fmt::print("mesh {}{}\n{}\n", mesh.to_string(), hosts_text(mesh), mesh.grid());
  print("inputs", "kind", inputs);
  print("outputs", "updates", outputs);
  Table bytes({{"on a chip"}, {"bytes", Align::right}, {""}});
  bytes.add({"inputs", std::to_string(chip_bytes(inputs)), ""});
  bytes.add({"outputs", std::to_string(chip_bytes(outputs)), ""});
  bytes.add({"temporaries", std::to_string(plan.temp_bytes),
             fmt::format("no plan can need fewer than {}", plan.temp_bytes_bound)});
  if (plan.shared_bytes > 0) {
    bytes.add({"shared", std::to_string(plan.shared_bytes), "once for a group of chips"});
  }
  print(bytes);
  print(collectives_table(plan, mesh));
  Table steps({{"steps"},
               {"kind"},
               {"ops", Align::right},
               {"flops", Align::right},
               {"read", Align::right},
               {"written", Align::right},
               {"of"}});
  const std::vector<StepCost> costs = step_costs(plan, mesh);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const StepCost& cost = costs[i];
    steps.add({std::to_string(i), std::string(to_string(step.kind)), std::to_string(step.count),
               std::to_string(cost.flops), std::to_string(cost.read_bytes),
               std::to_string(cost.written_bytes), ops_of(plan, step)});
  }
  print(steps);
  if (has_hosts(mesh)) fmt::print("{}", tiers_text(run_cost(plan, mesh).dcn_bytes));
  for (const std::uint32_t output : plan.held) {
    fmt::print("output \"{}\" is held until the update_wait\n", plan.program.outputs[output].name);
  }
}

void show_file(const std::string& file, const PlanArguments& options) {
  const Plan plan = decode_plan(read_file_bytes(file, kPlanBytesMax));
  const Mesh mesh = mesh_of(plan);
  verify(plan, mesh);
  if (options.stablehlo) {
    print_stablehlo(plan);
  } else if (options.json) {
    fmt::print("{}", json_text(to_json(plan, mesh)));
  } else {
    print(plan, mesh);
  }
}

HostRoom look_at_host() {
  HostRoom room{.speed = measure_host(usable_cores())};
  struct statvfs folder {};
  if (::statvfs("/dev/shm", &folder) == 0) room.shm_free_bytes = folder.f_bavail * folder.f_frsize;
  const char* cache = std::getenv("WEFT_COMPILE_CACHE");
  if (cache != nullptr) room.compile_cache = cache;
  return room;
}

int show_first_step(const PlanArguments& options) {
  int code = 0;
  const auto step = trace_first_step(options.launch, code);
  if (!step) return code;
  if (options.stablehlo) {
    print_stablehlo(step->plan);
    return 0;
  }
  const HostRoom room = look_at_host();
  fmt::print("{}", options.json ? to_json(*step, room) : to_text(*step, room));
  return contradictions(*step, room).empty() ? 0 : kRefused;
}

bool is_executable(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0;
}

/// Returns whether a shell would start a program for this word. A plan's file isn't executable.
bool is_program(const std::string& word) {
  if (word.find('/') != std::string::npos) return is_executable(word);
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_executable(folder + "/" + word)) return true;
  }
  return false;
}

/// Takes from the words of the command the options that come after a plan's file.
void take_options(PlanArguments& options) {
  const std::vector<std::string>& words = options.launch.command;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] != "--json" && words[i] != "--stablehlo") {
      fail(Errc::invalid_argument,
           "\"{}\" after {}, which isn't a program: expected a plan file and --json or "
           "--stablehlo, or a program that can be started",
           words[i], words.front());
    }
    (words[i] == "--json" ? options.json : options.stablehlo) = true;
  }
  if (options.json && options.stablehlo) {
    fail(Errc::invalid_argument, "--json and --stablehlo exclude each other; give one of them");
  }
}

/// Checks a rate of a chip, in 10^9 per second. Returns "" if the text is valid.
std::string check_rate(const std::string& text) {
  double rate = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, rate);
  if (read.ec == std::errc() && read.ptr == end && rate >= 0.001 && rate <= 1e9) return "";
  return fmt::format("\"{}\": expected 0.001 to 1e9", text);
}

/// Adds the options for profiles. Returns the option --profile, which the other options need.
CLI::Option* add_profile_options(CLI::App& command, ProfileOptions& options) {
  CLI::Option* profile =
      command
          .add_option("--profile", options.job,
                      "show the steps of a job's plan (JOB as for weft inspect) with their "
                      "time, arithmetic, bytes and share of the machine's limit")
          ->type_name("JOB");
  command
      .add_option("--program", options.program,
                  "the number of a program of the job; default: the program that took longest")
      ->needs(profile);
  command.add_option("--svg", options.svg, "also write the profile as a roofline")
      ->type_name("FILE")
      ->needs(profile);
  const auto add_rate = [&](const char* name, double& rate, const char* what) {
    command.add_option(name, rate, fmt::format("10^9 {}, 0.001 to 1e9; default: measured", what))
        ->check(CLI::Validator(check_rate, ""))
        ->needs(profile);
  };
  add_rate("--gflops", options.gflops, "floating-point operations a second that a chip can do");
  add_rate("--gbytes", options.gbytes, "bytes a second that a chip can read and write");
  return profile;
}

}  // namespace

void add_plan(CLI::App& app, int& code) {
  auto options = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "show the work of a program's first step, or of a dumped plan, on its mesh; or how long "
      "a job's plan takes");
  CLI::Option* json = command->add_flag("--json", options->json, "as JSON");
  CLI::Option* stablehlo =
      command
          ->add_flag("--stablehlo", options->stablehlo,
                     "only the program of one chip, as StableHLO text for other compilers")
          ->excludes(json);
  add_job_options(*command, options->launch);
  command->positionals_at_end();
  CLI::Option* program =
      command
          ->add_option("command", options->launch.command,
                       "a program and its arguments; or a plan file that WEFT_DUMP_TO has written")
          ->type_name("PROGRAM");
  const CLI::Option* profile =
      add_profile_options(*command, options->profile)->excludes(program)->excludes(stablehlo);
  command->footer(
      "Examples:\n"
      "  weft plan -n 4 --chips 4 -- ./train\n"
      "  weft plan --json -n 4 --mesh data=2,model=2 -- ./train | jq .chip_bytes\n"
      "  weft plan dump/plan-0.weftplan\n"
      "  weft plan --stablehlo -n 1 --chips 4 -- ./train > step.mlir\n"
      "  weft plan --profile train --svg roofline.svg\n"
      "\n"
      "The program's workers start and trace the first step, but don't run it. The exit code "
      "is 0,\n"
      "2 for a file that isn't a plan, or 3 if the program, its options or this machine is unfit.\n"
      "--profile shows a job that runs, or whose run folder keeps its events: WEFT_TRACE=full.\n"
      "Its exit code is 2 if there is no such job, and 3 if there are no events.");
  command->callback([options, profile, &code] {
    if (profile->count() > 0) {
      options->profile.json = options->json;
      code = show_profile(options->profile);
      return;
    }
    if (options->launch.command.empty()) throw CLI::RequiredError("PROGRAM");
    if (is_program(options->launch.command.front())) {
      code = show_first_step(*options);
      return;
    }
    take_options(*options);
    show_file(options->launch.command.front(), *options);
    code = 0;
  });
}

}  // namespace weft
