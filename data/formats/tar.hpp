#pragma once
/// tar: an archive of files, as POSIX (ustar, pax) and GNU tar write it:
///
///   archive = entry* zeros[512] any*
///   entry   = header[512] data[size], filled up to a multiple of 512
///   header  = name:100 mode:8 uid:8 gid:8 size:12 mtime:12 checksum:8 type:1 linkname:100
///             magic:6 version:2 uname:32 gname:32 devmajor:8 devminor:8 prefix:155 zeros:12
///
/// Numbers are octal digits, or big-endian if the first bit is set. Entries of type x, whose data
/// are records "LENGTH KEY=VALUE\n", and of type L give a longer name or a size for the entry after
/// them.

#include <cstdint>
#include <functional>
#include <string>

#include "data/formats/read_at.hpp"

namespace weft {

/// The maximum size in bytes of a name, and of an entry of type x.
inline constexpr std::uint64_t kTarNameBytesMax = std::uint64_t{64} << 10;

/// A plain file in an archive.
struct TarEntry {
  std::string name{};
  std::uint64_t data_begin = 0;  ///< offset from the archive's beginning, in bytes
  std::uint64_t bytes = 0;

  friend bool operator==(const TarEntry&, const TarEntry&) = default;
};

/// Calls `take` for each plain file, in order, and skips folders, links and devices. Throws version
/// for sparse files and archives in several files; corrupt unless
///   - each header has the right checksum, and valid numbers;
///   - names and records aren't too long, and data is within the file;
///   - a header of zeros comes last.
void scan_tar(std::uint64_t file_bytes, const ReadAt& read,
              const std::function<void(const TarEntry& entry)>& take);

}  // namespace weft
