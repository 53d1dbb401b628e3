#include "chips/cpu/jit/chain_code.hpp"

#include <list>
#include <mutex>

namespace weft::jit {
namespace {

/// The code of all chains in this process. Only plans own the code; the cache doesn't keep it
/// alive.
struct Cache {
  struct Entry {
    Graph graph;
    std::weak_ptr<const ChainCode> code;
  };
  std::mutex mutex;
  std::list<Entry> entries;
};

Cache& cache() {
  static Cache all;
  return all;
}

}  // namespace

std::shared_ptr<const ChainCode> chain_code(const Graph& graph) {
  Cache& all = cache();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.entries, [](const Cache::Entry& entry) { return entry.code.expired(); });
  for (const Cache::Entry& entry : all.entries) {
    if (entry.graph != graph) continue;
    if (auto code = entry.code.lock()) return code;
  }
#if defined(__x86_64__)
  const std::vector<std::byte> bytes = emit(graph);
  if (bytes.empty()) return nullptr;
  auto code = std::make_shared<const ChainCode>(bytes);
  if (!code->refusal().empty()) return nullptr;
  all.entries.push_back({graph, code});
  return code;
#else
  return nullptr;
#endif
}

std::string compile_refusal() {
  constexpr std::byte kReturn{0xc3};
  return ExecutableMemory(std::span(&kReturn, 1)).refusal();
}

}  // namespace weft::jit
