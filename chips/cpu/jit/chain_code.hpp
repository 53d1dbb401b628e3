#pragma once
/// ChainCode: a graph as machine code. Chains with equal graphs share their code.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chips/cpu/jit/executable_memory.hpp"
#include "chips/cpu/jit/graph.hpp"

namespace weft::jit {

class ChainCode {
 public:
  explicit ChainCode(std::span<const std::byte> code) : memory_(code) {}

  /// Computes rows * columns elements; `streams`: where each stream of the graph begins. A stored
  /// stream may lie where a loaded one does, element for element. Thread-safe.
  void run(std::byte* const* streams, std::int64_t rows, std::int64_t columns) const {
    reinterpret_cast<Function>(const_cast<void*>(memory_.address()))(streams, rows, columns);
  }
  const std::string& refusal() const { return memory_.refusal(); }

 private:
  using Function = void (*)(std::byte* const*, std::int64_t, std::int64_t);
  ExecutableMemory memory_;
};

/// The code of the graph, from the process's cache if some plan has it. Null where executable
/// memory is refused, or the graph has too many values at once for a stack. Thread-safe.
std::shared_ptr<const ChainCode> chain_code(const Graph& graph);
/// Why no chain can be compiled in this process, "" if there is no reason.
std::string compile_refusal();

/// The graph's machine code (emitter.cpp); empty if it would need too large a stack.
/// Position-independent.
std::vector<std::byte> emit(const Graph& graph);

}  // namespace weft::jit
