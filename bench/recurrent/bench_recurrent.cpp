/// Measures an LSTM over long sequences. weft's loop, on one chip, and torch's nn.LSTM, on one
/// thread, run in turn.

#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <weft/weft.hpp>

#include "bench/bench_main.hpp"
#include "bench/job.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/python_child.hpp"
#include "bench/table.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Clock = std::chrono::steady_clock;

struct Options {
  std::int64_t time = 512;
  std::int64_t batch = 32;
  std::int64_t input = 256;
  std::int64_t hidden = 256;
  int rounds = 9;
  int steps = 3;  ///< the number of steps per round, for each row of the table
  std::string json_file;
};

struct Net : Module {
  explicit Net(const Options& options)
      : lstm(*this, "lstm", {.input_size = options.input, .hidden_size = options.hidden}) {}
  LSTM lstm;
};

std::optional<PythonChild> torch_of(const Options& options) {
  if (!PythonChild::has("torch")) {
    fmt::print(stderr, "left out: torch: install Debian's python3-torch\n");
    return {};
  }
  return std::optional<PythonChild>(
      std::in_place, "bench/recurrent/torch_lstm.py",
      std::vector{fmt::to_string(options.time), fmt::to_string(options.batch),
                  fmt::to_string(options.input), fmt::to_string(options.hidden)});
}

/// Calls `step` and waits for its result, `count` times. Returns the milliseconds of each call.
template <typename Step>
std::vector<double> times_of(int count, Step& step, const Tensor& x) {
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    (void)step(x).item();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return times;
}

void append(TableRow& row, const std::vector<double>& times) {
  row.samples.insert(row.samples.end(), times.begin(), times.end());
}

/// Measures all rows. Sets `blas` to the name of the library that torch uses for matrix products,
/// because torch's times depend on it.
std::vector<TableRow> measure(const Options& options, std::string& blas) {
  std::vector<TableRow> rows;
  for (const char* name : {"forward, weft", "forward, torch", "training, weft", "training, torch"})
    rows.push_back({.name = name, .unit = "ms"});
  std::optional<PythonChild> torch = torch_of(options);
  if (torch) blas = torch->ask("blas").at("blas").get<std::string>();
  run_job(1, [&](TrainContext& /*context*/) {
    Net net(options);
    SGD sgd(net.parameters(), {.lr = 1e-3});
    const auto loss_of = [&](const Tensor& x) {
      const Tensor y = net.lstm(x).output;
      return mean(y * y);
    };
    auto forward = compile(loss_of);
    auto training = compile([&](const Tensor& x) {
      const Tensor loss = loss_of(x);
      sgd.step(grad(loss, net.parameters()));
      return loss;
    });
    const Tensor x = rand({options.time, options.batch, options.input});
    weft::sync();
    for (int round = 0; round <= options.rounds; ++round) {
      const auto add = [&](std::size_t row, const std::vector<double>& times) {
        if (round > 0) append(rows[row], times);  // the first round compiles, so it isn't counted
      };
      const auto ask = [&](const char* what) {
        return torch->ask(fmt::format("{} {}", what, options.steps))
            .at("ms")
            .get<std::vector<double>>();
      };
      add(0, times_of(options.steps, forward, x));
      if (torch) add(1, ask("forward"));
      add(2, times_of(options.steps, training, x));
      if (torch) add(3, ask("training"));
    }
  });
  if (torch) {
    rows[0].ratio = paired_ratio(rows[0], rows[1]);
    rows[2].ratio = paired_ratio(rows[2], rows[3]);
  }
  std::erase_if(rows, [](const TableRow& row) { return row.samples.empty(); });
  return rows;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures an LSTM, in forward passes and training steps, beside torch's LSTM."};
  const auto at_least_one = CLI::Range(1, 1'000'000);
  app.add_option("--time", options.time)->check(at_least_one)->capture_default_str();
  app.add_option("--batch", options.batch)->check(at_least_one)->capture_default_str();
  app.add_option("--input", options.input, "features")->check(at_least_one)->capture_default_str();
  app.add_option("--hidden", options.hidden)->check(at_least_one)->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(at_least_one)->capture_default_str();
  app.add_option("--steps", options.steps, "steps of a round, for each row")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  std::string blas;
  const std::vector<TableRow> rows = measure(options, blas);
  print_table(fmt::format("an LSTM of {} steps, batch {}, {} to {} features", options.time,
                          options.batch, options.input, options.hidden),
              "of torch's", rows);
  if (!blas.empty()) fmt::print("torch's BLAS: {}\n", blas);
  whole["torch_blas"] = blas;
  fmt::print("{}\n", machine_line(whole));
  whole["recurrent"] = to_json(rows);
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
