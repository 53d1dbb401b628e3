/// Emits the machine code of a graph: a loop over rows, which contains a loop over whole vectors of
/// elements, followed by code for the elements that remain.

#include <algorithm>
#include <cstring>

#include "chips/cpu/jit/assembler.hpp"
#include "chips/cpu/jit/chain_code.hpp"
#include "chips/cpu/jit/registers.hpp"

namespace weft::jit {
namespace {

/// The largest stack frame. It is small because `ulimit -s` may limit a chip thread's stack, and
/// because an overflow must hit the stack's guard page instead of skipping it.
constexpr int kFrameBytesMax = 32768;

class Emitter final : Assembler, Registers::Moves {
 public:
  Emitter(const Graph& graph, std::vector<std::uint8_t>& buffer, std::vector<int> hoisted)
      : Assembler(graph, buffer),
        hoisted_(std::move(hoisted)),
        registers_(graph, graph.vectors == Vectors::avx512 ? 32 : 16,
                   graph.vectors == Vectors::avx512 ? 6 : 0, *this) {}

  void run();
  std::size_t size() const { return getSize(); }
  bool fits_the_stack() const { return frame_bytes() <= kFrameBytesMax; }
  /// Returns the uniform nodes that were needed in a register most often, as many as there are free
  /// registers.
  std::vector<int> to_hoist() const;

 private:
  using Operand = Xbyak::Operand;
  using Xmm = Xbyak::Xmm;

  void spill(int node, int reg, int slot) override;
  void reload(int node, int reg, int slot) override;

  void pass(Part part);
  void write(const Graph::Store& store);
  void emit(int number, const Node& node);
  void make_fused(int number, const Node& node);
  void make_bits_where(int number, const Node& node);
  bool make_mask(int number, const Node& node);
  bool make_unary(int number, const Node& node);
  void make_binary(int number, const Node& node);

  bool is_in_memory(int node) const {
    return is_uniform(graph_.nodes[static_cast<std::size_t>(node)].kind) && !registers_.has(node);
  }
  /// Returns a register with the node's lanes.
  int reg(int node);
  void count_uses(const Node& node);
  /// Returns a register for the new node, after the uses of its operands have been counted.
  int result(int number, const Node& node);
  /// Returns a register for the result, filled with the lanes of `node`. It is for an instruction
  /// that overwrites its first operand.
  int overwritten(int node, int number);
  /// Calls instruction(operand) with the register or the memory of the node as operand.
  template <typename Instruction>
  void with(int node, Instruction instruction) {
    if (is_in_memory(node)) {
      const Xbyak::Address address = lanes_of(node);
      instruction(static_cast<const Operand&>(address));
    } else {
      const Xmm lanes = vec(registers_.of(node));
      instruction(static_cast<const Operand&>(lanes));
    }
  }

  std::vector<int> hoisted_;
  Registers registers_;
  std::vector<int> needed_ = std::vector<int>(graph_.nodes.size());  ///< by node: its register uses
};

void Emitter::spill(int node, int reg, int slot) {
  const bool is_opmask = has_masks() && is_mask(graph_.nodes[static_cast<std::size_t>(node)].kind);
  is_opmask ? kmovw(spill_slot(slot), mask(reg)) : vmovups(spill_slot(slot), vec(reg));
}

void Emitter::reload(int node, int reg, int slot) {
  const bool is_opmask = has_masks() && is_mask(graph_.nodes[static_cast<std::size_t>(node)].kind);
  is_opmask ? kmovw(mask(reg), spill_slot(slot)) : vmovups(vec(reg), spill_slot(slot));
}

std::vector<int> Emitter::to_hoist() const {
  std::vector<int> nodes;
  for (int node = 0; node < static_cast<int>(graph_.nodes.size()); ++node) {
    const Node& at = graph_.nodes[static_cast<std::size_t>(node)];
    const bool is_single =
        at.kind == NodeKind::constant ||
        (at.kind == NodeKind::uniform && graph_.streams[at.bits].kind == Stream::Kind::single);
    if (is_single && registers_.is_live(node)) nodes.push_back(node);
  }
  std::ranges::stable_sort(nodes, std::ranges::greater{},
                           [&](int node) { return needed_[static_cast<std::size_t>(node)]; });
  const int left = std::max(0, (has_masks() ? 32 : 16) - registers_.peak());
  nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(left)));
  return nodes;
}

void Emitter::run() {
  Xbyak::Label row, loop, rest, end;
  enter();
  registers_.begin(hoisted_);
  for (const int node : hoisted_) vbroadcastss(vec(registers_.of(node)), lane_of(node));
  registers_.next();
  L(row);
  begin_row();
  xor_(ecx, ecx);
  lea(rax, ptr[rcx + lanes()]);
  cmp(rax, columns_);
  jg(rest, T_NEAR);
  align(32);
  L(loop);
  pass(Part::vector);
  advance();
  lea(rax, ptr[rcx + lanes()]);
  cmp(rax, columns_);
  jle(loop, T_NEAR);
  L(rest);
  cmp(rcx, columns_);
  jge(end, T_NEAR);
  if (has_masks()) {
    mov(rax, columns_);
    sub(rax, rcx);
    mov(r15d, -1);
    bzhi(r15d, r15d, eax);
    kmovw(k7, r15d);
    pass(Part::rest);
    add(rbx, columns_);
    sub(rbx, rcx);
  } else {
    pass(Part::rest);
    inc(rcx);
    inc(rbx);
    jmp(rest, T_NEAR);
  }
  L(end);
  inc(row_);
  cmp(row_, ptr[rsp]);
  jl(row, T_NEAR);
  leave();
  write_constants();
}

void Emitter::pass(Part part) {
  part_ = part;
  registers_.begin(hoisted_);
  auto store = graph_.stores.begin();
  const auto nodes = static_cast<int>(graph_.nodes.size());
  for (int number = 0; number <= nodes; ++number) {
    for (; store != graph_.stores.end() && store->before == number; ++store) write(*store);
    if (number == nodes || !registers_.is_live(number)) continue;
    const Node& node = graph_.nodes[static_cast<std::size_t>(number)];
    if (is_uniform(node.kind)) continue;
    emit(number, node);
    registers_.next();
  }
  part_ = Part::vector;
}

void Emitter::write(const Graph::Store& stored) {
  const DType dtype = graph_.streams[static_cast<std::size_t>(stored.stream)].dtype;
  const bool is_narrow = dtype == DType::bf16 || dtype == DType::pred;
  const int from = reg(stored.node);
  const int temporary = is_narrow ? registers_.borrow() : 0;
  const int other = is_narrow && !has_masks() ? registers_.borrow() : 0;
  store(stored.stream, from, temporary, other);
  registers_.used(stored.node);
  registers_.next();
}

int Emitter::reg(int node) {
  if (!is_in_memory(node)) return registers_.of(node);
  ++needed_[static_cast<std::size_t>(node)];
  const int borrowed = registers_.borrow();
  vbroadcastss(vec(borrowed), lane_of(node));
  return borrowed;
}

int Emitter::result(int number, const Node& node) {
  count_uses(node);
  return registers_.make(number);
}

void Emitter::count_uses(const Node& node) {
  auto operands = node.operands;
  std::ranges::sort(operands);
  const auto end = std::unique(operands.begin(), operands.end());
  for (auto operand = operands.begin(); operand != end; ++operand) {
    if (*operand >= 0) registers_.used(*operand);
  }
}

int Emitter::overwritten(int node, int number) {
  if (!is_in_memory(node)) {
    const int from = registers_.of(node);
    if (registers_.ends(node)) return registers_.take_over(node, number);
    const int to = registers_.make(number);
    vmovaps(vec(to), vec(from));
    return to;
  }
  ++needed_[static_cast<std::size_t>(node)];
  const int to = registers_.make(number);
  vbroadcastss(vec(to), lane_of(node));
  return to;
}

void Emitter::emit(int number, const Node& node) {
  switch (node.kind) {
    case NodeKind::load: return load(static_cast<int>(node.bits), registers_.make(number));
    case NodeKind::fused: make_fused(number, node); break;
    case NodeKind::bits_where: make_bits_where(number, node); break;
    default:
      if (!make_mask(number, node) && !make_unary(number, node)) make_binary(number, node);
      return;
  }
  count_uses(node);  // after result(), which may take over an operand's register
}

/// Emits a * b + c. The instruction overwrites an operand that isn't used later, or else a copy of
/// an operand. One operand may be in memory.
void Emitter::make_fused(int number, const Node& node) {
  int a = node.operands[0];
  int b = node.operands[1];
  const int c = node.operands[2];
  if (is_in_memory(b)) std::swap(a, b);  // now b is in memory only if a is too
  const bool is_b_in_register = !is_in_memory(b);
  if (is_in_memory(c) || (is_b_in_register && !is_in_memory(a) && !registers_.ends(c) &&
                          (registers_.ends(a) || registers_.ends(b)))) {
    if (!registers_.ends(a) && (is_in_memory(b) || registers_.ends(b))) std::swap(a, b);
    const int factor = reg(b);
    return with(c, [&](const Operand& term) {
      const int to = overwritten(a, number);
      vfmadd213ps(vec(to), vec(factor), term);
    });
  }
  if (!is_in_memory(a)) std::swap(a, b);  // now a is in memory if a or b is
  const int factor = reg(b);
  with(a, [&](const Operand& other) {
    const int to = overwritten(c, number);
    vfmadd231ps(vec(to), vec(factor), other);
  });
}

void Emitter::make_bits_where(int number, const Node& node) {
  const int from = reg(node.operands[1]);
  const int to = overwritten(node.operands[0], number);
  with(node.operands[2],
       [&](const Operand& chosen) { vpternlogd(vec(to), vec(from), chosen, 0xd8); });
}

/// Emits the node if it makes a mask or is a blend, which reads a mask. Returns false for all other
/// nodes.
bool Emitter::make_mask(int number, const Node& node) {
  const int a = node.operands[0];
  const int b = node.operands[1];
  const int c = node.operands[2];
  const auto compare = [&](auto to, const Xmm& x, const Operand& y) {
    switch (node.kind) {
      case NodeKind::compare: vcmpps(to, x, y, static_cast<std::uint8_t>(node.bits)); break;
      case NodeKind::int_equal: vpcmpeqd(to, x, y); break;
      default: vpcmpgtd(to, x, y);
    }
  };
  const auto combine = [&](const auto& with_masks, const auto& with_vectors) {
    const int x = registers_.of(a);
    const int y = registers_.of(b);
    const int to = result(number, node);
    has_masks() ? with_masks(mask(to), mask(x), mask(y)) : with_vectors(vec(to), vec(x), vec(y));
    return true;
  };
  switch (node.kind) {
    case NodeKind::compare:
    case NodeKind::int_equal:
    case NodeKind::int_greater: {
      const int x = reg(a);
      if (!is_in_memory(b)) registers_.of(b);
      with(b, [&](const Operand& y) {
        const int to = result(number, node);
        has_masks() ? compare(mask(to), vec(x), y) : compare(vec(to), vec(x), y);
      });
      return true;
    }
    case NodeKind::mask_and:
      return combine([&](auto d, auto x, auto y) { kandw(d, x, y); },
                     [&](auto d, auto x, auto y) { vandps(d, x, y); });
    case NodeKind::mask_or:
      return combine([&](auto d, auto x, auto y) { korw(d, x, y); },
                     [&](auto d, auto x, auto y) { vorps(d, x, y); });
    case NodeKind::mask_xor:
      return combine([&](auto d, auto x, auto y) { kxorw(d, x, y); },
                     [&](auto d, auto x, auto y) { vxorps(d, x, y); });
    case NodeKind::mask_not: {
      const int x = registers_.of(a);
      const int to = result(number, node);
      has_masks() ? knotw(mask(to), mask(x)) : vxorps(vec(to), vec(x), constant(0xffffffffU));
      return true;
    }
    case NodeKind::blend: {
      const int chosen = registers_.of(a);
      const int otherwise = reg(b);
      with(c, [&](const Operand& then) {
        const int to = result(number, node);
        if (has_masks()) {
          vblendmps(vec(to) | mask(chosen), vec(otherwise), then);
        } else {
          vblendvps(vec(to), vec(otherwise), then, vec(chosen));
        }
      });
      return true;
    }
    default: return false;
  }
}

bool Emitter::make_unary(int number, const Node& node) {
  if (node.operands[1] >= 0) return false;
  const Xmm x = vec(reg(node.operands[0]));
  const Xmm to = vec(result(number, node));
  const auto bits = static_cast<std::uint8_t>(node.bits);
  switch (node.kind) {
    case NodeKind::square_root: vsqrtps(to, x); break;
    case NodeKind::round:
      // Bit 3 of the mode suppresses the exception for inexact results.
      has_masks() ? vrndscaleps(to, x, bits | 8U) : vroundps(to, x, bits | 8U);
      break;
    case NodeKind::exponent: vgetexpps(to, x); break;
    case NodeKind::significand: vgetmantps(to, x, 0); break;
    case NodeKind::shift_left: vpslld(to, x, bits); break;
    case NodeKind::shift_right: vpsrld(to, x, bits); break;
    case NodeKind::shift_right_signed: vpsrad(to, x, bits); break;
    case NodeKind::to_float: vcvtdq2ps(to, x); break;
    default: vcvttps2dq(to, x);
  }
  return true;
}

void Emitter::make_binary(int number, const Node& node) {
  int a = node.operands[0];
  int b = node.operands[1];
  const bool commutes = node.kind == NodeKind::add || node.kind == NodeKind::multiply ||
                        (node.kind >= NodeKind::bit_and && node.kind <= NodeKind::bit_xor) ||
                        node.kind == NodeKind::int_add || node.kind == NodeKind::int_multiply ||
                        node.kind == NodeKind::int_min || node.kind == NodeKind::int_max;
  if (commutes && is_in_memory(a)) std::swap(a, b);
  const Xmm x = vec(reg(a));
  with(b, [&](const Operand& y) {
    const Xmm to = vec(result(number, node));
    switch (node.kind) {
      case NodeKind::add: vaddps(to, x, y); break;
      case NodeKind::subtract: vsubps(to, x, y); break;
      case NodeKind::multiply: vmulps(to, x, y); break;
      case NodeKind::divide: vdivps(to, x, y); break;
      case NodeKind::min: vminps(to, x, y); break;
      case NodeKind::max: vmaxps(to, x, y); break;
      case NodeKind::times_power_of_two: vscalefps(to, x, y); break;
      case NodeKind::bit_and: vandps(to, x, y); break;
      case NodeKind::bit_or: vorps(to, x, y); break;
      case NodeKind::bit_xor: vxorps(to, x, y); break;
      case NodeKind::int_add: vpaddd(to, x, y); break;
      case NodeKind::int_subtract: vpsubd(to, x, y); break;
      case NodeKind::int_multiply: vpmulld(to, x, y); break;
      case NodeKind::int_min: vpminsd(to, x, y); break;
      case NodeKind::int_max: vpmaxsd(to, x, y); break;
      default: WEFT_CHECK(false, static_cast<int>(node.kind));
    }
  });
}

}  // namespace

std::vector<std::byte> emit(const Graph& graph) {
  // The buffer is large enough: the emitter makes two passes over the nodes, and a pass emits up to
  // three instructions of ten bytes per node.
  std::vector<std::uint8_t> buffer(16384 + graph.nodes.size() * 128);
  Emitter first(graph, buffer, {});
  first.run();
  Emitter second(graph, buffer, first.to_hoist());
  second.run();
  if (!second.fits_the_stack()) return {};
  std::vector<std::byte> code(second.size());
  std::memcpy(code.data(), buffer.data(), code.size());
  return code;
}

}  // namespace weft::jit
