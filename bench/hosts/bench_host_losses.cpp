/// Measures how long a job over two hosts makes no progress when it loses a host. The hosts are
/// network namespaces of this machine with a limited line between them. Each host has the whole
/// state, and each step adds a number over both hosts. Times go from the loss to the end of the
/// next step:
///
///   killed      host 1's first process is killed, and another one is started at once
///   silent      host 1's link goes down, and the spare machine is started when host 0 says so
///   rejoined    host 1's link goes down, and up again when host 0 says that the host is lost; the
///               time begins there, and no state is sent
///
/// `transfer` is the rate at which the state reaches the replacing host, as a share of the line's
/// rate.
///
///   bench_host_losses [ROUNDS [MIB [MBIT]]]      default 3 256 1000
///
/// Needs root, ip and tc (iproute2); otherwise it says why it is skipped, and exits with 77.
/// Expected, without the time for the state: killed at most 1 s, silent at most 6 s, rejoined at
/// most 2 s, and a transfer of at least 80 %.

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <weft/weft.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/table.hpp"
#include "tests/support/slots.hpp"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

constexpr int kSkipped = 77;
constexpr int kHosts = 2;
constexpr const char* kMibVariable = "BENCH_STATE_MIB";

void train(TrainContext& ctx) {
  const std::int64_t mib = std::atoll(std::getenv(kMibVariable));
  Parameter large = make_parameter("large", 1, {mib, std::int64_t{1} << 18});
  Parameter number = make_parameter("number", 0, {1});
  Tensor parts = to_device(std::vector<float>{1, 2}, {kHosts});
  mark_sharding(parts, *ctx.mesh(), {{"data"}});
  while (!ctx.reached_preemption()) {
    number.assign(number + sum(parts));
    large.assign(large * 0.5);
    weft::sync();
    if (ctx.world_rank() != 0) continue;
    fmt::print("step {}\n", ctx.step());
    std::fflush(stdout);
  }
}

/// Runs the program of a host.
int run_host() {
  const RunConfig run{.name = "losses", .failure = {.max_failures = 5, .host_timeout_s = 5}};
  const Result result = Trainer{train, {.scaling = {.num_workers = kHosts}, .run = run}}.fit();
  return result.ok() ? 0 : 1;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// A job over machines 0 and 1. Machine 2 is spare.
class Job {
 public:
  explicit Job(testing::NetMachines& machines)
      : machines_(machines),
        slots_({std::filesystem::read_symlink("/proc/self/exe").string(), "host"},
               {"WEFT_LOG=info"}, &machines) {
    for (const int host : {0, 1}) slots_.start(host);
    await("] step 20");
  }
  ~Job() {
    ::kill(slots_.host(0).pid(), SIGKILL);  // ends all processes of the machine
    slots_.host(0).wait();
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void kill() { ::kill(slots_.host(1).pid(), SIGKILL); }
  void link(bool is_up) { machines_.set_link(1, is_up); }
  void start_other(int machine) { slots_.start_on(machine, 1); }
  void await(const std::string& text) {
    if (slots_.host(0).wait_for_line(text).empty()) {
      fail(Errc::io, "host 0 never said '{}': {}", text, slots_.host(0).output());
    }
  }
  /// Waits for the job's next step. If `sends_state`, returns the seconds from the start of the
  /// state's transfer to the end of that step; otherwise returns 0.
  double await_next_step(bool sends_state) {
    await(sends_state ? "gets the state of step" : "the job continues at step");
    const Clock::time_point begin = Clock::now();
    await("] step ");
    return sends_state ? seconds_since(begin) : 0;
  }

 private:
  testing::NetMachines& machines_;
  testing::Slots slots_;
};

void measure(testing::NetMachines& machines, double line_mib_s, double mib,
             std::vector<bench::TableRow>& rows) {
  const auto add = [&](const char* name, Clock::time_point begin, double transfer) {
    bench::row_of(rows, name, "s").samples.push_back(seconds_since(begin) - transfer);
    if (transfer == 0) return;
    const double share = mib / transfer / line_mib_s;
    bench::row_of(rows, "transfer", "of the line").samples.push_back(share);
  };
  {
    Job job(machines);
    const Clock::time_point begin = Clock::now();
    job.kill();
    job.start_other(2);
    add("killed", begin, job.await_next_step(true));
  }
  {
    Job job(machines);
    const Clock::time_point begin = Clock::now();
    job.link(false);
    job.await("is lost: it has been silent for");
    job.start_other(2);
    add("silent", begin, job.await_next_step(true));
    job.link(true);
  }
  {
    Job job(machines);
    job.link(false);
    job.await("is lost: it has been silent for");
    const Clock::time_point begin = Clock::now();
    job.link(true);
    job.await_next_step(false);
    add("rejoined", begin, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  worker_main(argc, argv);
  if (argc == 2 && std::string_view(argv[1]) == "host") return run_host();
  return bench::bench_main(
      argc, argv, [](int, char**) { return 0; },
      [&](int, const std::string& command) {
        const auto number = [&](int i, int usual) { return argc > i ? std::atoi(argv[i]) : usual; };
        const int rounds = number(1, 3), mib = number(2, 256), mbit = number(3, 1000);
        if (rounds < 1 || mib < 1 || mbit < 1) {
          fmt::print(stderr, "bench_host_losses [ROUNDS [MIB [MBIT]]]: expected numbers from 1\n");
          return 2;
        }
        testing::NetMachines machines(3);
        bool is_limited = machines.why_not().empty();
        for (int i = 0; is_limited && i < 3; ++i) is_limited = machines.limit(i, mbit);
        if (!is_limited) {
          fmt::print("SKIPPED: {}\n",
                     machines.why_not().empty() ? "tc can't limit lines here" : machines.why_not());
          return kSkipped;
        }
        ::setenv(kMibVariable, fmt::to_string(mib).c_str(), 1);
        std::vector<bench::TableRow> rows;
        for (int i = 0; i < rounds; ++i) measure(machines, mbit * 1e6 / 8 / (1 << 20), mib, rows);
        bench::print_table(fmt::format("2 hosts, state of {} MiB, line of {} Mbit/s", mib, mbit),
                           "", rows);
        fmt::print("{}\n", bench::machine_line(bench::describe_run(command)));
        return 0;
      });
}
