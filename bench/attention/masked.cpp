#include "bench/attention/masked.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "bench/planned.hpp"
#include "spmd/ops/builder.hpp"
#include "spmd/ops/row.hpp"
#include "spmd/program/element.hpp"

namespace weft::bench {
namespace {

struct Form {
  std::string_view name;
  bool causal = false;  ///< if true, uses the option `causal`
  bool has_bias = false;
  DType bias = DType::pred;
  bool is_row = false;  ///< if true, the bias is [1,1,1,T]; if false, [1,1,T,T]
  bool composed = false;
};

constexpr std::array kForms{
    Form{.name = "causal", .causal = true},
    Form{.name = "causal by a mask [1,1,T,T]", .has_bias = true},
    Form{.name = "composed, causal by a mask", .has_bias = true, .composed = true},
    Form{.name = "all keys"},
    Form{.name = "mask [1,1,1,T] of 7/8 keys", .has_bias = true, .is_row = true},
    Form{.name = "bias [1,1,T,T]", .has_bias = true, .bias = DType::f32},
    Form{
        .name = "composed, bias [1,1,T,T]", .has_bias = true, .bias = DType::f32, .composed = true},
};

struct Size {
  DType dtype;
  std::int64_t heads, length, size;
};

Program program_of(const Form& form, const Size& of, bool backward) {
  Program program;
  Builder build(program);
  std::vector<ValueId> in;
  for (int i = 0; i < (backward ? 5 : 3); ++i) {
    in.push_back(
        program.add_input({of.dtype, {1, of.heads, of.length, of.size}}, InputKind::data, "x", {}));
  }
  ValueId bias = kNoId;
  if (form.has_bias) {
    const DType dtype = form.bias == DType::pred ? DType::pred : of.dtype;
    bias = program.add_input({dtype, {1, 1, form.is_row ? 1 : of.length, of.length}},
                             InputKind::data, "bias", {});
  }
  const AttentionForm attrs{.causal = form.causal, .scale = 0.125};
  ValueId y = backward ? build.attention_grad(in[0], in[1], in[2], in[3], in[4], attrs, bias)
                       : build.attention(in[0], in[1], in[2], attrs, bias);
  if (form.composed) {
    const OpId op = program.defining_op(y);
    in.push_back(bias);
    const Words words = program.op_attrs(op);
    const std::vector<std::int64_t> own(words.begin(), words.end());
    y = decompose(build, program.kind(op), in, own);
  }
  program.add_output(y, "y", {});
  return program;
}

/// Measures the time of a form: of its plan, with operands that are uniform in [-2, 2].
class TimedForm {
 public:
  TimedForm(const Form& form, const Size& of, bool backward)
      : plan_(std::make_unique<Planned>(program_of(form, of, backward))) {
    const std::size_t count = backward ? 5 : 3;
    const std::int64_t elements = of.heads * of.length * of.size;
    for (std::size_t i = 0; i < count; ++i) fill(of.dtype, elements, plan_->input(i));
    if (form.has_bias) {
      std::byte* const bias = plan_->input(count);
      if (form.bias != DType::pred) fill(of.dtype, of.length * of.length, bias);
      if (form.bias == DType::pred) {
        for (std::int64_t i = 0; i < (form.is_row ? 1 : of.length); ++i) {
          const std::int64_t seen = form.is_row ? of.length * 7 / 8 : i + 1;
          std::fill_n(bias + i * of.length, seen, std::byte{1});
        }
      }
    }
    plan_->run();  // the first use of the memory isn't measured
  }

  double milliseconds() {
    const auto begin = std::chrono::steady_clock::now();
    plan_->run();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    return took.count();
  }

 private:
  void fill(DType dtype, std::int64_t count, std::byte* to) {
    for (std::int64_t i = 0; i < count; ++i) {
      word_ = word_ * 1664525U + 1013904223U;
      store_element(dtype, 4 * static_cast<double>(word_ >> 8) * 0x1p-24 - 2,
                    to + i * byte_size(dtype));
    }
  }

  std::uint32_t word_ = 12345;
  std::unique_ptr<Planned> plan_;
};

}  // namespace

std::vector<TableRow> masked_attention(int rounds, std::int64_t num_rows) {
  std::vector<TableRow> all;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const std::int64_t length : {512, 2048}) {
      for (const bool backward : {false, true}) {
        const Size of{dtype, std::max<std::int64_t>(num_rows / length, 1),
                      std::min(length, num_rows), 64};
        std::vector<TimedForm> timed;
        std::vector<TableRow> rows;
        for (const Form& form : kForms) timed.emplace_back(form, of, backward);
        for (int round = 0; round < rounds; ++round) {
          for (std::size_t i = 0; i < kForms.size(); ++i) {
            const std::string name =
                fmt::format("{} {}, T {}: {}", to_string(dtype), backward ? "backward" : "forward",
                            of.length, kForms[i].name);
            row_of(rows, name, "ms").samples.push_back(timed[i].milliseconds());
          }
        }
        for (TableRow& row : rows) row.ratio = paired_ratio(row, rows[0]);
        all.insert(all.end(), rows.begin(), rows.end());
      }
    }
  }
  return all;
}

}  // namespace weft::bench
