#include "tools/weft/launch/options.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "tools/weft/launch/shell_word.hpp"

namespace weft {
namespace {

constexpr int kWorkersMax = 256;

void add_process_options(CLI::App& launch, LaunchOptions& options) {
  // Each --env takes only one value, so that it doesn't take the words of the program.
  launch.add_option("--env", options.environment, "NAME=value for the program; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  launch.add_option("--cwd", options.folder, "the folder in which the program starts")
      ->type_name("FOLDER");
  launch
      .add_option("--bind", options.bind,
                  "cores: each worker has its own share of the cores; none: all workers use "
                  "all cores")
      ->check(CLI::IsMember({"cores", "none"}))
      ->type_name("WHAT");
  launch.add_flag("--report-bindings", options.report_bindings,
                  "say on stderr which cores each worker has");
  launch
      .add_option("--timeout", options.timeout_s,
                  "seconds after which the job is asked to end, as by SIGTERM; the exit code "
                  "is then 124")
      ->check(CLI::Range(0.001, 1e9))
      ->type_name("SECONDS");
  launch
      .add_option("--hosts", options.hosts,
                  "start the program once on each of these hosts, such as h1,h2; the first one "
                  "runs the trainer")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("HOSTS");
  launch
      .add_option("--via", options.via,
                  "the command that runs a shell command on a host, given as two more words: the "
                  "host and the command")
      ->type_name("COMMAND");
  launch
      .add_option("--min-hosts", options.min_hosts,
                  "with --hosts and --max-failures: the job continues with at least this number of "
                  "hosts; they take over the program of a host that isn't reached any more")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  launch.add_flag("--dry-run", options.dry_run, "print what would be started, and start nothing");
}

void add_output_options(CLI::App& launch, LaunchOptions& options) {
  launch.add_flag("--tag-output", options.tag_output,
                  "begin the program's own lines with [program], as lines of workers begin "
                  "with [worker 2]");
  launch.add_option("--only", options.only, "show only lines of these workers, such as 0,3")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, kWorkersMax - 1))
      ->type_name("WORKERS");
  launch
      .add_option("--log-dir", options.log_dir,
                  "write all lines, shown or not, to worker-N.log and program.log in this folder")
      ->type_name("FOLDER");
  launch.add_flag("--timestamps", options.timestamps, "begin each line with the time");
  launch.add_flag("--no-progress", options.no_progress,
                  "don't show the line with step, rate and loss on a terminal");
  launch
      .add_option("--steps", options.steps,
                  "number of steps that the job will make, so that the progress line can show "
                  "the remaining time")
      ->check(CLI::Range(1.0, 1e15))
      ->type_name("N");
}

void check_environment(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    const auto equals = entry.find('=');
    if (equals != 0 && equals != entry.npos) continue;
    fail(Errc::invalid_argument, "--env \"{}\": expected NAME=value, such as --env WEFT_LOG=info",
         entry);
  }
}

/// Throws if the command has several programs, separated by ":" as for mpirun. In MPI they are one
/// job, but weft's workers all run one loop of one program.
void refuse_several_programs(const std::vector<std::string>& command) {
  if (std::ranges::find(command, ":") == command.end()) return;
  fail(Errc::invalid_argument,
       "\":\" between programs: expected one program, because all workers of a job run the same "
       "loop; start each program by a `weft launch` of its own (`weft launch A & weft launch B "
       "& wait`), and give a program an argument \":\" in a file or by sh -c");
}

void check_folder(const std::string& folder) {
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return;
  fail(Errc::not_found, "--cwd \"{}\": expected a folder; make it: mkdir -p {}", folder,
       shell_word(folder));
}

}  // namespace

void add_job_options(CLI::App& launch, LaunchOptions& options) {
  launch.add_option("-n,--workers", options.workers, "worker processes; 0: all in one process")
      ->check(CLI::Range(0, kWorkersMax))
      ->type_name("N");
  launch.add_option("--chips", options.chips, "chips per worker")
      ->check(CLI::Range(1, 256))
      ->type_name("N");
  launch.add_option("--topology", options.topology, "grid of all chips, such as 4x4")
      ->type_name("GRID");
  launch
      .add_option(
          "--mesh", options.mesh,
          "axes of the mesh, such as data=4, data=2,model=2, or data=2x4 (2 hosts x 4 chips)")
      ->type_name("AXES");
  launch
      .add_option("--max-failures", options.max_failures,
                  "how many losses of a worker, or of the program itself (which is then "
                  "started again), the job survives; -1: any number")
      ->check(CLI::Range(-1, 1'000'000))
      ->type_name("N");
  launch
      .add_option("--resume", options.resume,
                  "where the job begins: never, auto, or the path of a checkpoint")
      ->type_name("WHERE");
}

void add_options(CLI::App& launch, LaunchOptions& options) {
  add_job_options(launch, options);
  add_process_options(launch, options);
  add_output_options(launch, options);
  // As with mpirun, everything after the program's name belongs to the program.
  launch.positionals_at_end();
  launch.add_option("command", options.command, "the program and its arguments")
      ->required()
      ->type_name("PROGRAM");
}

void check(const LaunchOptions& options) {
  refuse_several_programs(options.command);
  check_environment(options.environment);
  check_folder(options.folder);
  for (const int worker : options.only) {
    if (!options.workers || worker < std::max(*options.workers, 1)) continue;
    fail(Errc::invalid_argument,
         "--only {}: there are {} workers (-n {}), numbered from 0: expected 0 to {}", worker,
         *options.workers, *options.workers, std::max(*options.workers, 1) - 1);
  }
  if (options.bind == "cores" && options.workers == 0) {
    fail(Errc::invalid_argument,
         "--bind cores with -n 0: there is no worker process to bind; give -n 1 or more, or use "
         "taskset");
  }
}

std::vector<std::pair<std::string, std::string>> variables_of(const LaunchOptions& options) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto set = [&](const char* name, std::string value) {
    if (!value.empty()) variables.emplace_back(name, std::move(value));
  };
  for (const std::string& entry : options.environment) {
    const auto equals = entry.find('=');
    variables.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  if (!options.folder.empty()) set("PWD", std::filesystem::canonical(options.folder).string());
  set("WEFT_LAUNCH_WORKERS", options.workers ? std::to_string(*options.workers) : "");
  set("WEFT_LAUNCH_CHIPS", options.chips != 0 ? std::to_string(options.chips) : "");
  set("WEFT_LAUNCH_TOPOLOGY", options.topology);
  set("WEFT_LAUNCH_MESH", options.mesh);
  set("WEFT_LAUNCH_MAX_FAILURES",
      options.max_failures ? std::to_string(*options.max_failures) : "");
  set("WEFT_LAUNCH_RESUME", options.resume);
  set("WEFT_LAUNCH_BIND", options.bind == "none" ? "" : options.bind);
  set("WEFT_LAUNCH_REPORT_BINDINGS", options.report_bindings ? "1" : "");
  set("WEFT_LAUNCH_STDIN", "1");
  return variables;
}

std::string shell_text(const LaunchOptions& options) {
  std::string text;
  if (!options.folder.empty()) text += fmt::format("cd {} && ", shell_word(options.folder));
  for (const auto& [name, value] : variables_of(options)) {
    if (name == "PWD") continue;  // cd sets it
    text += fmt::format("{}={} ", name, shell_word(value));
  }
  for (const std::string& word : options.command) text += shell_word(word) + ' ';
  text.pop_back();
  return text + '\n';
}

}  // namespace weft
