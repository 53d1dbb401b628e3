#include "chips/cpu/jit/assembler.hpp"

#include <algorithm>

namespace weft::jit {
namespace {

int element_bytes(DType dtype) { return static_cast<int>(byte_size(dtype)); }

}  // namespace

Assembler::Assembler(const Graph& graph, std::vector<std::uint8_t>& buffer)
    : CodeGenerator(buffer.size(), buffer.data()), graph_(graph) {}

Xbyak::Xmm Assembler::vec(int reg) const {
  if (has_masks()) return Xbyak::Zmm(reg);
  if (part_ == Part::vector) return Xbyak::Ymm(reg);
  return Xbyak::Xmm(reg);
}

/// Emits the entry of the function. Its arguments are the array of streams in rdi, the number of
/// rows in rsi and the number of columns in rdx. After the entry, the number of rows is at the
/// beginning of the frame, rsi has the index of the row, and rbx the index of the element in dense
/// streams. rax and r15 are free.
void Assembler::enter() {
  push(rbp);
  mov(rbp, rsp);
  for (const Xbyak::Reg64& reg : {rbx, r12, r13, r14, r15}) push(reg);
  and_(rsp, -64);
  sub(rsp, 0x7fffffff);
  frame_size_at_ = getSize() - 4;
  mov(ptr[rsp], rsi);
  xor_(esi, esi);
  xor_(ebx, ebx);
  std::vector<Xbyak::Reg64> free{r14, r13, r12, r11, r10, r9, r8};
  for (std::size_t s = 0; s < graph_.streams.size(); ++s) {
    const Stream::Kind kind = graph_.streams[s].kind;
    has_rows_ = has_rows_ || kind == Stream::Kind::row || kind == Stream::Kind::column;
    pointers_.push_back(rdi);
    if (free.empty() || (kind != Stream::Kind::dense && kind != Stream::Kind::row)) continue;
    pointers_.back() = free.back();
    free.pop_back();
    mov(pointers_.back(), ptr[rdi + 8 * static_cast<int>(s)]);
  }
  frame_bytes_ = 64;
  slots_.assign(graph_.nodes.size(), 0);
  for (std::size_t node = 0; node < graph_.nodes.size(); ++node) {
    if (graph_.nodes[node].kind != NodeKind::uniform) continue;
    slots_[node] = frame_bytes_;
    frame_bytes_ += has_masks() ? 4 : vector_bytes();
    const Stream& stream = graph_.streams[graph_.nodes[node].bits];
    if (stream.kind == Stream::Kind::single) copy_to_slot(static_cast<int>(node));
  }
  frame_bytes_ = spills_begin_ = (frame_bytes_ + 63) / 64 * 64;
}

void Assembler::leave() {
  vzeroupper();
  lea(rsp, ptr[rbp - 40]);
  for (const Xbyak::Reg64& reg : {r15, r14, r13, r12, rbx}) pop(reg);
  pop(rbp);
  ret();
  rewrite(frame_size_at_, static_cast<std::uint64_t>(frame_bytes_), 4);
}

void Assembler::begin_row() {
  for (std::size_t node = 0; node < graph_.nodes.size(); ++node) {
    if (graph_.nodes[node].kind != NodeKind::uniform) continue;
    const Stream& stream = graph_.streams[graph_.nodes[node].bits];
    if (stream.kind == Stream::Kind::column) copy_to_slot(static_cast<int>(node));
  }
}

void Assembler::advance() {
  add(column_, lanes());
  if (has_rows_) add(rbx, lanes());
}

void Assembler::copy_to_slot(int node) {
  const auto number = static_cast<int>(graph_.nodes[static_cast<std::size_t>(node)].bits);
  const Stream& stream = graph_.streams[static_cast<std::size_t>(number)];
  mov(rax, ptr[rdi + 8 * number]);
  const Xbyak::RegExp place = stream.kind == Stream::Kind::column
                                  ? rax + row_ * element_bytes(stream.dtype)
                                  : Xbyak::RegExp(rax);
  switch (stream.dtype) {
    case DType::bf16:
      movzx(eax, word[place]);
      shl(eax, 16);
      break;
    case DType::pred: movzx(eax, byte[place]); break;
    default: mov(eax, dword[place]);
  }
  const int slot = slots_[static_cast<std::size_t>(node)];
  for (int i = 0; i < (has_masks() ? 1 : lanes()); ++i) mov(dword[rsp + slot + 4 * i], eax);
}

Xbyak::Address Assembler::constant(std::uint32_t bits, bool is_lane) {
  const auto [number, is_new] =
      constant_numbers_.try_emplace(bits, static_cast<int>(constants_.size()));
  const int index = number->second;
  if (is_new) constants_.push_back(bits);
  const int offset = index * (has_masks() ? 4 : vector_bytes());
  if (has_masks() && !is_lane) return ptr_b[rip + constants_at_ + offset];
  return ptr[rip + constants_at_ + offset];
}

Xbyak::Address Assembler::lane_of(int node) {
  const Node& uniform = graph_.nodes[static_cast<std::size_t>(node)];
  if (uniform.kind == NodeKind::constant) return constant(uniform.bits, true);
  return ptr[rsp + slots_[static_cast<std::size_t>(node)]];
}

Xbyak::Address Assembler::lanes_of(int node) {
  const Node& uniform = graph_.nodes[static_cast<std::size_t>(node)];
  if (uniform.kind == NodeKind::constant) return constant(uniform.bits);
  const int slot = slots_[static_cast<std::size_t>(node)];
  return has_masks() ? ptr_b[rsp + slot] : ptr[rsp + slot];
}

Xbyak::Address Assembler::spill_slot(int slot) {
  const int offset = spills_begin_ + 64 * slot;
  frame_bytes_ = std::max(frame_bytes_, offset + 64);
  return ptr[rsp + offset];
}

void Assembler::write_constants() {
  align(64);
  L(constants_at_);
  for (const std::uint32_t bits : constants_) {
    for (int i = 0; i < (has_masks() ? 1 : lanes()); ++i) dd(bits);
  }
}

Xbyak::Address Assembler::element(int stream) {
  const auto s = static_cast<std::size_t>(stream);
  const Stream& of = graph_.streams[s];
  Xbyak::Reg64 base = pointers_[s];
  if (base.getIdx() == rdi.getIdx()) {
    mov(rax, ptr[rdi + 8 * stream]);
    base = rax;
  }
  const bool runs_on = has_rows_ && of.kind == Stream::Kind::dense;
  return ptr[base + (runs_on ? rbx : column_) * element_bytes(of.dtype)];
}

void Assembler::load(int stream, int to) {
  const DType dtype = graph_.streams[static_cast<std::size_t>(stream)].dtype;
  if (dtype == DType::bf16 || dtype == DType::pred) return load_narrow(stream, to);
  const Xbyak::Address from = element(stream);
  if (part_ == Part::vector) {
    vmovups(vec(to), from);
  } else if (has_masks()) {
    vmovups(vec(to) | k7 | T_z, from);
  } else {
    vmovss(vec(to), from);
  }
}

void Assembler::load_narrow(int stream, int to) {
  const bool is_bf16 = graph_.streams[static_cast<std::size_t>(stream)].dtype == DType::bf16;
  const Xbyak::Address from = element(stream);
  if (part_ == Part::rest && !has_masks()) {
    const Xbyak::RegExp place = from.getRegExp();
    is_bf16 ? movzx(r15d, word[place]) : movzx(r15d, byte[place]);
    if (is_bf16) shl(r15d, 16);
    vmovd(vec(to), r15d);
    return;
  }
  const Xbyak::Xmm lanes = part_ == Part::rest ? vec(to) | k7 | T_z : vec(to);
  is_bf16 ? vpmovzxwd(lanes, from) : vpmovzxbd(lanes, from);
  if (is_bf16) vpslld(vec(to), vec(to), 16);
}

void Assembler::store(int stream, int from, int temporary, int other) {
  const DType dtype = graph_.streams[static_cast<std::size_t>(stream)].dtype;
  if (part_ == Part::rest && !has_masks()) return store_one(stream, from);
  if (dtype == DType::bf16 || dtype == DType::pred) {
    return store_narrow(stream, from, temporary, other);
  }
  const Xbyak::Address to = element(stream);
  part_ == Part::rest ? vmovups(to | k7, vec(from)) : vmovups(to, vec(from));
}

/// Stores lanes as bf16, which is the upper half of each lane, or a mask as bytes 0 and 1.
void Assembler::store_narrow(int stream, int from, int temporary, int other) {
  const bool is_bf16 = graph_.streams[static_cast<std::size_t>(stream)].dtype == DType::bf16;
  const Xbyak::Xmm lanes = vec(temporary);
  if (is_bf16) {
    vpsrld(lanes, vec(from), 16);
  } else if (has_masks()) {
    vpbroadcastd(lanes | mask(from) | T_z, constant(1, true));
  } else {
    vandps(lanes, vec(from), constant(1));
  }
  const Xbyak::Address to = element(stream);
  if (has_masks()) {
    const Xbyak::Address part = part_ == Part::rest ? to | k7 : to;
    is_bf16 ? vpmovdw(part, Xbyak::Zmm(temporary)) : vpmovdb(part, Xbyak::Zmm(temporary));
    return;
  }
  const Xbyak::Xmm low(temporary);
  const Xbyak::Xmm high(other);
  vextracti128(high, Xbyak::Ymm(temporary), 1);
  vpackusdw(low, low, high);
  if (is_bf16) {
    vmovups(to, low);
  } else {
    vpacksswb(low, low, low);
    vmovq(to, low);
  }
}

void Assembler::store_one(int stream, int from) {
  const Xbyak::RegExp to = element(stream).getRegExp();
  vmovd(r15d, Xbyak::Xmm(from));
  switch (graph_.streams[static_cast<std::size_t>(stream)].dtype) {
    case DType::bf16:
      shr(r15d, 16);
      mov(word[to], r15w);
      break;
    case DType::pred:
      and_(r15d, 1);
      mov(byte[to], r15b);
      break;
    default: mov(dword[to], r15d);
  }
}

}  // namespace weft::jit
