#include <optional>

#include <weft/ops/control_flow.hpp>

#include "spmd/tensor/call.hpp"

namespace weft {

ValueId Call::predicate(const Operand& x) {
  if (type(x) != TensorType{DType::pred, {}}) {
    refuse("the predicate is {}; expected pred[], such as a comparison of scalars, any() or all()",
           type(x).to_string());
  }
  const ManualAtoms around{.manual = trace_.regions().shard_maps.manual()};
  const ValueId value = trace_.builder().like(this->value(x), around);
  if (const AtomMask varies = trace_.builder().manual(value).varies; varies != 0) {
    const std::string axes = axes_text(trace_.builder().mesh(), varies);
    refuse(
        "the predicate may differ between chips along {}, but all chips must take the same branch: "
        "apply psum() or pmax() to its operands",
        axes);
  }
  return value;
}

namespace {

/// Records the two branches of a cond during its lifetime. If a branch's function throws, the
/// destructor completes the branches in a way that has no effect.
class CondScope {
 public:
  CondScope(Trace& trace, ValueId predicate, const std::source_location& loc)
      : trace_(trace), predicate_(predicate), loc_(loc) {
    const OpId begin = next_op();
    number_ = trace.builder().cond(predicate);
    depth_ = loops().open().size();
    loops().begin({number_, begin, 0, loc, TracedKind::cond});
  }
  CondScope(const CondScope&) = delete;
  CondScope& operator=(const CondScope&) = delete;
  ~CondScope() {
    if (loops().open().size() <= depth_) return;  // both branches are complete
    if (!is_second_) otherwise();
    end();
    merge(predicate_, predicate_);
  }

  void otherwise() {
    loops().end(next_op());
    const OpId begin = next_op();
    trace_.builder().border(OpKind::otherwise, {number_});
    loops().begin({number_, begin, 0, loc_, TracedKind::cond});
    is_second_ = true;
  }
  /// Ends the second branch. Called before the merges are recorded.
  void end() { loops().end(next_op()); }
  ValueId merge(ValueId a, ValueId b) {
    return trace_.builder().border(OpKind::merge, {number_, a, b});
  }

 private:
  TracedLoops& loops() { return trace_.regions().loops; }
  OpId next_op() { return trace_.builder().program().num_ops(); }

  Trace& trace_;
  ValueId predicate_;
  std::source_location loc_;
  ValueId number_ = kNoId;
  std::size_t depth_ = 0;
  bool is_second_ = false;
};

std::vector<ValueId> values_of(Call& call, const std::vector<Tensor>& tensors) {
  const ManualAtoms around{.manual = call.trace().regions().shard_maps.manual()};
  std::vector<ValueId> values;
  for (const Tensor& tensor : tensors) values.push_back(call->like(call.value(tensor), around));
  return values;
}

void expect_one_type(Call& call, const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
  if (a.size() != b.size()) {
    call.refuse("the first function returns {} tensors, but the second returns {}", a.size(),
                b.size());
  }
  if (a.empty()) call.refuse("the functions return no tensors");
  for (std::size_t i = 0; i < a.size(); ++i) {
    const TensorType& of_a = call->type(a[i]);
    const TensorType& of_b = call->type(b[i]);
    if (of_a != of_b) {
      call.refuse("result {} is {} in the first function, but {} in the second: cast or reshape it",
                  i, of_a.to_string(), of_b.to_string());
    }
    const AtomMask differ =
        static_cast<AtomMask>(call->manual(a[i]).varies ^ call->manual(b[i]).varies);
    if (differ == 0) continue;
    call.refuse(
        "result {} may differ between chips along {} in one function, but not in the other: apply "
        "vary() to the other result",
        i, axes_text(call->mesh(), differ));
  }
}

}  // namespace

std::vector<Tensor> cond_tensors(const Operand& predicate, const BranchBody& on_true,
                                 const BranchBody& on_false) {
  const std::source_location& loc = predicate.loc();
  Trace& trace = Trace::current(loc);
  std::optional<CondScope> branches;
  {
    Call call("cond", loc);
    branches.emplace(trace, call.predicate(predicate), loc);
  }
  const std::vector<Tensor> first = on_true();
  std::vector<ValueId> a;
  {
    Call call("cond", loc);
    a = values_of(call, first);
    branches->otherwise();
  }
  const std::vector<Tensor> second = on_false();
  Call call("cond", loc);
  const std::vector<ValueId> b = values_of(call, second);
  expect_one_type(call, a, b);
  branches->end();
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    results.push_back(call.result(branches->merge(a[i], b[i])));
  }
  return results;
}

}  // namespace weft
