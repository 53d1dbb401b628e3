#include <algorithm>
#include <exception>
#include <optional>

#include <weft/ops/control_flow.hpp>

#include "spmd/control/loops.hpp"
#include "spmd/tensor/call.hpp"

namespace weft {

void TracedLoops::end(OpId next) {
  const Open& loop = open_.back();
  complete_.push_back({loop.number, loop.begin, next, loop.loc, loop.kind});
  open_.pop_back();
}

void TracedLoops::clear() {
  open_.clear();
  complete_.clear();
}

void TracedLoops::append(const TracedLoops& from, const Appended& appended) {
  for (const Complete& loop : from.complete_) {
    const ValueId number = appended.values[loop.number];
    if (number == kNoId) continue;
    complete_.push_back(
        {number, appended.places[loop.begin], appended.places[loop.end], loop.loc, loop.kind});
  }
}

const TracedLoops::Complete* TracedLoops::find(const Program& program, ValueId value) const {
  const OpId op = program.defining_op(value);
  if (op == kNoId) return nullptr;
  for (const Complete& loop : complete_) {
    if (op < loop.begin || op >= loop.end) continue;
    const bool is_result =
        leaves_loop(program.kind(op)) && program.op_operands(op)[0] == loop.number;
    if (!is_result) return &loop;
  }
  return nullptr;
}

void TracedLoops::refuse_inside(const Program& program, ValueId value,
                                const std::source_location& loc) const {
  const Complete* loop = find(program, value);
  if (loop == nullptr) return;
  const std::string& made = program.loc(program.defining_op(value));
  fail(Errc::invalid_argument,
       "the tensor {}{} belongs to the function of {}() at {}, and has no value after the call: "
       "return it{} (at {})",
       program.type(value).to_string(), made.empty() ? "" : fmt::format(" made at {}", made),
       to_string(loop->kind), file_line(loop->loc),
       loop->kind == TracedKind::scan ? " as carry or y" : "", file_line(loc));
}

namespace {

using Tensors = std::vector<Tensor>;

/// Records a loop during its lifetime. If the loop's function throws, the destructor completes the
/// loop in a way that has no effect.
class LoopScope {
 public:
  /// `length` is 0 for a while_loop.
  LoopScope(Trace& trace, std::int64_t length, bool reverse, const std::source_location& loc)
      : trace_(trace), is_tested_(length > 0) {
    Builder& builder = trace.builder();
    const OpId begin = builder.program().num_ops();
    number_ = builder.loop(length, reverse);
    depth_ = trace.regions().loops.open().size();
    const TracedKind kind = length == 0 ? TracedKind::while_loop : TracedKind::scan;
    trace.regions().loops.begin({number_, begin, length, loc, kind});
  }
  LoopScope(const LoopScope&) = delete;
  LoopScope& operator=(const LoopScope&) = delete;
  ~LoopScope() {
    if (trace_.regions().loops.open().size() <= depth_) return;  // the loop is complete
    if (!is_tested_) test(trace_.builder().constant(0, {DType::pred, {}}));
    for (const ValueId carry : carries_) next(carry, carry);
    if (carries_.empty()) stack(number_);
    end();
  }

  ValueId number() const { return number_; }
  ValueId carry(ValueId first) {
    carries_.push_back(trace_.builder().border(OpKind::carry, {number_, first}));
    return carries_.back();
  }
  ValueId item(ValueId items) { return trace_.builder().border(OpKind::item, {number_, items}); }
  ValueId stack(ValueId y) { return trace_.builder().border(OpKind::stack, {number_, y}); }
  void test(ValueId predicate) {
    trace_.builder().border(OpKind::test, {number_, predicate});
    is_tested_ = true;
  }
  ValueId next(ValueId carry, ValueId value) {
    return trace_.builder().border(OpKind::next, {number_, carry, value});
  }
  void end() { trace_.regions().loops.end(trace_.builder().program().num_ops()); }

 private:
  Trace& trace_;
  ValueId number_ = kNoId;
  std::size_t depth_ = 0;
  bool is_tested_;
  std::vector<ValueId> carries_;
};

std::int64_t length_of(const Call& call, const Tensors& items, const ScanOptions& options) {
  std::optional<std::int64_t> length;
  if (options.length != 0) length = options.length;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TensorType& type = call.type(items[i]);
    if (type.shape.size() == 0) {
      call.refuse("item {}, {}, has no dims; expected a dim 0 for the iterations", i,
                  call.node(items[i])->label());
    }
    if (!length) length = type.shape[0];
    if (type.shape[0] == *length) continue;
    call.refuse("item {}, {}, has size {} in dim 0, but {} {}", i, call.node(items[i])->label(),
                type.shape[0], options.length == 0 ? "the previous items have size" : "length is",
                *length);
  }
  if (!length) call.refuse("there are no items; set `length` to the number of iterations");
  if (*length < 1) call.refuse("there are {} iterations: expected 1 or more", *length);
  return *length;
}

void expect_carry(const Call& call, std::size_t i, const TensorType& first, const Tensor& next) {
  const TensorType& type = call.type(next);
  if (type == first) return;
  call.refuse(
      "carry {} is {}, but the function returns {} for it; all iterations run the same program, so "
      "cast or reshape the result",
      i, first.to_string(), type.to_string());
}

/// In a shard_map, refuses a carry that is equal on the chips of a group at first, but may differ
/// after an iteration.
void expect_alike(Call& call, std::size_t i, ValueId first, ValueId next) {
  const auto parted =
      static_cast<AtomMask>(call->manual(next).varies & ~call->manual(first).varies);
  if (parted == 0) return;
  const std::string axes = axes_text(call->mesh(), parted);
  call.refuse(
      "carry {} is at first the same on all chips along {}, but the function returns a value that "
      "may differ between these chips: begin with vary(.., {})",
      i, axes, axes);
}

/// Returns the values that the carries have in the first iteration.
std::vector<ValueId> first_values(Call& call, const Tensors& carry) {
  const ManualAtoms around{.manual = call.trace().regions().shard_maps.manual()};
  std::vector<ValueId> first;
  for (const Tensor& tensor : carry) first.push_back(call->like(call.value(tensor), around));
  return first;
}

/// Returns the values that the carries have in the next iteration, from the function's results.
std::vector<ValueId> next_values(Call& call, const Tensors& first,
                                 const std::vector<ValueId>& carries, const Tensors& returned) {
  if (returned.size() != first.size()) {
    call.refuse("the carry has {} tensors, but the function returns {}", first.size(),
                returned.size());
  }
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < first.size(); ++i) {
    expect_carry(call, i, call.type(first[i]), returned[i]);
    values.push_back(call.value(returned[i]));
    expect_alike(call, i, carries[i], values[i]);
  }
  return values;
}

}  // namespace

Scanned<Tensors, Tensors> scan_tensors(const ScanBody& body, const Tensors& carry,
                                       const Tensors& items, const ScanOptions& options,
                                       const std::source_location& loc) {
  Tensors carried;
  Tensors parts;
  std::vector<ValueId> carries;
  std::optional<LoopScope> loop;
  Trace& trace = Trace::current(loc);
  {
    Call call("scan", loc);
    const std::int64_t length = length_of(call, items, options);
    const std::vector<ValueId> first = first_values(call, carry);
    std::vector<ValueId> whole;
    for (const Tensor& tensor : items) whole.push_back(call.value(tensor));
    loop.emplace(trace, length, options.reverse, loc);
    for (const ValueId value : first) carries.push_back(loop->carry(value));
    for (const ValueId value : carries) carried.push_back(call.result(value));
    for (const ValueId value : whole) parts.push_back(call.result(loop->item(value)));
  }
  const Scanned<Tensors, Tensors> made = body(carried, parts);
  Call call("scan", loc);
  const std::vector<ValueId> values = next_values(call, carry, carries, made.carry);
  std::vector<ValueId> stacks;
  for (const Tensor& y : made.stacked) stacks.push_back(loop->stack(call.value(y)));
  stack_residuals(trace.builder(), loop->number());
  std::vector<ValueId> nexts;
  for (std::size_t i = 0; i < carry.size(); ++i) nexts.push_back(loop->next(carries[i], values[i]));
  if (nexts.empty() && stacks.empty()) call.refuse("the function returns no tensors");
  loop->end();
  Scanned<Tensors, Tensors> results;
  for (const ValueId value : nexts) results.carry.push_back(call.result(value));
  for (const ValueId value : stacks) results.stacked.push_back(call.result(value));
  return results;
}

Tensors while_tensors(const WhileBody& recorded, const Tensors& carry,
                      const std::source_location& loc) {
  Tensors carried;
  std::vector<ValueId> carries;
  std::optional<LoopScope> loop;
  Trace& trace = Trace::current(loc);
  {
    Call call("while_loop", loc);
    if (carry.empty()) call.refuse("the carry has no tensors, so the loop would do nothing");
    const std::vector<ValueId> first = first_values(call, carry);
    loop.emplace(trace, 0, false, loc);
    for (const ValueId value : first) carries.push_back(loop->carry(value));
    for (const ValueId value : carries) carried.push_back(call.result(value));
  }
  const Tensor holds = recorded.test(carried);
  {
    Call call("while_loop", loc);
    loop->test(call.predicate(Operand(holds, loc)));
  }
  const Tensors made = recorded.body(carried);
  Call call("while_loop", loc);
  const std::vector<ValueId> values = next_values(call, carry, carries, made);
  Tensors results;
  for (std::size_t i = 0; i < carries.size(); ++i) {
    results.push_back(call.result(loop->next(carries[i], values[i])));
  }
  loop->end();
  return results;
}

}  // namespace weft
