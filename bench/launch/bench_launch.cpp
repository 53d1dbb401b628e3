/// Measures the time from the start of a launcher until all processes of its job have met. weft
/// launch, mpirun and torchrun run in turn. It also measures weft inspect ps, show and why.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/python_child.hpp"
#include "bench/table.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

/// The maximum number of rounds with one job. More rounds would take too long, because a job that
/// does nothing counts as hung after a minute.
constexpr int kLookRoundsMax = 40;

struct Options {
  int processes = 4;
  int rounds = 11;
  bool peers = false;
  std::string json_file{};
};

std::string program(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename(name);
}

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

using Pipe = std::unique_ptr<FILE, int (*)(FILE*)>;

/// Returns the output of a shell command. Throws io if its exit status isn't 0.
std::string output_of(const std::string& command) {
  Pipe pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) fail(Errc::io, "can't start {}", command);
  std::string text;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe.get()) != nullptr) text += buffer;
  const int status = ::pclose(pipe.release());
  if (status != 0) fail(Errc::io, "{} ended with {}: {}", command, WEXITSTATUS(status), text);
  return text;
}

/// Runs the command and returns the milliseconds until the last process prints "entered NS", where
/// NS is a time of CLOCK_MONOTONIC.
double ms_to_enter(const std::string& command, int processes) {
  const std::int64_t begin = now_ns();
  const std::string text = output_of(command);
  std::int64_t last = 0;
  int count = 0;
  for (std::size_t at = 0; (at = text.find("entered ", at)) != std::string::npos; ++count) {
    last = std::max<std::int64_t>(last, std::stoll(text.substr(at += 8)));
  }
  if (count != processes) fail(Errc::io, "{}: {} of {} entered", command, count, processes);
  return static_cast<double>(last - begin) / 1e6;
}

struct Launcher {
  std::string name;
  std::string command;
};

std::vector<Launcher> launchers(int processes, bool peers) {
  std::vector<Launcher> all{{"weft launch", fmt::format("{} launch -n {} -- {}", program("weft"),
                                                        processes, program("bench_launch_weft"))}};
  if (!peers) return all;
  if (std::filesystem::exists(program("bench_launch_mpi"))) {
    all.push_back({"mpirun (Open MPI)",
                   fmt::format("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun "
                               "--oversubscribe -n {} {}",
                               processes, program("bench_launch_mpi"))});
  }
  if (PythonChild::has("torch")) {  // with Python 3.11, Debian's torchrun fails for redirects of 0
    all.push_back({"torchrun (Gloo)",
                   fmt::format("OMP_NUM_THREADS=1 /usr/bin/python3 -m torch.distributed.run "
                               "--standalone --nproc_per_node {} --redirects 1 --tee 1 "
                               "{}/bench/launch/launch_torch.py 2>/dev/null",
                               processes, WEFT_SOURCE_DIR)});
  }
  return all;
}

double ms_of(const std::string& command) {
  const std::int64_t begin = now_ns();
  output_of(command);
  return static_cast<double>(now_ns() - begin) / 1e6;
}

std::vector<TableRow> measure(const Options& options) {
  std::vector<TableRow> rows;
  const std::vector<Launcher> all = launchers(options.processes, options.peers);
  for (int round = 0; round <= options.rounds; ++round) {
    for (const Launcher& launcher : all) {
      const double ms = ms_to_enter(launcher.command, options.processes);
      // The first round isn't counted, because it reads files into the page cache.
      if (round > 0) row_of(rows, launcher.name, "ms").samples.push_back(ms);
    }
  }
  const double weft = median(rows.front().samples);
  for (TableRow& row : rows) row.ratio = median(row.samples) / weft;
  return rows;
}

/// Measures the commands of weft inspect on a job that runs until its stdin ends.
std::vector<TableRow> measure_looks(const Options& options) {
  constexpr int kTriesMax = 1000;
  const std::string name = fmt::format("bench-launch-{}", ::getpid());
  const std::string command = fmt::format("{} launch -n {} -- {} {} >/dev/null", program("weft"),
                                          options.processes, program("bench_launch_weft"), name);
  const Pipe job(::popen(command.c_str(), "w"), ::pclose);
  const auto is_there = [&] {
    const std::string list = output_of(program("weft") + " inspect ps");
    return list.find(name + "  running") != std::string::npos;
  };
  for (int tries = 0; !is_there(); ++tries) {
    if (tries == kTriesMax) fail(Errc::io, "{}: the job doesn't start", command);
  }
  std::vector<TableRow> rows;
  for (int round = 0; round < std::min(options.rounds, kLookRoundsMax); ++round) {
    for (const std::string& look : {std::string("ps"), "show " + name, "why " + name}) {
      row_of(rows, "weft inspect " + look.substr(0, look.find(' ')), "ms")
          .samples.push_back(ms_of(fmt::format("{} inspect {}", program("weft"), look)));
    }
  }
  return rows;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures how long it takes until all processes of a job have met."};
  app.add_option("-n", options.processes)->check(CLI::Range(1, 64))->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_flag("--peers", options.peers, "measure mpirun and torchrun too, if they are installed");
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  const std::vector<TableRow> launches = measure(options);
  print_table(fmt::format("{} processes, until all have met", options.processes), "x weft",
              launches);
  const std::vector<TableRow> looks = measure_looks(options);
  print_table("looks at a job that runs, from the start of the shell to the end", "", looks);
  fmt::print("{}\n", machine_line(whole));
  whole["results"] = {{"launch", to_json(launches)}, {"looks", to_json(looks)}};
  write_report(options.json_file, whole.dump(2) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
