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
    std::uint32_t before;  ///< index of the next addend of the list, or kNoId
  };

  /// A loop or a branch whose backward counterpart is being made. A backward loop runs through the
  /// iterations in the opposite order, with the same iteration numbers.
  struct Frame {
    std::uint32_t loop = kNoId;  ///< number of the loop or branch in the forward program
    ValueId number = kNoId;      ///< result of the op that begins the backward range
    std::unordered_map<ValueId, ValueId> stacks{};   ///< key: value; its forward stack
    std::unordered_map<ValueId, ValueId> forward{};  ///< key: value; its copy in the backward loop
    std::map<OpId, ValueId> carries{};  ///< key: a forward `next`; its operand's cotangent
    /// Key: a forward `stack`. Value: the cotangent of its complete result.
    std::map<OpId, ValueId> stack_cotangents{};
    std::map<ValueId, ValueId> accumulators{};  ///< key: an outer value; sum of cotangents
    /// Key: an outer value. Value: the head of the list of its addends in the present iteration.
    std::map<ValueId, std::uint32_t> outer{};
    std::vector<std::pair<ValueId, ValueId>> items{};  ///< pairs of an item and its cotangent
  };

  // Marks the values that depend on wrt.
  void mark_active(OpId begin, OpId end);
  /// Returns whether the op passes its result's cotangent on to an active operand.
  bool reaches_wrt(OpId op) const;

  // Functions that append the gradients of ops follow.
  void visit_range(OpId begin, OpId end);
  void visit(OpId id);
  ValueId operand_cotangent(std::size_t index, ValueId cotangent);
  ValueId by_decomposition(std::size_t index, ValueId cotangent);
  void visit_custom(ValueId cotangent);

  // Functions for loops follow (loop_gradient.cpp).
  void visit_loop(const LoopRange& range);
  Frame begin_backward(const LoopRange& range, const std::map<OpId, ValueId>& cotangents);
  void end_backward(const LoopRange& range);
  void visit_border(OpId id);
  /// Returns each value that the ops read, but that neither they nor the loops and branches among
  /// them make.
  std::vector<ValueId> values_read_by(OpId begin, OpId end) const;
  bool is_in_frame(ValueId value) const;

  // Functions for branches follow (branch_gradient.cpp).
  void visit_branches(const LoopRange& first, const LoopRange& second);
  struct Cotangent {
    ValueId value;
    bool is_zero;  ///< true if the branch doesn't read the value
  };
  /// Walks through a branch and returns the cotangents that it contributes to these outer values.
  std::vector<Cotangent> branch_cotangents(const LoopRange& branch, std::span<const OpId> merges,
                                           std::span<const ValueId> values);

  // Returns the forward value in a form that ops appended now may read. In a backward loop, the
  // value is read from a stack of the forward loop or computed again.
  ValueId forward(ValueId value);
  ValueId forward_in_loop(ValueId value);
  /// Appends copies of the ops of an inner loop or cond, which compute its results again.
  void clone_ops(OpId begin, OpId end);
  bool is_kept(OpId op) const;
  void compute_again(OpId id);
  bool is_saved(const RematRegion& region, OpId op) const;
  void behind_barrier(ValueId value);

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
  std::vector<bool> active_;  // indexed by value
  std::span<const RematRegion> all_regions_;
  std::vector<RematRegion> regions_;  // regions that the walk hasn't reached yet
  std::vector<Addend> addends_;
  std::vector<std::uint32_t> last_addend_;  // by value: head of its list in addends_, or kNoId
  std::vector<ValueId> again_;              // indexed by value: recomputed, or the value itself
  // Key: a value that the recomputed region reads. Value: its copy behind an optimization_barrier.
  std::unordered_map<ValueId, ValueId> behind_barrier_;
  std::vector<Frame> frames_;      // from the outermost loop to the innermost
  ForwardOp op_;                   // the op of visit(), with forward values
  std::vector<ValueId> operands_;  // the operands of the same op in the program
};

/// Copies the op into `copy`, whose memory is reused.
void copy_op(const Program& program, OpId op, ForwardOp& copy);

}  // namespace weft
