#include "spmd/tensor/regions.hpp"

#include <algorithm>
#include <unordered_map>

#include <weft/tensor/error.hpp>

#include "spmd/ops/row.hpp"
#include "spmd/tensor/node.hpp"
#include "spmd/tensor/trace.hpp"

namespace weft {
namespace {

bool is_loop(TracedKind kind) { return kind != TracedKind::cond; }

/// Follows values back through linear ops to the call of grad() that made them.
class GradientOrigin {
 public:
  using Call = TracedShardMaps::GradientCall;
  GradientOrigin(const Program& program, std::span<const Call> calls)
      : program_(program), calls_(calls) {}

  const Call* of(ValueId value) {
    const auto [place, is_new] = found_.try_emplace(value, nullptr);
    if (!is_new) return place->second;
    const OpId op = program_.defining_op(value);
    const Call* call = op == kNoId ? nullptr : of_op(op);
    return found_[value] = call;
  }

 private:
  const Call* of_op(OpId op) {
    const auto made = std::ranges::find_if(
        calls_, [&](const Call& call) { return op >= call.begin && op < call.end; });
    if (made != calls_.end()) return &*made;
    const OpRow& facts = row(program_.kind(op));
    const auto operands = program_.op_operands(op);
    using In = Linearity::In;
    const bool only_moves = facts.traits->moves_only && !facts.traits->meets;
    if (only_moves || program_.kind(op) == OpKind::convert) return of(operands[0]);
    if (facts.linear->in == In::first && !facts.traits->meets) return of(operands[0]);
    const Call* some = nullptr;
    for (const ValueId operand : operands) {
      const Call* call = of(operand);
      if (call == nullptr && facts.linear->in != In::one) return nullptr;
      if (call != nullptr) some = call;
    }
    return facts.linear->in == In::nothing ? nullptr : some;
  }

  const Program& program_;
  std::span<const Call> calls_;
  std::unordered_map<ValueId, const Call*> found_;
};

}  // namespace

std::string_view to_string(TracedKind kind) noexcept {
  switch (kind) {
    case TracedKind::scan: return "scan";
    case TracedKind::while_loop: return "while_loop";
    case TracedKind::cond: return "cond";
  }
  return "unknown";
}

const TracedShardMaps::GradientCall* TracedShardMaps::gradient_call(const Program& program,
                                                                    ValueId value) const {
  if (gradients_.empty()) return nullptr;
  return GradientOrigin(program, gradients_).of(value);
}

void TracedShardMaps::expect_inside(Builder& builder, ValueId value,
                                    const std::source_location& loc) const {
  if ((builder.manual(value).manual & ~manual()) == 0) return;
  const Program& program = builder.program();
  const std::string& made = program.loc(program.defining_op(value));
  fail(Errc::invalid_argument,
       "the tensor {}{} belongs to the function of a shard_map(), and has no value after the call: "
       "return it from the function (at {})",
       program.type(value).to_string(), made.empty() ? "" : fmt::format(" made at {}", made),
       file_line(loc));
}

void Regions::expect_assignable(const Program& program, const TensorNode& node,
                                const TraceSite& site) const {
  const OpId made = program.defining_op(node.value);
  const auto is_outside = [&](OpId begin) { return made == kNoId || made < begin; };
  if (const auto open = loops.open(); !open.empty() && is_outside(open.back().begin)) {
    fail(Errc::invalid_argument,
         "{}: {} can't change in the function of {}() at {}, which is recorded once: {}, and "
         "assign it after the {} (at {})",
         site.function, node.label(), to_string(open.back().kind), file_line(open.back().loc),
         is_loop(open.back().kind) ? "make it a carry" : "return it from both functions",
         is_loop(open.back().kind) ? "loop" : "call", file_line(site.loc));
  }
  if (const auto open = shard_maps.open(); !open.empty() && is_outside(open.back().begin)) {
    fail(Errc::invalid_argument,
         "{}: {} can't change in the function of shard_map() at {}, where each chip has its own "
         "value: return the new value, and assign it after the call (at {})",
         site.function, node.label(), file_line(open.back().loc), file_line(site.loc));
  }
}

void Regions::expect_readable(const RunSite& site) const {
  if (const auto open = loops.open(); !open.empty()) {
    fail(Errc::invalid_argument,
         "{} at {} is in the function of {}() at {}, which is recorded once, {}: return the tensor "
         "from it, and read it after the {}",
         site.function, file_line(site.loc), to_string(open.back().kind),
         file_line(open.back().loc),
         is_loop(open.back().kind) ? "for all iterations" : "whether it runs or not",
         is_loop(open.back().kind) ? "loop" : "call");
  }
  if (const auto open = shard_maps.open(); !open.empty()) {
    fail(Errc::invalid_argument,
         "{} at {} is in the function of shard_map() at {}, which is recorded once, for all chips: "
         "return the tensor from it, and read it after the call",
         site.function, file_line(site.loc), file_line(open.back().loc));
  }
}

}  // namespace weft
