#pragma once
/// The executable and the shared libraries of a process: which one holds an address, and by which
/// build it was made.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A loaded object.
struct ElfObject {
  std::string path{};       ///< absolute; "" for the executable
  std::uintptr_t base = 0;  ///< where it is loaded
  /// The linker's build id in hex; without one (-Wl,--build-id=none) "device:inode:size:mtime" of
  /// the file, "" where that is gone.
  std::string build{};
};

/// The one that holds `address`; nothing for an address of none.
std::optional<ElfObject> object_of(const void* address);

/// Throws version where the file isn't of that build, naming both; it is read, not loaded: no
/// constructor of another build runs. Throws not_found or io too.
void require_build(const std::string& path, const std::string& build);

/// The bases of all objects that are loaded now.
std::vector<std::uintptr_t> loaded_bases();

/// A copy of weft in this process, by its ELF note.
struct WeftCopy {
  ElfObject object;
  std::uint32_t abi = 0;
  std::uintptr_t entry = 0;  ///< of a worker process (worker_entry.cpp)
};
/// All of them, whatever the visibility of their symbols. One process may hold several: a plug-in
/// with a weft of its own in a host that has one too.
std::vector<WeftCopy> weft_copies();

}  // namespace weft
