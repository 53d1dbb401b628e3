#pragma once
/// ChainCode: the machine code of a graph, which chains with equal graphs share.

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

  /// Computes rows * columns elements. `streams` has the address of each stream of the graph. A
  /// stream that is stored may be in the memory of a loaded stream, element for element.
  /// Thread-safe.
  void run(std::byte* const* streams, std::int64_t rows, std::int64_t columns) const {
    reinterpret_cast<Function>(const_cast<void*>(memory_.address()))(streams, rows, columns);
  }
  const std::string& refusal() const { return memory_.refusal(); }

 private:
  using Function = void (*)(std::byte* const*, std::int64_t, std::int64_t);
  ExecutableMemory memory_;
};

/// Returns the code of the graph, from the process's cache if a plan already uses it. Returns null
/// if executable memory is refused, or if the graph needs too large a stack frame. Thread-safe.
std::shared_ptr<const ChainCode> chain_code(const Graph& graph);
/// Returns why no chain can be compiled in this process, or "" if chains can be compiled.
std::string compile_refusal();

/// Returns the graph's machine code, which is position-independent (emitter.cpp). The result is
/// empty if the code would need too large a stack frame.
std::vector<std::byte> emit(const Graph& graph);

}  // namespace weft::jit
