/// Measures single ops, and an AdamW update as a plan, on one thread. The shapes are those of the
/// digits example, or have 1 MiB per operand. `bytes_per_second` counts bytes read and written;
/// `FLOP` of a dot_general is 2 m n k.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/planned.hpp"
#include "chips/cpu/loops/aligned_buffer.hpp"
#include "chips/cpu/loops/kernel.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"

namespace {

using namespace weft;
using bench::Planned;

/// Runs the last op of a program, with its kernel and buffers. Earlier ops only define its
/// operands.
class OneOp {
 public:
  explicit OneOp(Program program) : program_(std::move(program)) {
    const Mesh mesh({1}, {"data"});
    const kernels::ChipContext chip{mesh, 0, kernels::make_matmul_stream()};
    const OpId op = program_.num_ops() - 1;
    kernel_ = kernels::prepare(program_, op, chip);
    const auto operands = program_.op_operands(op);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      args_.operands[i] = buffer(static_cast<std::size_t>(program_.type(operands[i]).bytes()));
      bytes_ += program_.type(operands[i]).bytes();
    }
    const TensorType& result = program_.type(program_.result(op));
    args_.result = buffer(static_cast<std::size_t>(result.bytes()));
    args_.scratch = buffer(kernel_.scratch_bytes);
    bytes_ += result.bytes();
  }

  std::int64_t bytes() const { return bytes_; }
  void run() const { kernel_.run(args_); }

 private:
  /// Returns a buffer of zeros. No kernel's time depends on the values of its operands.
  std::byte* buffer(std::size_t bytes) { return buffers_.emplace_back(bytes).data(); }

  Program program_;
  kernels::Kernel kernel_;
  kernels::KernelArgs args_;
  std::vector<kernels::AlignedBuffer> buffers_;
  std::int64_t bytes_ = 0;
};

/// Runs all ops of a program from op `first` on, each with its own buffers.
class AllOps {
 public:
  AllOps(const Program& program, OpId first) {
    for (OpId op = first; op < program.num_ops(); ++op) {
      Program one;
      std::vector<ValueId> operands;
      for (const ValueId operand : program.op_operands(op)) {
        operands.push_back(one.add_input(program.type(operand), InputKind::data, "x", {}));
      }
      one.const_pool = program.const_pool;
      one.add_op(program.kind(op), operands, program.op_attrs(op),
                 program.type(program.result(op)));
      ops_.emplace_back(std::move(one));
    }
  }

  void run() const {
    for (const OneOp& op : ops_) op.run();
  }

 private:
  std::vector<OneOp> ops_;
};

using MakeOp = std::function<void(Builder&, const std::function<ValueId(Shape)>& input)>;

void add(const std::string& name, const MakeOp& make, double flop = 0) {
  benchmark::RegisterBenchmark(name.c_str(), [make, flop](benchmark::State& state) {
    Program program;
    Builder build(program);
    make(build, [&](const Shape& shape) {
      return program.add_input({DType::f32, shape}, InputKind::data, "x", {});
    });
    const OneOp op(std::move(program));
    for (auto _ : state) {
      op.run();
      benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * op.bytes());
    if (flop > 0) {
      state.counters["FLOP"] =
          benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
    }
  });
}

void add_elementwise(const Shape& shape) {
  const std::string at = "/" + shape.to_string();
  for (const OpKind kind : {OpKind::exponential, OpKind::log, OpKind::tanh, OpKind::sqrt}) {
    add(std::string(to_string(kind)) + at,
        [=](Builder& build, auto& input) { build.unary(kind, input(shape)); });
  }
  for (const OpKind kind : {OpKind::add, OpKind::divide, OpKind::maximum}) {
    add(std::string(to_string(kind)) + at,
        [=](Builder& build, auto& input) { build.binary(kind, input(shape), input(shape)); });
  }
  add("compare" + at, [=](Builder& build, auto& input) {
    build.compare(CompareDirection::gt, input(shape), input(shape));
  });
  add("select" + at, [=](Builder& build, auto& input) {
    const ValueId predicate = build.constant(1, {DType::pred, shape});
    build.select(predicate, input(shape), input(shape));
  });
  for (const DType dtype : {DType::bf16, DType::f16, DType::u8}) {
    const std::string name(to_string(dtype));
    add("convert_to_" + name + at,
        [=](Builder& build, auto& input) { build.convert(input(shape), dtype); });
    add("convert_from_" + name + at, [=](Builder& build, auto& input) {
      build.convert(build.convert(input(shape), dtype), DType::f32);
    });
    add("add_" + name + at, [=](Builder& build, auto& input) {
      const ValueId x = build.convert(input(shape), dtype);
      build.binary(OpKind::add, x, x);
    });
  }
}

void add_moves(const Shape& shape) {
  const std::string at = "/" + shape.to_string();
  const auto broadcast = [&](const std::string& name, const Shape& from,
                             std::vector<std::int64_t> dims) {
    add("broadcast_" + name + at,
        [=](Builder& build, auto& input) { build.broadcast_in_dim(input(from), shape, dims); });
  };
  broadcast("scalar", {}, {});
  broadcast("row", {shape[1]}, {1});
  broadcast("column", {shape[0]}, {0});
  add("transpose" + at, [=](Builder& build, auto& input) {
    build.transpose(input(shape), std::array<std::int64_t, 2>{1, 0});
  });
}

void add_reductions(const Shape& shape) {
  const std::string at = "/" + shape.to_string();
  for (const ReduceKind kind : {ReduceKind::add, ReduceKind::max}) {
    for (const std::int64_t dim : {0, 1}) {
      add("reduce_" + std::string(to_string(kind)) + "_dim" + std::to_string(dim) + at,
          [=](Builder& build, auto& input) { build.reduce(kind, input(shape), std::array{dim}); });
    }
  }
}

/// Adds benchmarks of the product [m,k] x [k,n], with and without each operand transposed.
void add_matmul(std::int64_t m, std::int64_t k, std::int64_t n) {
  for (const bool lhs_transposed : {false, true}) {
    for (const bool rhs_transposed : {false, true}) {
      const std::string name = fmt::format("dot_general_{}{}/{}x{}x{}", lhs_transposed ? 't' : 'n',
                                           rhs_transposed ? 't' : 'n', m, k, n);
      const auto make = [=](Builder& build, auto& input) {
        const ValueId lhs = input(lhs_transposed ? Shape{k, m} : Shape{m, k});
        const ValueId rhs = input(rhs_transposed ? Shape{n, k} : Shape{k, n});
        build.dot_general(lhs, rhs, {{}, {}, {lhs_transposed ? 0 : 1}, {rhs_transposed ? 1 : 0}});
      };
      add(name, make, 2.0 * static_cast<double>(m * n * k));
    }
  }
}

/// Adds benchmarks of a convolution of [batch,from,size,size] with 3x3 windows to `to` features,
/// and of its two gradients.
void add_convolution(std::int64_t batch, std::int64_t from, std::int64_t to, std::int64_t size) {
  const Shape x{batch, from, size, size};
  const Shape w{to, from, 3, 3};
  const Shape y{batch, to, size, size};
  const WindowDim window{.low = 1, .high = 1};
  const Convolution c{
      .lhs = {0, 1, 2, 3}, .rhs = {1, 0, 2, 3}, .result = {0, 1, 2, 3}, .window = {window, window}};
  Convolution back = c;
  std::swap(back.rhs[0], back.rhs[1]);
  back.reversed = true;
  Convolution of_weights = c;
  of_weights.lhs = {1, 0, 2, 3};
  of_weights.rhs = {0, 1, 2, 3};
  of_weights.result = {1, 0, 2, 3};
  const std::string at = fmt::format("/{}x{}x{}x{}", batch, from, size, to);
  const double flop = 2.0 * static_cast<double>(y.num_elements() * from * 9);
  const auto convolve = [&](const std::string& name, const Shape& lhs, const Shape& rhs,
                            const Convolution& convolution) {
    add(
        name + at,
        [=](Builder& build, auto& input) {
          build.convolution(input(lhs), input(rhs), convolution);
        },
        flop);
  };
  convolve("convolution", x, w, c);
  convolve("convolution_back_to_data", y, w, back);
  convolve("convolution_back_to_weights", x, y, of_weights);
}

/// Adds benchmarks of pools with adjacent windows of 2x2, over the dims `dim` and `dim + 1`.
void add_pools(const Shape& shape, int dim) {
  const std::string at = "/" + shape.to_string() + (dim == 1 ? "/features_last" : "");
  const WindowDim pair{.size = 2, .stride = 2};
  std::vector<WindowDim> window(4);
  Shape windows = shape;
  for (const int d : {dim, dim + 1}) {
    window[static_cast<std::size_t>(d)] = pair;
    windows[d] /= 2;
  }
  for (const ReduceKind kind : {ReduceKind::add, ReduceKind::max}) {
    add("reduce_window_" + std::string(to_string(kind)) + at, [=](Builder& build, auto& input) {
      build.reduce_window(input(shape), {kind, window});
    });
  }
  add("select_and_scatter" + at, [=](Builder& build, auto& input) {
    build.select_and_scatter(input(shape), input(windows), {ReduceKind::max, window});
  });
}

/// Adds benchmarks of a composite op and of its decomposition (`_decomposed`); the time of the
/// latter is the sum of the times of its ops.
void add_composite(const std::string& name, const MakeOp& make) {
  add(name, make);
  benchmark::RegisterBenchmark((name + "_decomposed").c_str(), [make](benchmark::State& state) {
    Program program;
    Builder build(program);
    make(build, [&](const Shape& shape) {
      return program.add_input({DType::f32, shape}, InputKind::data, "x", {});
    });
    const OpId op = program.num_ops() - 1;
    const auto ids = program.op_operands(op);
    const auto words = program.op_attrs(op);
    const std::vector<ValueId> operands(ids.begin(), ids.end());
    const std::vector<std::int64_t> attrs(words.begin(), words.end());
    decompose(build, program.kind(op), operands, attrs);
    const AllOps ops(program, op + 1);
    for (auto _ : state) {
      ops.run();
      benchmark::ClobberMemory();
    }
  });
}

void add_rows(const Shape& shape) {
  const std::string at = "/" + shape.to_string();
  add_composite("softmax" + at, [=](Builder& build, auto& input) { build.softmax(input(shape)); });
  add_composite("log_softmax" + at,
                [=](Builder& build, auto& input) { build.log_softmax(input(shape)); });
  add_composite("log_softmax_grad" + at, [=](Builder& build, auto& input) {
    build.softmax_grad(OpKind::log_softmax_grad, input(shape), input(shape));
  });
  add_composite("normalize" + at,
                [=](Builder& build, auto& input) { build.normalize(input(shape), {}); });
  add_composite("normalize_grad" + at, [=](Builder& build, auto& input) {
    build.normalize_grad(input(shape), input(shape), {});
  });
}

void add_losses(const Shape& shape) {
  const std::string at = "/" + shape.to_string();
  const auto labels = [=](Builder& build) { return build.constant(7, {DType::i32, {shape[0]}}); };
  add_composite("cross_entropy" + at, [=](Builder& build, auto& input) {
    build.cross_entropy(input(shape), labels(build));
  });
  add_composite("cross_entropy_grad" + at, [=](Builder& build, auto& input) {
    build.cross_entropy_grad(input(shape), labels(build), input({shape[0]}));
  });
}

void add_attention(const Shape& shape) {
  for (const bool causal : {false, true}) {
    const std::string at = fmt::format("{}/{}", causal ? "_causal" : "", shape.to_string());
    const AttentionForm form{.causal = causal, .scale = 0.1};
    add_composite("attention" + at, [=](Builder& build, auto& input) {
      build.attention(input(shape), input(shape), input(shape), form);
    });
    add_composite("attention_grad" + at, [=](Builder& build, auto& input) {
      const ValueId q = input(shape);
      build.attention_grad(q, input(shape), input(shape), input(shape), input(shape), form);
    });
  }
}

/// Adds benchmarks of a plan with fused elementwise ops, and of its program run op by op
/// (`_decomposed`).
void add_planned(const std::string& name, const Program& program) {
  const auto add_run = [](const std::string& as, const auto& make) {
    benchmark::RegisterBenchmark(as.c_str(), [make](benchmark::State& state) {
      auto made = make();
      made->run();  // the first use of the memory isn't measured
      for (auto _ : state) {
        made->run();
        benchmark::ClobberMemory();
      }
    });
  };
  add_run(name, [program] { return std::make_unique<Planned>(program); });
  add_run(name + "_decomposed", [program] { return std::make_unique<AllOps>(program, 0); });
}

}  // namespace

int main(int argc, char** argv) {
  for (const Shape& shape : {Shape{64, 128}, Shape{512, 512}}) {
    add_elementwise(shape);
    add_moves(shape);
    add_reductions(shape);
  }
  add_reductions({64, 10});
  add_reductions({4096, 1024});
  add_matmul(64, 64, 128);
  add_matmul(64, 128, 64);
  add_matmul(64, 64, 10);
  add_matmul(512, 512, 512);
  add_convolution(64, 1, 32, 28);
  add_convolution(64, 32, 64, 14);
  add_pools({64, 32, 28, 28}, 2);
  add_pools({64, 28, 28, 32}, 1);
  add_rows({1024, 768});
  add_rows({64, 32768});
  add_losses({1024, 76});
  add_losses({64, 32768});
  add_attention({2, 8, 512, 64});
  add_attention({1, 4, 2048, 64});
  add_attention({2, 8, 512, 16});
  add_attention({2, 8, 512, 128});
  for (const Shape& shape : {Shape{128, 128}, Shape{512, 512}, Shape{2048, 2048}}) {
    add_planned("adamw/" + shape.to_string(), bench::adamw(shape));
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
