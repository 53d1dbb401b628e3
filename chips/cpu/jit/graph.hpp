#pragma once
/// Graph: the computation for one vector of elements, as nodes that compute on vectors of 32-bit
/// lanes. Most nodes take one instruction.

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include <weft/tensor/type.hpp>

#include "chips/cpu/loops/vectorize.hpp"

namespace weft::jit {

using kernels::Vectors;

/// The kinds of nodes. a, b and c are the operands; `bits` is an immediate value. Lanes are f32
/// unless the name contains `int`. A mask has lanes that are true or false.
enum class NodeKind : std::uint8_t {
  load,      ///< the elements of stream `bits`, one per lane: bf16 as f32, pred as 0 or 1
  uniform,   ///< the same element of stream `bits` in every lane
  constant,  ///< `bits` in every lane
  add,
  subtract,
  multiply,
  divide,
  fused,  ///< a * b + c, rounded once
  square_root,
  min,                 ///< a < b ? a : b
  max,                 ///< a > b ? a : b
  round,               ///< rounds in x86's mode `bits`: 0 to nearest even, 1 down, 2 up
  times_power_of_two,  ///< only with AVX-512
  exponent,            ///< only with AVX-512
  significand,         ///< only with AVX-512
  bit_and,
  bit_or,
  bit_xor,
  bits_where,  ///< (a & ~c) | (b & c); only with AVX-512
  int_add,
  int_subtract,
  int_multiply,
  int_min,
  int_max,
  shift_left,   ///< shifts left by `bits`
  shift_right,  ///< shifts right by `bits`, filling with zeros
  shift_right_signed,
  to_float,     ///< i32 to f32
  to_int,       ///< f32 to i32, truncated; INT_MIN if out of range
  compare,      ///< makes a mask, by x86's predicate `bits`
  int_equal,    ///< makes a mask: a == b
  int_greater,  ///< makes a mask: a > b, signed
  mask_and,
  mask_or,
  mask_xor,
  mask_not,
  blend,  ///< in each lane, c if mask a is true, else b
};

struct Node {
  NodeKind kind = NodeKind::constant;
  std::array<int, 3> operands{-1, -1, -1};
  std::uint32_t bits = 0;
  auto operator<=>(const Node&) const = default;
};

/// Memory that the computation reads or writes.
struct Stream {
  enum class Kind : std::uint8_t {
    dense,   ///< one element for each row and column
    row,     ///< one element per column, read again in every row
    column,  ///< one element per row
    single,  ///< one element
  };
  DType dtype = DType::f32;
  Kind kind = Kind::dense;
  bool operator==(const Stream&) const = default;
};

struct Graph {
  struct Store {
    int node = 0;
    int stream = 0;
    int before = 0;  ///< number of the node before which the store happens
    bool operator==(const Store&) const = default;
  };
  explicit Graph(Vectors of_processor) : vectors(of_processor) {}

  /// Adds the node if the graph doesn't have it yet, and returns its number. The node's operands
  /// must already be in the graph.
  int put(const Node& node) {
    const auto [found, is_new] = numbers.try_emplace(node, static_cast<int>(nodes.size()));
    if (is_new) nodes.push_back(node);
    return found->second;
  }
  /// Adds a store of the node's lanes to the stream. The store happens after all nodes added so
  /// far.
  void store(int node, int stream) {
    stores.push_back({node, stream, static_cast<int>(nodes.size())});
  }
  bool operator==(const Graph& other) const {
    return vectors == other.vectors && nodes == other.nodes && streams == other.streams &&
           stores == other.stores;
  }

  Vectors vectors;
  std::vector<Node> nodes;
  std::vector<Stream> streams;
  std::vector<Store> stores;  ///< in order of execution
  std::map<Node, int> numbers;
};

inline bool is_mask(NodeKind kind) {
  return kind >= NodeKind::compare && kind <= NodeKind::mask_not;
}
/// Returns whether a node of this kind has the same value in all lanes. The value is stored as a
/// constant after the code, or in a slot of the stack frame.
inline bool is_uniform(NodeKind kind) {
  return kind == NodeKind::uniform || kind == NodeKind::constant;
}

}  // namespace weft::jit
