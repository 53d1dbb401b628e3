#pragma once
/// Finds the executable and the shared libraries of a process, for example by an address in one of
/// them, and returns their build ids.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft {

/// A loaded object file.
struct ElfObject {
  std::string path{};       ///< absolute; "" for the executable
  std::uintptr_t base = 0;  ///< the address at which it is loaded
  /// The linker's build id in hex. If the file has none (-Wl,--build-id=none), it is
  /// "device:inode:size:mtime" of the file, or "" if the file no longer exists.
  std::string build{};
};

/// Returns the object that contains `address`; nothing if no object does.
std::optional<ElfObject> object_of(const void* address);

/// Throws version if the file at `path` isn't this build; the message has both builds. Only reads
/// the file: loading it would run its constructors. Also throws not_found or io.
void require_build(const std::string& path, const std::string& build);

/// Returns the base addresses of all loaded objects.
std::vector<std::uintptr_t> loaded_bases();

/// A copy of weft in this process, which was found by its ELF note.
struct WeftCopy {
  ElfObject object;
  std::uint32_t abi = 0;
  std::uintptr_t entry = 0;  ///< the entry of a worker process (worker_entry.cpp)
};
/// Returns all copies, regardless of symbol visibility. A process has several copies if, for
/// example, both a plug-in and its host contain weft.
std::vector<WeftCopy> weft_copies();

}  // namespace weft
