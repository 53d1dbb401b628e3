#pragma once
/// Registers: allocates registers and stack slots to the nodes of a graph. A node stays in its
/// register until its last use. If there aren't enough registers, the node whose next use is last
/// gives up its own.

#include <vector>

#include "chips/cpu/jit/graph.hpp"

namespace weft::jit {

class Registers {
 public:
  /// The instructions that the emitter must write for a change.
  struct Moves {
    virtual void spill(int node, int reg, int slot) = 0;
    virtual void reload(int node, int reg, int slot) = 0;

   protected:
    ~Moves() = default;
  };

  /// The free registers are 0 to num_vectors - 1, and for masks 1 to num_masks. With 0 masks, masks
  /// are vectors. The graph must outlive this object.
  Registers(const Graph& graph, int num_vectors, int num_masks, Moves& moves);

  /// Begins a pass over the nodes. Nodes in `hoisted` keep their registers.
  void begin(const std::vector<int>& hoisted);
  /// Returns the node's register, after a reload if needed. It stays until next(). A uniform node
  /// must be hoisted.
  int of(int node);
  bool has(int node) const { return places_[at(node)].reg >= 0; }
  /// Returns a register for the node that is being made.
  int make(int node);
  /// Returns a vector register that can be used until next().
  int borrow();
  /// The operand's register becomes the node's. Returns it.
  int take_over(int operand, int node);
  /// Whether the operand isn't used after the current position and may be overwritten.
  bool ends(int node) const;
  /// Counts the current position's use of a node, and frees its register after the last.
  void used(int node);
  /// Moves to the next position and returns borrowed registers.
  void next();

  /// Whether a store needs the node, directly or indirectly.
  bool is_live(int node) const { return !uses_[at(node)].empty(); }
  int peak() const { return peak_; }  ///< the most vector registers in use at once

 private:
  struct Place {
    int reg = -1;
    int slot = -1;             ///< on the stack, until the last use
    std::size_t next_use = 0;  ///< index in uses_
    bool stays = false;        ///< hoisted
  };
  static std::size_t at(int node) { return static_cast<std::size_t>(node); }
  /// Registers of one kind.
  struct File {
    std::vector<int> free{};
    std::vector<int> nodes{};  ///< by register; -1: none, or it is borrowed
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
  std::vector<std::vector<int>> uses_;  ///< positions by node; a store counts as a use
  std::vector<Place> places_;
  File vectors_;
  File masks_;
  std::vector<int> borrowed_;
  std::vector<int> pinned_;      ///< nodes that the current position reads
  std::vector<int> free_slots_;  ///< slots that the pass has used and freed
  int slots_ = 0;
  int peak_ = 0;
};

}  // namespace weft::jit
