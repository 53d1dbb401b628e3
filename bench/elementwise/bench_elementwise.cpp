/// Measures loops over elementwise ops on one thread. Each program runs in turn with compiled
/// kernels and in tiles. The programs are an AdamW update, which is also compared with its loads
/// and stores alone; gelu of a sum with a bias; and functions of elements that fit into the
/// second-level cache.

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/planned.hpp"
#include "bench/table.hpp"
#include "chips/cpu/loops/vectorize.hpp"
#include "spmd/ops/builder.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Clock = std::chrono::steady_clock;

struct Options {
  int rounds = 15;
  int repeats = 200;  ///< repetitions per round of programs that fit into the cache
  std::int64_t parameters = 100'000'000;
  std::string json_file;
};

struct Way {
  std::string name;
  std::function<void()> run;
};

/// Runs every way once in each round; each round begins with a different way. `ratio` is the time
/// of the first way divided by the time of this way.
std::vector<TableRow> race(const std::vector<Way>& ways, std::int64_t elements, int rounds,
                           int repeats) {
  std::vector<TableRow> rows;
  for (const Way& way : ways) {
    rows.push_back({.name = way.name, .unit = "ns/element"});
    way.run();  // the first use of the memory isn't measured
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(round)) % ways.size();
      const auto begin = Clock::now();
      for (int repeat = 0; repeat < repeats; ++repeat) ways[which].run();
      const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
      rows[which].samples.push_back(took.count() / static_cast<double>(elements) / repeats);
    }
  }
  for (TableRow& row : rows) row.ratio = paired_ratio(rows[0], row);
  return rows;
}

std::vector<float> numbers(std::int64_t count, float low, float high) {
  std::vector<float> all;
  std::uint32_t word = 12345;
  for (std::int64_t i = 0; i < count; ++i) {
    word = word * 1664525U + 1013904223U;
    all.push_back(low + (high - low) * static_cast<float>(word >> 8) * 0x1p-24F);
  }
  return all;
}

/// Loads the program with the kernels of `path` (a value of WEFT_KERNELS). All inputs have uniform
/// numbers in [low, high].
std::unique_ptr<Planned> planned(const Program& program, std::string_view path, float low,
                                 float high) {
  kernels::set_kernel_path(kernels::parse_kernel_path(path));
  auto made = std::make_unique<Planned>(program, true);
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const std::int64_t count = program.type(program.inputs[i].value).num_elements();
    const std::vector<float> elements = numbers(std::min<std::int64_t>(count, 1 << 16), low, high);
    auto* to = reinterpret_cast<float*>(made->input(i));
    for (std::int64_t at = 0; at < count; ++at) {
      to[at] = elements[static_cast<std::size_t>(at) % elements.size()];
    }
  }
  return made;
}

/// Compares the compiled and the tiled form of a program. If `limit` is given, also measures the
/// way that it makes from the compiled form.
std::vector<TableRow> compare(const Options& options, const Program& program, std::int64_t elements,
                              int repeats, float low, float high,
                              const std::function<Way(Planned&)>& limit = {}) {
  const auto compiled = planned(program, "", low, high);
  std::vector<Way> ways;
  if (limit) ways.push_back(limit(*compiled));
  ways.push_back({"compiled", [&] { compiled->run(); }});
  std::unique_ptr<Planned> tiles = planned(program, "tiles", low, high);
  ways.push_back({"tiles", [&] { tiles->run(); }});
  return race(ways, elements, options.rounds, repeats);
}

/// Makes a way that loads p, g, m and v, and stores p, m and v unchanged.
Way loads_and_stores(Planned& update, std::int64_t count) {
  volatile std::uint32_t none = 0;  // the compiler can't know its value
  const auto kernel = kernels::vectorized([count, bits = none](const kernels::KernelArgs& args) {
    auto* p = reinterpret_cast<std::uint32_t*>(args.result);
    const auto* g = reinterpret_cast<const std::uint32_t*>(args.operands[0]);
    auto* m = reinterpret_cast<std::uint32_t*>(args.scratch);
    std::uint32_t* v = m + (count + 15) / 16 * 16;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t nothing = g[i] & bits;
      p[i] |= nothing;
      m[i] |= nothing;
      v[i] |= nothing;
    }
  });
  kernels::KernelArgs args;
  args.result = update.input(0);
  args.operands[0] = update.input(1);
  args.scratch = update.input(2);
  WEFT_CHECK(update.input(3) == args.scratch + (count + 15) / 16 * 64);
  return {"its loads and stores alone", [kernel, args] { kernel.run(args); }};
}

Program function_of(OpKind kind, std::int64_t count) {
  Program program;
  Builder build(program);
  const ValueId x =
      program.add_input({DType::f32, {count}}, InputKind::data, "x", Sharding::closed());
  program.add_output(build.unary(kind, x), "y", Sharding::closed());
  return program;
}

/// Makes a program that computes gelu(x + b), by tanh; b is the same for each row.
Program gelu_with_bias(std::int64_t rows, std::int64_t columns) {
  Program program;
  Builder build(program);
  const TensorType type{DType::f32, {rows, columns}};
  const auto number = [&](double x) { return build.constant(x, type); };
  const auto op = [&](OpKind kind, ValueId a, ValueId b) { return build.binary(kind, a, b); };
  const ValueId in = program.add_input(type, InputKind::data, "x", Sharding::closed());
  const ValueId bias =
      program.add_input({DType::f32, {columns}}, InputKind::data, "b", Sharding::closed());
  const ValueId x =
      op(OpKind::add, in, build.broadcast_in_dim(bias, type.shape, std::array<std::int64_t, 1>{1}));
  const ValueId cube = op(OpKind::multiply, op(OpKind::multiply, x, x), x);
  const ValueId inner =
      op(OpKind::multiply, op(OpKind::add, x, op(OpKind::multiply, cube, number(0.044715))),
         number(0.7978845608));
  const ValueId half = op(OpKind::multiply, x, number(0.5));
  const ValueId outer = op(OpKind::add, build.unary(OpKind::tanh, inner), number(1));
  program.add_output(op(OpKind::multiply, half, outer), "y", Sharding::closed());
  return program;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  const auto show = [&](const std::string& title, const std::string& ratio,
                        const std::vector<TableRow>& rows) {
    print_table(title, ratio, rows);
    whole[title] = to_json(rows);
  };
  const std::int64_t count = options.parameters;
  show(fmt::format("AdamW, {} parameters", count), "limit to it",
       compare(options, adamw({count}), count, 1, 0.1F, 1,
               [&](Planned& update) { return loads_and_stores(update, count); }));
  show("gelu of x + bias, 4096 x 1024", "compiled to it",
       compare(options, gelu_with_bias(4096, 1024), 4096 * 1024, 1, -3, 3));
  constexpr std::int64_t kInCache = 65536;
  for (const OpKind kind : {OpKind::exponential, OpKind::log, OpKind::tanh, OpKind::erf}) {
    show(fmt::format("{}, {} elements", to_string(kind), kInCache), "compiled to it",
         compare(options, function_of(kind, kInCache), kInCache, options.repeats, 0.01F, 4));
  }
  fmt::print("{}\n", machine_line(whole));
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Measures loops over elementwise ops, alternating between compiled kernels and tiles."};
  const auto at_least_one = CLI::Range(1, 1'000'000'000);
  app.add_option("--rounds", options.rounds)->check(at_least_one)->capture_default_str();
  app.add_option("--repeats", options.repeats,
                 "repeats, within a round, of a case whose data fit in the cache")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--parameters", options.parameters, "number of parameters that AdamW updates")
      ->check(at_least_one)
      ->capture_default_str();
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
