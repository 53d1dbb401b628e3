/// Measures calls and streams between two processes of a host: weft's actors, weft's channel, and,
/// with --peers, iceoryx, ZeroMQ and CAF. In each round all of them run in turn.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/bench_main.hpp"
#include "bench/collectives/process.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/table.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Json = nlohmann::json;

struct Options {
  int rounds = 7;
  int ms = 300;
  std::vector<std::size_t> call_bytes{32, 4096, std::size_t{1} << 20, std::size_t{64} << 20};
  std::vector<std::size_t> stream_bytes{64, std::size_t{1} << 20};
  bool peers = false;
  std::string json_file{};
};

std::string program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename(name);
}

/// Runs the program of an implementation, and returns the times that it measures.
Json measure(const std::string& implementation, const std::string& what, std::size_t bytes,
             int ms) {
  const std::string command =
      fmt::format("{} {} {} {}", program("bench_calls_" + implementation), what, bytes, ms);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) fail(Errc::io, "can't start {}", command);
  std::string text;
  char buffer[256];
  while (std::fgets(buffer, sizeof buffer, pipe.get()) != nullptr) text += buffer;
  const Json result = Json::parse(text, nullptr, false);
  if (result.is_discarded()) fail(Errc::io, "{} printed \"{}\"", command, text);
  return result;
}

std::vector<std::string> implementations(bool peers) {
  std::vector<std::string> all{"weft", "channel"};
  for (const char* peer : {"iceoryx", "zeromq", "caf"}) {
    if (peers && std::filesystem::exists(program(std::string("bench_calls_") + peer))) {
      all.emplace_back(peer);
    }
  }
  return all;
}

/// Measures one case with all implementations. The ratios are to weft's calls.
std::vector<TableRow> measure_case(const Options& options, const std::string& what,
                                   std::size_t bytes) {
  std::vector<TableRow> rows;
  const std::vector<std::string> all = implementations(options.peers);
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::string& each : all) {
      const Json got = measure(each, what, bytes, options.ms);
      if (what == "call") {
        row_of(rows, each, "us").samples.push_back(got.at("p50").get<double>());
        row_of(rows, each + " p99", "us").samples.push_back(got.at("p99").get<double>());
      } else {
        row_of(rows, each, "1/s").samples.push_back(got.at("per_s").get<double>());
      }
    }
  }
  const TableRow base = rows.front();
  for (TableRow& row : rows) row.ratio = paired_ratio(row, base);
  return rows;
}

int run(const Options& options, const std::string& command) {
  std::optional<Process> daemon;
  if (options.peers && std::filesystem::exists(program("bench_calls_iceoryx"))) {
    daemon.emplace(std::vector<std::string>{"iox-roudi", "-c", program("bench_calls_iceoryx.toml"),
                                            "-l", "error", "-m", "off"},
                   Process::Environment{});
  }
  Json report{{"run", describe_run(command)}, {"cases", Json::array()}};
  const auto add = [&](const std::string& what, std::size_t bytes) {
    const std::vector<TableRow> rows = measure_case(options, what, bytes);
    print_table(fmt::format("{} of {} bytes", what, bytes), "/ weft", rows);
    report["cases"].push_back({{"what", what}, {"bytes", bytes}, {"rows", to_json(rows)}});
  };
  for (const std::size_t bytes : options.call_bytes) add("call", bytes);
  for (const std::size_t bytes : options.stream_bytes) add("stream", bytes);
  fmt::print("{}\n", machine_line(report["run"]));
  write_report(options.json_file, report.dump(2) + "\n");
  return 0;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures calls and streams between two processes, beside peers"};
  app.add_option("--rounds", options.rounds, "of all implementations in turn")
      ->check(CLI::Range(1, 1000));
  app.add_option("--ms", options.ms, "milliseconds of a measurement")->check(CLI::Range(1, 60'000));
  app.add_option("--calls", options.call_bytes, "bytes of the messages of calls")->delimiter(',');
  app.add_option("--streams", options.stream_bytes, "bytes of the messages of streams")
      ->delimiter(',');
  app.add_flag("--peers", options.peers, "measure iceoryx, ZeroMQ and CAF too");
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
