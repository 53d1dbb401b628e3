#pragma once
/// Assembler: emits instructions of AVX2 or AVX-512, and manages the memory that a compiled chain
/// uses: streams, a frame on the stack, and constants after the code.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <xbyak/xbyak.h>

#include "chips/cpu/jit/graph.hpp"

namespace weft::jit {

/// The elements that one pass over the nodes computes.
enum class Part : std::uint8_t {
  vector,  ///< as many elements as a vector has lanes
  rest,    ///< with AVX-512 the lanes that k7 selects, with AVX2 one element
};

class Assembler : protected Xbyak::CodeGenerator {
 protected:
  Assembler(const Graph& graph, std::vector<std::uint8_t>& buffer);

  bool has_masks() const { return graph_.vectors == Vectors::avx512; }
  int lanes() const { return has_masks() ? 16 : 8; }
  int vector_bytes() const { return 4 * lanes(); }
  int frame_bytes() const { return frame_bytes_; }
  /// Returns vector register `reg`. When AVX2 computes the rest, this is an xmm register.
  Xbyak::Xmm vec(int reg) const;
  Xbyak::Opmask mask(int reg) const { return Xbyak::Opmask(reg); }

  /// Emits code that sets up pointers and indices, and copies elements of `single` streams to
  /// slots.
  void enter();
  void leave();
  /// Emits code that copies the row's element of each `column` stream to a slot.
  void begin_row();
  /// Emits code that advances the indices after a pass over vectors.
  void advance();
  void write_constants();

  /// Returns the memory operand with all lanes of a uniform node.
  Xbyak::Address lanes_of(int node);
  /// Returns the memory operand of 4 bytes with the common value of all lanes of a uniform node.
  Xbyak::Address lane_of(int node);
  Xbyak::Address constant(std::uint32_t bits, bool is_lane = false);
  Xbyak::Address spill_slot(int slot);
  Xbyak::Address element(int stream);
  /// Load and store elements. `temporary` and `other` are registers that may be overwritten.
  void load(int stream, int to);
  void store(int stream, int from, int temporary, int other);

  const Xbyak::Reg64 column_ = rcx;
  const Xbyak::Reg64 row_ = rsi;
  const Xbyak::Reg64 columns_ = rdx;
  const Graph& graph_;
  Part part_ = Part::vector;

 private:
  void copy_to_slot(int node);
  void load_narrow(int stream, int to);
  void store_narrow(int stream, int from, int temporary, int other);
  void store_one(int stream, int from);

  std::vector<Xbyak::Reg64> pointers_;  ///< by stream; rdi if the stream has no register
  std::vector<int> slots_;              ///< by node: offset of a uniform node's slot in the frame
  int spills_begin_ = 0;
  int frame_bytes_ = 0;
  std::size_t frame_size_at_ = 0;  ///< where the size of the frame is in the code
  bool has_rows_ = false;
  Xbyak::Label constants_at_;
  std::vector<std::uint32_t> constants_;
  std::unordered_map<std::uint32_t, int> constant_numbers_;  ///< key: bits; index in constants_
};

}  // namespace weft::jit
