#pragma once
/// zip: an archive of files, as PKWARE's APPNOTE describes it. weft reads the archives that NumPy
/// and PyTorch write: stored or deflated entries, with or without the 64-bit sizes of zip64.
/// Little-endian:
///
///   archive   = (local packed)* central* [zip64_end zip64_locator] end
///   local     = 0x04034b50:u32 ... name extra
///   central   = 0x02014b50:u32 ... name extra comment
///
/// The directory, which consists of all `central` records, is what counts. A local header is only
/// used to find where its data begins.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/read_at.hpp"

namespace weft {

/// The maximum size of the directory in bytes, and the maximum number of its entries.
inline constexpr std::uint64_t kZipDirectoryBytesMax = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kZipEntriesMax = 1 << 20;

struct ZipEntry {
  std::string name{};
  bool deflated = false;
  std::uint32_t crc32 = 0;         ///< checksum of the unpacked bytes
  std::uint64_t data_begin = 0;    ///< offset in the file
  std::uint64_t packed_bytes = 0;  ///< size in the file
  std::uint64_t bytes = 0;         ///< unpacked size

  friend bool operator==(const ZipEntry&, const ZipEntry&) = default;
};

/// Returns the entries in the order of the directory. Throws version for encryption, other
/// compression methods and archives in several files; corrupt unless
///   - the directory is right before the end records and isn't too large, and no name is repeated;
///   - local headers agree with the directory, and data is within the file without overlap;
///   - for stored entries both sizes are equal, and deflated entries unpack to at most 1032 times
///     their packed size.
std::vector<ZipEntry> read_zip_directory(std::uint64_t file_bytes, const ReadAt& read);

/// Returns the unpacked bytes. Throws corrupt if their number or checksum isn't as in the
/// directory.
std::vector<std::byte> read_zip_entry(const ZipEntry& entry, const ReadAt& read);

}  // namespace weft
