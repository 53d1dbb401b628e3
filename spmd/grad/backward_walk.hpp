#pragma once
/// BackwardWalk: appends the ops of grad(). Only the files of this folder use it.

#include <map>
#include <unordered_map>
#include <vector>

#include "spmd/control/loops.hpp"
#include "spmd/grad/grad.hpp"

namespace weft {

/// Walks backward over the ops that the program had when the walk began, and appends gradients.
class BackwardWalk {
 public:
  BackwardWalk(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
               std::span<const RematRegion> regions, const CustomVjpRule& custom);
  std::vector<ValueId> run();
  /// Returns for each wrt whether the loss depends on it. Must be called after run().
  const std::vector<bool>& is_used() const { return is_used_; }

 private:
  /// An addend of a value's cotangent. Each value has a linked list of addends, and one vector
  /// contains all lists. The head of a list is the most recent addend, which comes from the value's
  /// first reader.
  struct Addend {
    ValueId cotangent;
    std::uint32_t before;  ///< index of the next addend in the list, or kNoId
  };

  /// A loop or a branch whose backward counterpart is being made. A backward loop runs through the
  /// iterations in the opposite order, with the same iteration numbers.
  struct Frame {
    std::uint32_t loop = kNoId;  ///< number of the loop or branch in the forward program
    ValueId number = kNoId;      ///< the op that begins the backward loop or branch
    std::unordered_map<ValueId, ValueId> stacks{};   ///< by value: its forward stack
    std::unordered_map<ValueId, ValueId> forward{};  ///< by value: its copy in the backward loop
    std::map<OpId, ValueId> carries{};  ///< by forward `next`: the cotangent of its operand
    /// By forward `stack`: the cotangent of the whole stack.
    std::map<OpId, ValueId> stack_cotangents{};
    std::map<ValueId, ValueId> accumulators{};  ///< by outer value: the sum of its cotangents
    /// By outer value: the head of its addends in an iteration.
    std::map<ValueId, std::uint32_t> outer{};
    std::vector<std::pair<ValueId, ValueId>> items{};  ///< pairs of an item and its cotangent
  };

  // Marks the values that depend on wrt.
  void mark_active(OpId begin, OpId end);
  /// Returns whether the op passes its result's cotangent on to an active operand.
  bool reaches_wrt(OpId op) const;

  // These functions visit the ops.
  void visit_range(OpId begin, OpId end);
  void visit(OpId id);
  ValueId operand_cotangent(std::size_t index, ValueId cotangent);
  ValueId by_decomposition(std::size_t index, ValueId cotangent);
  void visit_custom(ValueId cotangent);

  // These functions visit loops (loop_gradient.cpp).
  void visit_loop(const LoopRange& range);
  Frame begin_backward(const LoopRange& range, const std::map<OpId, ValueId>& cotangents);
  void end_backward(const LoopRange& range);
  void visit_border(OpId id);
  /// Returns each value that the ops read from outside: none of these ops makes it, and no loop or
  /// branch among them contains it.
  std::vector<ValueId> values_read_by(OpId begin, OpId end) const;
  bool is_in_frame(ValueId value) const;

  // These functions visit branches (branch_gradient.cpp).
  void visit_branches(const LoopRange& first, const LoopRange& second);
  struct Cotangent {
    ValueId value;
    bool is_zero;  ///< the branch doesn't read the outer value
  };
  /// Returns the cotangents that a branch gives to these outer values.
  std::vector<Cotangent> branch_cotangents(const LoopRange& branch, std::span<const OpId> merges,
                                           std::span<const ValueId> values);

  // Returns the forward value for use at the current place. In a backward loop, it is read from a
  // stack of the forward loop or computed again.
  ValueId forward(ValueId value);
  ValueId forward_in_loop(ValueId value);
  /// Appends copies of the ops of an inner loop or cond, to compute it again.
  void clone_ops(OpId begin, OpId end);
  bool is_kept(OpId op) const;
  void compute_again(OpId id);
  bool is_saved(const RematRegion& region, OpId op) const;
  void behind_barrier(ValueId value);

  // These functions add up the cotangents of a value.
  void add(ValueId value, ValueId cotangent);
  ValueId sum(ValueId value) { return sum_list(last_addend_[value]); }
  /// Returns the sum of the list's addends in op order; kNoId if the list is empty.
  ValueId sum_list(std::uint32_t head);
  ValueId zeros(ValueId value);

  Builder& builder_;
  const OpId op_count_;
  const Loops loops_;
  std::span<const ValueId> wrt_;
  const CustomVjpRule& custom_;
  std::vector<bool> is_used_;
  std::vector<bool> active_;  // by value
  std::span<const RematRegion> all_regions_;
  std::vector<RematRegion> regions_;  // regions that the walk hasn't reached yet
  std::vector<Addend> addends_;
  std::vector<std::uint32_t> last_addend_;  // by value: the head of its list in addends_, or kNoId
  std::vector<ValueId> again_;              // by value: its recomputed value, or the value itself
  // By value: its copy behind an optimization_barrier, for the region that is computed again.
  std::unordered_map<ValueId, ValueId> behind_barrier_;
  std::vector<Frame> frames_;      // from the outermost loop to the innermost
  ForwardOp op_;                   // the op of visit(), with forward values
  std::vector<ValueId> operands_;  // the operands of that op in the program
};

/// Copies the op into `copy`, whose memory is reused.
void copy_op(const Program& program, OpId op, ForwardOp& copy);

}  // namespace weft
