/// Measures causal attention and its gradient on one thread. For comparison, a matrix product is
/// measured in the same rounds. GF/s counts two products in the forward pass and five in the
/// backward pass, but only for visible scores: T (T + 1) / 2 of T x T. With --masks, it instead
/// compares forms of attention with a mask or a bias.

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/attention/masked.hpp"
#include "bench/bench_main.hpp"
#include "bench/machine.hpp"
#include "bench/parse_options.hpp"
#include "bench/table.hpp"
#include "chips/cpu/loops/aligned_buffer.hpp"
#include "chips/cpu/loops/kernel.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/program/element.hpp"

namespace {

using namespace weft;
using namespace weft::bench;
using Clock = std::chrono::steady_clock;

struct Options {
  int rounds = 15;
  std::int64_t rows = 16384;  ///< the number of queries, summed over all heads
  bool masks = false;
  std::string json_file;
};

/// Measures the time of the last op of a program: of its kernel, with operands that are uniform in
/// [-2, 2].
class TimedOp {
 public:
  TimedOp(std::string name, double flop, const Program& program)
      : name_(std::move(name)), flop_(flop) {
    const Mesh mesh({1}, {"data"});
    const OpId op = program.num_ops() - 1;
    kernel_ = kernels::prepare(program, op, {mesh, 0, kernels::make_matmul_stream()});
    const auto operands = program.op_operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      args_.operands[i] = random(program.type(operands[i]));
    }
    args_.result = buffer(static_cast<std::size_t>(program.type(program.result(op)).bytes()));
    args_.scratch = buffer(kernel_.scratch_bytes);
    kernel_.run(args_);  // the first use of the memory isn't measured
  }

  const std::string& name() const { return name_; }
  double gigaflops() const {
    const auto begin = Clock::now();
    kernel_.run(args_);
    const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
    return flop_ / took.count();
  }

 private:
  std::byte* buffer(std::size_t bytes) { return buffers_.emplace_back(bytes).data(); }
  std::byte* random(const TensorType& type) {
    std::byte* const bytes = buffer(static_cast<std::size_t>(type.bytes()));
    for (std::int64_t i = 0; i < type.num_elements(); ++i) {
      word_ = word_ * 1664525U + 1013904223U;
      store_element(type.dtype, 4 * static_cast<double>(word_ >> 8) * 0x1p-24 - 2,
                    bytes + i * byte_size(type.dtype));
    }
    return bytes;
  }

  std::string name_;
  double flop_;
  std::uint32_t word_ = 12345;
  kernels::Kernel kernel_;
  kernels::KernelArgs args_;
  std::vector<kernels::AlignedBuffer> buffers_;
};

TimedOp product() {
  constexpr std::int64_t kSize = 512;
  Program program;
  Builder build(program);
  const auto input = [&] {
    return program.add_input({DType::f32, {kSize, kSize}}, InputKind::data, "x", {});
  };
  const ValueId lhs = input();
  build.dot_general(lhs, input(), {{}, {}, {1}, {0}});
  return {"f32 product of 512x512x512", 2.0 * kSize * kSize * kSize, program};
}

TimedOp attention(DType dtype, std::int64_t heads, std::int64_t length, std::int64_t size,
                  bool backward) {
  Program program;
  Builder build(program);
  std::vector<ValueId> in;
  for (int i = 0; i < (backward ? 5 : 3); ++i) {
    in.push_back(program.add_input({dtype, {1, heads, length, size}}, InputKind::data, "x", {}));
  }
  const AttentionForm form{.causal = true, .scale = 0.125};
  if (backward) {
    build.attention_grad(in[0], in[1], in[2], in[3], in[4], form);
  } else {
    build.attention(in[0], in[1], in[2], form);
  }
  const double visible = static_cast<double>(heads * (length * (length + 1) / 2));
  return {fmt::format("{} {}, T {}, heads of {}", to_string(dtype),
                      backward ? "backward" : "forward", length, size),
          (backward ? 5 : 2) * 2.0 * visible * static_cast<double>(size), program};
}

std::vector<TableRow> causal_attention(const Options& options) {
  std::vector<TimedOp> ops;
  ops.push_back(product());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t size : {32, 64}) {
      for (const std::int64_t length : {128, 512, 2048}) {
        const std::int64_t heads = std::max<std::int64_t>(options.rows / length, 1);
        for (const bool backward : {false, true}) {
          ops.push_back(attention(dtype, heads, length, size, backward));
        }
      }
    }
  }
  std::vector<TableRow> rows;
  for (int round = 0; round < options.rounds; ++round) {
    for (const TimedOp& op : ops) row_of(rows, op.name(), "GF/s").samples.push_back(op.gigaflops());
  }
  for (TableRow& row : rows) row.ratio = paired_ratio(row, rows[0]);
  return rows;
}

int run(const Options& options, const std::string& command) {
  nlohmann::json whole = describe_run(command);
  const std::vector<TableRow> rows =
      options.masks ? masked_attention(options.rounds, options.rows) : causal_attention(options);
  print_table(
      fmt::format("{} attention, {} rows", options.masks ? "Masked" : "Causal", options.rows),
      options.masks ? "to causal" : "to the product", rows);
  whole["attention"] = to_json(rows);
  fmt::print("{}\n", machine_line(whole));
  write_report(options.json_file, whole.dump(1) + "\n");
  return 0;
}

Options parse(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures causal attention and its gradient beside a product of matrices."};
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--rows", options.rows, "number of queries, over all heads")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_flag("--masks", options.masks,
               "measure masks and a bias, applied inside the tiles or by separate ops");
  app.add_option("--json", options.json_file, "file for the results");
  parse_or_exit(app, argc, argv);
  return options;
}

}  // namespace

int main(int argc, char** argv) { return weft::bench::bench_main(argc, argv, parse, run); }
