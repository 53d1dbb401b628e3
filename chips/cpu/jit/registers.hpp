#pragma once
/// Registers: allocates registers and stack slots to the nodes of a graph. A node stays in its
/// register until its last use. If no register is free, the node whose next use is farthest away is
/// spilled to a stack slot.

#include <vector>

#include "chips/cpu/jit/graph.hpp"

namespace weft::jit {

class Registers {
 public:
  /// The interface that emits instructions to move a node between its register and a stack slot.
  struct Moves {
    virtual void spill(int node, int reg, int slot) = 0;
    virtual void reload(int node, int reg, int slot) = 0;

   protected:
    ~Moves() = default;
  };

  /// Allocates the vector registers 0 to num_vectors - 1 and the mask registers 1 to num_masks. If
  /// num_masks is 0, masks are in vector registers. The graph must outlive this object.
  Registers(const Graph& graph, int num_vectors, int num_masks, Moves& moves);

  /// Begins a pass over the nodes. Nodes in `hoisted` keep their registers during the entire pass.
  void begin(const std::vector<int>& hoisted);
  /// Returns the node's register, and reloads the node if it was spilled. The node stays in the
  /// register until next(). A uniform node must be hoisted.
  int of(int node);
  bool has(int node) const { return places_[at(node)].reg >= 0; }
  /// Returns a register for the node that is being computed.
  int make(int node);
  /// Returns a vector register that can be used until next().
  int borrow();
  /// Transfers the operand's register to `node`, and returns the register.
  int take_over(int operand, int node);
  /// Returns whether the operand isn't used after the current position and may be overwritten.
  bool ends(int node) const;
  /// Counts the use of a node at the current position. If it was the last use, frees the register.
  void used(int node);
  /// Moves to the next position, and frees the registers that borrow() returned.
  void next();

  /// Returns whether a store depends on the node, directly or indirectly.
  bool is_live(int node) const { return !uses_[at(node)].empty(); }
  int peak() const { return peak_; }  ///< largest number of vector registers in use at once

 private:
  struct NodeRegister {
    int reg = -1;
    int slot = -1;             ///< stack slot, or -1
    std::size_t next_use = 0;  ///< index in uses_
    bool stays = false;        ///< true if hoisted
  };
  static std::size_t at(int node) { return static_cast<std::size_t>(node); }
  /// The registers of one kind.
  struct File {
    std::vector<int> free{};
    std::vector<int> nodes{};  ///< by register; -1 if it is free or borrowed
  };
  File& file_of(int node);
  void put(int node, int reg);
  void free(int node);
  int take(int node);
  void evict(int node_for);

  const Graph& graph_;
  int num_vectors_;
  int num_masks_;
  Moves& moves_;
  std::vector<std::vector<int>> uses_;  ///< by node: positions of its uses, including stores
  std::vector<NodeRegister> places_;
  File vectors_;
  File masks_;
  std::vector<int> borrowed_;
  std::vector<int> pinned_;      ///< nodes that the current position reads; not spilled
  std::vector<int> free_slots_;  ///< slots that were used in this pass and are free again
  int slots_ = 0;
  int peak_ = 0;
};

}  // namespace weft::jit
