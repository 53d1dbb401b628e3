#pragma once
/// The blocks of memory that the processes of an actor system hold.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/systems/system_snapshot.hpp"

namespace weft {

/// Blocks of one process's heap that have the same size and the same holders.
struct HeldBlocks {
  std::uint32_t owner = 0;               ///< slot
  std::vector<std::uint32_t> holders{};  ///< slots, sorted
  std::uint64_t block_bytes = 0;
  std::vector<std::uint32_t> blocks{};  ///< their indices in the owner's ledger
};

struct ProcessBlocks {
  std::uint32_t slot = 0;
  std::uint64_t heap_bytes = 0;   ///< address space
  std::uint64_t made_blocks = 0;  ///< of its heap, held or free
  std::uint64_t made_bytes = 0;
  std::uint64_t held_blocks = 0;  ///< of all heaps, that the process holds
  std::uint64_t held_bytes = 0;
  std::uint64_t foreign_bytes = 0;  ///< those of them that are of other heaps
};

struct SystemBlocks {
  std::vector<ProcessBlocks> processes{};
  std::vector<HeldBlocks> held{};  ///< the largest sum of bytes comes first
  std::vector<std::string> remarks{};
};

/// Reads the ledgers of the system's processes. Holds may change meanwhile.
SystemBlocks read_system_blocks(const SystemSnapshot& system);

std::string system_blocks_text(const SystemSnapshot& system, const SystemBlocks& blocks);
std::string system_blocks_json(const SystemSnapshot& system,
                               const SystemBlocks& blocks);  ///< weft.blocks/1

}  // namespace weft
