#pragma once
/// The backward walk of grad(). For its files.

#include <map>
#include <unordered_map>
#include <vector>

#include "spmd/control/loops.hpp"
#include "spmd/grad/grad.hpp"

namespace weft {

/// The backward walk over the ops that the program had when it began.
class BackwardWalk {
 public:
  BackwardWalk(Builder& builder, ValueId loss, std::span<const ValueId> wrt,
               std::span<const RematRegion> regions, const CustomVjpRule& custom);
  std::vector<ValueId> run();
  /// After run(): by wrt, whether the loss depends on it.
  const std::vector<bool>& is_used() const { return is_used_; }

 private:
  /// An addend of a value's cotangent. Each value has a linked list of them, and all lists are in
  /// one vector. A list's head is the addend added last, which comes from the value's first reader.
  struct Addend {
    ValueId cotangent;
    std::uint32_t before;  ///< index of the next in the list, or kNoId
  };

  /// A loop whose backward loop is being made, which goes through the iterations the other way
  /// round, with the same numbers; or a branch whose backward branch is being made.
  struct Frame {
    std::uint32_t loop = kNoId;                      ///< of the forward program
    ValueId number = kNoId;                          ///< the backward loop or branch
    std::unordered_map<ValueId, ValueId> stacks{};   ///< by value: the forward stack of it
    std::unordered_map<ValueId, ValueId> forward{};  ///< by value: it, in the backward loop
    std::map<OpId, ValueId> carries{};  ///< by forward `next`: the cotangent of its operand
    std::map<OpId, ValueId> stack_cotangents{};  ///< by forward `stack`: of all its parts
    std::map<ValueId, ValueId> accumulators{};   ///< by outer value that the loop reads
    std::map<ValueId, std::uint32_t> outer{};    ///< its addends in an iteration: the list's head
    std::vector<std::pair<ValueId, ValueId>> items{};  ///< items, and their cotangents
  };

  // What depends on wrt.
  void mark_active(OpId begin, OpId end);
  /// Whether the op passes its result's cotangent on to an active operand.
  bool reaches_wrt(OpId op) const;

  // The walk.
  void visit_range(OpId begin, OpId end);
  void visit(OpId id);
  ValueId operand_cotangent(std::size_t index, ValueId cotangent);
  ValueId by_decomposition(std::size_t index, ValueId cotangent);
  void visit_custom(ValueId cotangent);

  // Loops (loop_gradient.cpp).
  void visit_loop(const LoopRange& range);
  Frame begin_backward(const LoopRange& range, const std::map<OpId, ValueId>& cotangents);
  void end_backward(const LoopRange& range);
  void visit_border(OpId id);
  /// What ops read that is made neither in the loops or branches among them nor by them, each once.
  std::vector<ValueId> values_read_by(OpId begin, OpId end) const;
  bool is_in_frame(ValueId value) const;

  // Branches (branch_gradient.cpp).
  void visit_branches(const LoopRange& first, const LoopRange& second);
  struct Cotangent {
    ValueId value;
    bool is_zero;  ///< as the branch doesn't read what it is of
  };
  /// Those that a branch gives to these outer values.
  std::vector<Cotangent> branch_cotangents(const LoopRange& branch, std::span<const OpId> merges,
                                           std::span<const ValueId> values);

  // Forward values.
  /// The value where the walk is: in a backward loop it is read from the stack of a forward one, or
  /// computed again.
  ValueId forward(ValueId value);
  ValueId forward_in_loop(ValueId value);
  /// Computes an inner loop or cond again.
  void clone_ops(OpId begin, OpId end);
  bool is_kept(OpId op) const;
  void compute_again(OpId id);
  bool is_saved(const RematRegion& region, OpId op) const;
  void behind_barrier(ValueId value);

  // Cotangents.
  void add(ValueId value, ValueId cotangent);
  ValueId sum(ValueId value) { return sum_list(last_addend_[value]); }
  /// The sum of a list, in op order; kNoId if it is empty.
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
  std::vector<RematRegion> regions_;  // those that the walk hasn't reached
  std::vector<Addend> addends_;
  std::vector<std::uint32_t> last_addend_;  // by value: its list's head in addends_, or kNoId
  std::vector<ValueId> again_;              // by value: its recomputed value, or itself
  std::unordered_map<ValueId, ValueId> behind_barrier_;  // of the region that is computed again
  std::vector<Frame> frames_;                            // from the outermost loop to the innermost
  ForwardOp op_;                                         // the op of visit(), with forward values
  std::vector<ValueId> operands_;                        // of that op, as the program has them
};

/// Overwrites `copy`, whose memory is reused.
void copy_op(const Program& program, OpId op, ForwardOp& copy);

}  // namespace weft
