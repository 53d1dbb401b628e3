#pragma once
/// Registers: which node of a graph lies in which register, and which in the stack. A node stays in
/// its register to its last use; where registers don't suffice, the node that is used last gives up
/// its own.

#include <vector>

#include "chips/cpu/jit/graph.hpp"

namespace weft::jit {

class Registers {
 public:
  /// What the emitter has to write for a change.
  struct Moves {
    virtual void spill(int node, int reg, int slot) = 0;
    virtual void reload(int node, int reg, int slot) = 0;

   protected:
    ~Moves() = default;
  };

  /// `num_vectors`, `num_masks`: free registers are 0 .. and, of masks, 1 .. (0 masks: masks are
  /// vectors). The graph must outlive this object.
  Registers(const Graph& graph, int num_vectors, int num_masks, Moves& moves);

  /// Begins a pass over the nodes. Nodes in `hoisted` keep their registers.
  void begin(const std::vector<int>& hoisted);
  /// The node's register, reloaded if need be; it stays until next(). Not of a uniform node, unless
  /// it is hoisted.
  int of(int node);
  bool has(int node) const { return places_[at(node)].reg >= 0; }
  /// A register for the node that is made.
  int make(int node);
  /// A vector register until next().
  int borrow();
  /// The operand's register becomes the node's.
  int take_over(int operand, int node);
  /// Whether the operand isn't used after the current position and may be overwritten.
  bool ends(int node) const;
  /// Counts the current position's use of a node, and frees its register after the last.
  void used(int node);
  /// Goes to the next position, and gives back what was borrowed.
  void next();

  /// Whether a store needs the node, directly or not.
  bool is_live(int node) const { return !uses_[at(node)].empty(); }
  int peak() const { return peak_; }  ///< the most vector registers in use at once

 private:
  struct Place {
    int reg = -1;
    int slot = -1;             ///< of the stack, to the last use
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
  std::vector<std::vector<int>> uses_;  ///< by node: positions; a store is one
  std::vector<Place> places_;
  File vectors_;
  File masks_;
  std::vector<int> borrowed_;
  std::vector<int> pinned_;      ///< nodes that the current position reads
  std::vector<int> free_slots_;  ///< of those that the pass has had
  int slots_ = 0;
  int peak_ = 0;
};

}  // namespace weft::jit
