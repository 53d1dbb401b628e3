/// Measures collectives of weft and of other implementations (peers). The processes of all
/// implementations exist for the whole run, and are measured in turn, one batch at a time, together
/// with the limit of the machine.

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/bench_main.hpp"
#include "bench/collectives/chart.hpp"
#include "bench/collectives/implementations.hpp"
#include "bench/collectives/measure.hpp"
#include "bench/collectives/report.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

struct Options {
  MeasureOptions measure = {};
  std::vector<std::string> ops = {"all"};
  std::vector<std::size_t> sizes = {8, 1024, 65536, 1 << 20, 16 << 20, 64 << 20};
  std::string metric = "auto";
  std::vector<std::string> peers = {};
  bool shared = false;
  std::string json_file = {};
  std::string svg_file = {};
};

std::vector<Op> parse_ops(const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"all"}) {
    return {Op::barrier,    Op::all_reduce, Op::reduce_scatter,
            Op::all_gather, Op::all_to_all, Op::broadcast};
  }
  std::vector<Op> ops;
  for (const std::string& name : names) ops.push_back(parse_op(name));
  std::erase(ops, Op::probe);
  return ops;
}

/// Rounds `bytes` up to a size that the op can divide into equal parts.
std::size_t round_bytes(Op op, std::size_t bytes, int ranks) {
  if (op == Op::barrier) return 0;
  const std::size_t unit = sizeof(float) * static_cast<std::size_t>(has_parts(op) ? ranks : 1);
  return std::max<std::size_t>(1, (bytes + unit - 1) / unit) * unit;
}

/// Returns the metrics to measure. From 64 KiB on, `loop` alone would give too good results,
/// because successive calls move no new data between the cores.
std::vector<Metric> metrics_of(const std::string& choice, Op op, std::size_t bytes) {
  if (choice == "loop") return {Metric::loop};
  if (choice == "cycle") return {Metric::cycle};
  if (choice == "both" || op == Op::channel) return {Metric::loop, Metric::cycle};
  return {bytes < 65536 ? Metric::loop : Metric::cycle};
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures collectives of weft and its peers side by side, between processes."};
  app.add_option("--ranks", options.measure.ranks, "processes")->check(CLI::Range(2, 256));
  app.add_option("--op", options.ops,
                 "barrier, all_reduce, reduce_scatter, all_gather, all_to_all, broadcast, all, "
                 "or channel; separate several by commas")
      ->delimiter(',');
  app.add_option("--sizes", options.sizes,
                 "sizes of the larger of source and destination, in bytes (8,64K)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--metric", options.metric,
                 "loop, cycle (and marginal), both; auto: loop below 64 KiB, cycle from there")
      ->check(CLI::IsMember({"auto", "loop", "cycle", "both"}));
  app.add_option("--rounds", options.measure.rounds, "batches per implementation")
      ->check(CLI::Range(1, 10000));
  app.add_option("--batch-ms", options.measure.batch_seconds, "length of a batch")
      ->transform([](const std::string& ms) { return fmt::to_string(std::stod(ms) / 1e3); });
  CLI::Option* peers = app.add_option("--peers", options.peers,
                                      fmt::format("peers to measure beside weft: {}; default: all",
                                                  fmt::join(peer_names(), ", ")))
                           ->delimiter(',')
                           ->expected(0, CLI::detail::expected_max_vector_size);
  app.add_flag("--shared", options.shared,
               "don't wait until another run ends: the times are then useless");
  app.add_option("--json", options.json_file, "file for the results");
  app.add_option("--svg", options.svg_file, "file for a picture of the results");
  parse_or_exit(app, argc, argv);
  std::erase(options.peers, "");
  if (*peers && options.peers.empty()) options.peers = peer_names();
  return options;
}

Measurement start(const Options& options, std::size_t bytes_max, const std::vector<Op>& ops,
                  Meeting& meeting) {
  Launch probe = limit_launch(0);
  probe.name = "probe";
  auto probe_team = std::make_unique<Team>(probe, 2, meeting);
  std::vector<Launch> launches = {weft_launch(bytes_max), limit_launch(bytes_max)};
  for (Launch& peer : peer_launches(options.peers, options.measure.ranks)) {
    launches.push_back(std::move(peer));
  }
  std::vector<std::unique_ptr<Team>> teams;
  for (const Launch& launch : launches) {
    if (!std::ranges::any_of(ops, [&](Op op) { return std::ranges::count(launch.ops, op) > 0; })) {
      continue;
    }
    try {
      teams.push_back(std::make_unique<Team>(launch, options.measure.ranks, meeting));
    } catch (const Error& error) {
      if (error.code() == Errc::cancelled || launch.name == "weft") throw;
      fmt::print(stderr, "left out: {}\n", error.what());
    }
  }
  return {options.measure, std::move(probe_team), std::move(teams)};
}

std::vector<Row> measure(const Options& options) {
  const std::vector<Op> ops = parse_ops(options.ops);
  if (std::ranges::count(ops, Op::channel) > 0 && options.measure.ranks != 2) {
    fail(Errc::invalid_argument, "--op channel with --ranks {}: a channel has 2 ends",
         options.measure.ranks);
  }
  std::size_t bytes_max = 0;
  for (const std::size_t bytes : options.sizes) {
    bytes_max = std::max(bytes_max, round_bytes(Op::all_gather, bytes, options.measure.ranks));
  }
  std::optional<OnlyRun> only_run;
  if (!options.shared) only_run.emplace();
  Meeting meeting;
  Measurement measurement = start(options, bytes_max, ops, meeting);
  std::vector<Row> rows;
  for (const Op op : ops) {
    std::set<std::size_t> sizes;
    for (const std::size_t bytes : options.sizes) {
      sizes.insert(round_bytes(op, bytes, options.measure.ranks));
    }
    for (const std::size_t bytes : sizes) {
      for (const Metric metric : metrics_of(options.metric, op, bytes)) {
        const std::vector<Row> part = measurement.run(op, bytes, metric);
        print_rows(part);
        rows.insert(rows.end(), part.begin(), part.end());
      }
    }
  }
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, parse, [](const Options& options, const std::string& command) {
    catch_signals();
    const std::vector<Row> rows = measure(options);
    write_report(options.json_file, report(rows, command).dump(2) + "\n");
    write_report(options.svg_file, draw_chart(rows));
    return std::ranges::all_of(rows, [](const Row& row) { return row.verified.value_or(true); })
               ? 0
               : 1;
  });
}
