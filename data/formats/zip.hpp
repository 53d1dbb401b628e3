#pragma once
/// zip: an archive of files, as PKWARE's APPNOTE describes it; weft reads what NumPy and PyTorch
/// write, which is stored or deflated entries, with zip64's sizes. Little-endian:
///
///   archive   = (local packed)* central* [zip64_end zip64_locator] end
///   local     = 0x04034b50:u32 ... name extra
///   central   = 0x02014b50:u32 ... name extra comment
///
/// The directory, which is all of `central`, says what counts; a local header says where its data
/// begin.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/read_at.hpp"

namespace weft {

/// The maxima of the directory.
inline constexpr std::uint64_t kZipDirectoryBytesMax = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kZipEntriesMax = 1 << 20;

struct ZipEntry {
  std::string name{};
  bool deflated = false;
  std::uint32_t crc32 = 0;         ///< of the unpacked bytes
  std::uint64_t data_begin = 0;    ///< in the file
  std::uint64_t packed_bytes = 0;  ///< in the file
  std::uint64_t bytes = 0;         ///< unpacked

  friend bool operator==(const ZipEntry&, const ZipEntry&) = default;
};

/// The entries in order of the directory. Throws version for encryption, other ways of packing and
/// archives in several files; corrupt unless
///   - the directory lies right before the end's records, within its maxima, and names are there
///     once;
///   - local headers say the same as the directory, and data lie within the file without overlap;
///   - stored entries are as large as they are packed, and deflated ones at most 1032 times.
std::vector<ZipEntry> read_zip_directory(std::uint64_t file_bytes, const ReadAt& read);

/// The unpacked bytes. Throws corrupt if there are more or fewer than the directory says, or their
/// checksum is another.
std::vector<std::byte> read_zip_entry(const ZipEntry& entry, const ReadAt& read);

}  // namespace weft
