#pragma once
/// SystemBlocks: the blocks of memory that the processes of an actor system hold.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Blocks of one process's heap that have the same size and the same holders.
struct HeldBlocks {
  std::uint32_t owner = 0;               ///< slot of the heap's process
  std::vector<std::uint32_t> holders{};  ///< slots of the holders, sorted
  std::uint64_t block_bytes = 0;
  std::vector<std::uint32_t> blocks{};  ///< indices in the owner's ledger
};

struct ProcessBlocks {
  std::uint32_t slot = 0;
  std::uint64_t heap_bytes = 0;   ///< address space of the process's heap
  std::uint64_t made_blocks = 0;  ///< blocks in the process's heap, held or free
  std::uint64_t made_bytes = 0;
  std::uint64_t held_blocks = 0;  ///< blocks in all heaps that the process holds
  std::uint64_t held_bytes = 0;
  std::uint64_t foreign_bytes = 0;  ///< bytes of held blocks in other processes' heaps
};

struct SystemBlocks {
  std::vector<ProcessBlocks> processes{};
  std::vector<HeldBlocks> held{};  ///< in descending order of the blocks' total bytes
  std::vector<std::string> remarks{};
};

/// Reads the ledgers of the system's processes. The system may hold or release blocks meanwhile.
SystemBlocks read_system_blocks(const SystemSnapshot& system);

std::string system_blocks_text(const SystemSnapshot& system, const SystemBlocks& blocks);
std::string system_blocks_json(const SystemSnapshot& system,
                               const SystemBlocks& blocks);  ///< schema weft.blocks/1

}  // namespace weft
