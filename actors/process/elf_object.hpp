#pragma once
/// The executable and the shared libraries of a process: which object contains an address, and its
/// build id.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A loaded object file.
struct ElfObject {
  std::string path{};       ///< absolute; "" for the executable
  std::uintptr_t base = 0;  ///< where it is loaded
  /// The linker's build id in hex; without one (-Wl,--build-id=none) "device:inode:size:mtime" of
  /// the file, "" where that is gone.
  std::string build{};
};

/// The object that contains `address`; absent if none does.
std::optional<ElfObject> object_of(const void* address);

/// Throws version if the file isn't of that build; the message has both. The file is read, not
/// loaded, so no constructor of another build runs. Throws not_found or io too.
void require_build(const std::string& path, const std::string& build);

/// The base addresses of all loaded objects.
std::vector<std::uintptr_t> loaded_bases();

/// A copy of weft in this process, by its ELF note.
struct WeftCopy {
  ElfObject object;
  std::uint32_t abi = 0;
  std::uintptr_t entry = 0;  ///< of a worker process (worker_entry.cpp)
};
/// All copies, regardless of symbol visibility. A process may have several: a plug-in with its own
/// weft in a host that has one too.
std::vector<WeftCopy> weft_copies();

}  // namespace weft
