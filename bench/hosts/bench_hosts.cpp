/// Measures all_reduce (f32) between two hosts in comparison with a plain TCP socket, UCX alone,
/// Gloo and Open MPI. With several chips per host, the comparison is with chips that are hosts of
/// their own. The hosts are network namespaces of this machine with a line between them whose rate
/// is limited. Prints the median, minimum and maximum of interleaved rounds; the ratio to the plain
/// socket or, with several chips, to chips that share no memory; and the bytes that host 0 sends
/// per call, as a multiple of the least possible number, 2 (h - 1) / h times the value's bytes (h =
/// 2 hosts).
///
/// Needs root, ip and tc (iproute2); otherwise it says why it is skipped, and exits with 77.
/// Expected at 1 Gbit/s: from 1 MiB on at most 1.1 times the plain socket, 1 KiB at most 1.5 times,
/// at most 1.02 times the least bytes, and with 4 chips at most 1 / 3.8 of the time of eight hosts.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "bench/bench_main.hpp"
#include "bench/collectives/team.hpp"
#include "bench/hosts/notes.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/table.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/net_machines.hpp"
#include "tests/support/wire_book.hpp"
#include "transport/wires/wires.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Words = std::vector<std::string>;

constexpr int kSkipped = 77;
constexpr int kHosts = 2;
constexpr double kBatchSeconds = 0.2;

struct Options {
  int mbit = 1000;
  int chips = 4;
  int rounds = 5;
  std::vector<std::size_t> sizes = {1 << 10, 1 << 20, 16 << 20};
  bool has_peers = false;
  bool shared = false;
  std::string json_file = {};
};

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures all_reduce between two hosts of this machine, over a limited line."};
  app.add_option("--mbit", options.mbit, "rate of the line in Mbit/s; 0: not limited")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--chips", options.chips, "chips per host where hosts have several")
      ->check(CLI::Range(1, 16));
  app.add_option("--rounds", options.rounds, "batches per implementation")
      ->check(CLI::Range(1, 1000));
  app.add_option("--sizes", options.sizes, "bytes of the value (1K,16M)")
      ->delimiter(',')
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--peers", options.has_peers, "measure Gloo and Open MPI too");
  app.add_flag("--shared", options.shared,
               "don't wait until another run ends: the times are then useless");
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  for (std::size_t& size : options.sizes) size = std::max<std::size_t>(size / 64 * 64, 64);
  return options;
}

std::string program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Returns the words to put before the command of a rank on this machine.
Words on(const testing::NetMachines& machines, int machine) {
  return machines.prefix(machine) +
         Words{"/usr/bin/env", fmt::format("{}={}", kAddressVariable, machines.address(machine))};
}

Launch network(const testing::NetMachines& machines, const std::string& way, int chips,
               std::size_t bytes_max) {
  return {.name = way,
          .setting = chips == 1 ? "" : fmt::format("{} chips", chips),
          .command = {program("bench_rank_network"), way, fmt::to_string(chips),
                      fmt::to_string(bytes_max)},
          .prefixes = {on(machines, 0), on(machines, 1)},
          .ops = {Op::all_reduce}};
}

Launch gloo(const testing::NetMachines& machines) {
  return {.name = "gloo",
          .command = {program("bench_rank_gloo"), "ring"},
          .prefixes = {on(machines, 0), on(machines, 1)},
          .ops = {Op::all_reduce}};
}

/// Returns the launch of Open MPI. It runs on machine 0, and starts its daemon on machine 1 by a
/// script instead of ssh.
Launch open_mpi(const testing::NetMachines& machines, const std::string& agent,
                const std::string& name, const Words& settings) {
  std::string prefix;
  for (const std::string& word : machines.prefix(1)) {
    prefix += prefix.empty() ? "" : " ";
    prefix += fmt::format("'{}'", word);
  }
  std::ofstream(agent) << "#!/bin/sh\nshift\nexec " << prefix << " /bin/sh -c \"$*\"\n";
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  const std::string hosts = fmt::format("{}:1,{}:1", machines.address(0), machines.address(1));
  return {.name = name,
          .command = Words{"mpirun.openmpi", "-n", "2", "--allow-run-as-root", "--host", hosts,
                           "--bind-to", "none", "--mca", "plm_rsh_agent", agent, "--mca",
                           "oob_tcp_if_include", "eth0", "-x", "WEFT_BENCH_SOCKET"} +
                     settings + Words{program("bench_rank_ompi")},
          .prefixes = {on(machines, 0)},
          .rank_each = false,
          .ops = {Op::all_reduce}};
}

/// Teams that are compared. The launches of weft come first. The ratio of a row is to the team of
/// its group whose name is `base`.
struct Group {
  std::string title;
  std::string base;
  std::vector<Launch> launches;
};

std::vector<Group> groups(const Options& options, const testing::NetMachines& machines,
                          const std::string& agent) {
  const std::size_t most = *std::ranges::max_element(options.sizes);
  const bool has_ucx = [] {
    try {
      make_ucx_wires({.job = "probe", .secret = std::string(32, 's')});
      return true;
    } catch (const Error& error) {
      fmt::print(stderr, "left out: UCX: {}\n", error.what());
      return false;
    }
  }();
  Group one{.title = "2 hosts of one chip", .base = "socket", .launches = {}};
  for (const char* way : {"tls", "ucx", "socket", "ucx-alone"}) {
    if (!has_ucx && std::string_view(way).starts_with("ucx")) continue;
    one.launches.push_back(network(machines, way, 1, most));
  }
  const auto has = [&](const char* name) {
    if (!options.has_peers || std::filesystem::exists(program(name))) return options.has_peers;
    fmt::print(stderr, "left out: {} wasn't built\n", name);
    return false;
  };
  if (has("bench_rank_gloo")) one.launches.push_back(gloo(machines));
  if (has("bench_rank_ompi")) {
    const Words tcp = {
        "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "eth0"};
    one.launches.push_back(open_mpi(machines, agent, "ompi", tcp));
  }
  if (options.chips == 1) return {one};
  Group many{.title = fmt::format("2 hosts of {} chips", options.chips),
             .base = "tls-flat",
             .launches = {network(machines, "tls", options.chips, most),
                          network(machines, "tls-flat", options.chips, most)}};
  return {one, many};
}

std::uint64_t bytes_sent(const testing::NetMachines& machines) {
  testing::AppProcess cat(machines.prefix(0) +
                          Words{"/bin/sh", "-c", "ip -s link show eth0 | tail -1"});
  cat.wait();
  return std::strtoull(cat.output().c_str(), nullptr, 10);
}

/// Returns the bytes that host 0 sends per call, as a multiple of the least possible number.
double bytes_ratio(const testing::NetMachines& machines, Team& team, Request request) {
  const std::uint64_t before = bytes_sent(machines);
  team.run(request);
  const auto sent = static_cast<double>(bytes_sent(machines) - before);
  const std::uint64_t next = bytes_sent(machines);
  request.repetitions *= 3;
  team.run(request);
  const auto more = static_cast<double>(bytes_sent(machines) - next);
  const auto calls = static_cast<double>(request.repetitions) * 2 / 3;
  return (more - sent) / calls / (2.0 * (kHosts - 1) / kHosts * static_cast<double>(request.bytes));
}

/// Measures the teams of a group in turn. Returns whether all results were right.
bool measure(const Options& options, const testing::NetMachines& machines, const Group& group,
             Meeting& meeting, nlohmann::json& report) {
  std::vector<std::unique_ptr<Team>> teams;
  for (const Launch& launch : group.launches) {
    try {
      teams.push_back(std::make_unique<Team>(launch, kHosts, meeting));
    } catch (const Error& error) {
      if (error.code() == Errc::cancelled || launch.name.starts_with("tls")) throw;
      fmt::print(stderr, "left out: {}\n", error.what());
    }
  }
  bool is_right = true;
  for (const std::size_t bytes : options.sizes) {
    std::vector<Request> requests;
    for (const auto& team : teams) {
      Request request{.op = Op::all_reduce, .bytes = bytes, .repetitions = 3};
      const Reply reply = team->run(request);
      const double calls = kBatchSeconds / std::max(reply.call_seconds, 1e-6);
      request.repetitions = std::clamp<std::int64_t>(static_cast<std::int64_t>(calls), 3, 5000);
      requests.push_back(request);
    }
    std::vector<TableRow> rows;
    for (int round = 0; round < options.rounds; ++round) {
      for (std::size_t i = 0; i < teams.size(); ++i) {
        const std::size_t turn = round % 2 == 0 ? i : teams.size() - 1 - i;
        requests[turn].round = round;
        const Reply reply = teams[turn]->run(requests[turn]);
        if (!reply.verified.value_or(true)) {
          fmt::print(stderr, "wrong: {}, {} bytes\n", teams[turn]->label(), bytes);
          is_right = false;
        }
        row_of(rows, teams[turn]->label(), "us").samples.push_back(reply.call_seconds * 1e6);
      }
    }
    const auto base = std::ranges::find_if(
        rows, [&](const TableRow& row) { return row.name.starts_with(group.base); });
    for (TableRow& row : rows) row.ratio = paired_ratio(row, *base);
    const std::string title =
        fmt::format("{}: all_reduce of {} KiB, {} Mbit/s", group.title, bytes >> 10, options.mbit);
    print_table(title, "to " + group.base, rows);
    const double sent = bytes_ratio(machines, *teams.front(), requests.front());
    fmt::print("{} sends {:.3f} times the least bytes\n\n", teams.front()->label(), sent);
    report.push_back({{"title", title}, {"rows", to_json(rows)}, {"bytes_to_least", sent}});
  }
  return is_right;
}

}  // namespace

int main(int argc, char** argv) {
  return bench_main(argc, argv, parse, [](const Options& options, const std::string& command) {
    catch_signals();
    testing::set_ucx_variables();
    testing::NetMachines machines(kHosts);
    if (!machines.why_not().empty()) {
      fmt::print("SKIPPED: {}\n", machines.why_not());
      return kSkipped;
    }
    for (int machine = 0; options.mbit > 0 && machine < kHosts; ++machine) {
      if (machines.limit(machine, options.mbit)) continue;
      fmt::print("SKIPPED: tc can't limit lines here\n");
      return kSkipped;
    }
    std::optional<OnlyRun> only_run;
    if (!options.shared) only_run.emplace();
    Meeting meeting;
    nlohmann::json results = nlohmann::json::array();
    bool is_right = true;
    for (const Group& group : groups(options, machines, meeting.make_folder() + "/agent")) {
      is_right &= measure(options, machines, group, meeting, results);
    }
    const nlohmann::json run = describe_run(command);
    fmt::print("{}\n", machine_line(run));
    write_report(options.json_file, nlohmann::json{{"run", run}, {"results", results}}.dump(2));
    return is_right ? 0 : 1;
  });
}
