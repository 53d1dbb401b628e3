#include "data/formats/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <set>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/formats/zip_records.hpp"

namespace weft {
namespace {

/// Reads the numbers of a record one after another.
class RecordReader {
 public:
  RecordReader(std::span<const std::byte> bytes, std::string_view record)
      : bytes_(bytes), record_(record) {}

  template <typename Number>
  Number number() {
    const auto digits = take(sizeof(Number));
    std::uint64_t value = 0;
    for (std::size_t i = digits.size(); i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(digits[i]);
    }
    return static_cast<Number>(value);
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size()) {
      fail(Errc::corrupt, "zip: {} ends within a field; is the file damaged?", record_);
    }
    const auto taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  void skip(std::size_t count) { (void)take(count); }
  void expect_signature(std::uint32_t expected) {
    const auto found = number<std::uint32_t>();
    if (found == expected) return;
    fail(Errc::corrupt, "zip: {} begins with {:#010x}, not with {:#010x}", record_, found,
         expected);
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::string_view record_;
};

struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t entries = 0;
  std::uint64_t end = 0;  ///< offset of the records after the directory
};

std::vector<std::byte> read_bytes(const ReadAt& read, std::uint64_t offset, std::uint64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  read(offset, bytes);
  return bytes;
}

/// Returns the offset of the end record: the last record with its signature whose comment extends
/// exactly to the end of the file.
std::uint64_t find_end(std::span<const std::byte> tail, std::uint64_t tail_begin) {
  for (std::size_t back = kZipEndBytes; back <= tail.size(); ++back) {
    const std::size_t at = tail.size() - back;
    RecordReader reader(tail.subspan(at), "the end record");
    if (reader.number<std::uint32_t>() != kZipEndSignature) continue;
    reader.skip(kZipEndBytes - sizeof(std::uint32_t) - sizeof(std::uint16_t));
    if (reader.number<std::uint16_t>() == back - kZipEndBytes) return tail_begin + at;
  }
  fail(Errc::corrupt, "zip: has no end record; is it a zip file, or was it cut off?");
}

/// Reads the directory's position and size from the zip64 end record, whose fields are larger than
/// those of the end record.
Directory read_zip64_end(const ReadAt& read, std::uint64_t end) {
  if (end < kZip64LocatorBytes) fail(Errc::corrupt, "zip: has no zip64 locator");
  const auto locator = read_bytes(read, end - kZip64LocatorBytes, kZip64LocatorBytes);
  RecordReader at(locator, "the zip64 locator");
  at.expect_signature(kZip64LocatorSignature);
  at.skip(sizeof(std::uint32_t));
  const auto offset = at.number<std::uint64_t>();
  const std::uint64_t locator_begin = end - kZip64LocatorBytes;
  if (offset > locator_begin || locator_begin - offset < kZip64EndBytes) {
    fail(Errc::corrupt,
         "zip: the zip64 locator says that the zip64 end record is at {}, in a file of {}", offset,
         end);
  }
  const auto record = read_bytes(read, offset, kZip64EndBytes);
  RecordReader reader(record, "the zip64 end");
  reader.expect_signature(kZip64EndSignature);
  const auto following = reader.number<std::uint64_t>();
  if (following != locator_begin - offset - 12) {
    fail(Errc::corrupt, "zip: the zip64 end record should have {} bytes, but {} are present",
         following, locator_begin - offset - 12);
  }
  reader.skip(2 * sizeof(std::uint16_t));
  if (reader.number<std::uint32_t>() != 0 || reader.number<std::uint32_t>() != 0) {
    fail(Errc::version, "zip: is one part of an archive in several files, which weft doesn't read");
  }
  Directory directory{.end = offset};
  const auto here = reader.number<std::uint64_t>();
  directory.entries = reader.number<std::uint64_t>();
  if (here != directory.entries)
    fail(Errc::version, "zip: is one part of an archive in several files, which weft doesn't read");
  directory.bytes = reader.number<std::uint64_t>();
  directory.begin = reader.number<std::uint64_t>();
  return directory;
}

/// Returns whether a zip64 locator precedes the end record. Some writers, such as torch.save(),
/// write the zip64 records even if the values fit in the end record.
bool has_zip64_locator(const ReadAt& read, std::uint64_t end) {
  if (end < kZip64LocatorBytes) return false;
  const auto bytes = read_bytes(read, end - kZip64LocatorBytes, kZip64LocatorBytes);
  return RecordReader(bytes, "the zip64 locator").number<std::uint32_t>() == kZip64LocatorSignature;
}

Directory find_directory(std::uint64_t file_bytes, const ReadAt& read) {
  constexpr std::uint64_t kTailBytesMax = kZipEndBytes + 0xffff;
  const std::uint64_t tail_bytes = std::min(file_bytes, kTailBytesMax);
  const auto tail = read_bytes(read, file_bytes - tail_bytes, tail_bytes);
  const std::uint64_t end = find_end(tail, file_bytes - tail_bytes);
  const auto at = static_cast<std::size_t>(end - (file_bytes - tail_bytes));
  RecordReader reader(std::span<const std::byte>(tail).subspan(at), "the end record");
  reader.expect_signature(kZipEndSignature);
  const auto disk = reader.number<std::uint16_t>();
  const auto first_disk = reader.number<std::uint16_t>();
  const auto here = reader.number<std::uint16_t>();
  Directory directory{.entries = reader.number<std::uint16_t>(), .end = end};
  directory.bytes = reader.number<std::uint32_t>();
  directory.begin = reader.number<std::uint32_t>();
  if (directory.entries == kZip16Max || directory.bytes == kZip32Max ||
      directory.begin == kZip32Max) {
    directory = read_zip64_end(read, end);
  } else if (disk != 0 || first_disk != 0 || here != directory.entries) {
    fail(Errc::version, "zip: is one part of an archive in several files, which weft doesn't read");
  } else if (has_zip64_locator(read, end)) {
    const Directory said = directory;
    directory = read_zip64_end(read, end);
    if (said.begin != directory.begin || said.bytes != directory.bytes ||
        said.entries != directory.entries) {
      fail(Errc::corrupt, "zip: the end record and the zip64 end record differ");
    }
  }
  if (directory.bytes > kZipDirectoryBytesMax || directory.entries > kZipEntriesMax) {
    fail(Errc::corrupt,
         "zip: the directory has {} entries in {} bytes; the limits are {} entries and {} bytes",
         directory.entries, directory.bytes, kZipEntriesMax, kZipDirectoryBytesMax);
  }
  if (directory.begin > directory.end || directory.end - directory.begin != directory.bytes) {
    fail(Errc::corrupt, "zip: the directory has {} bytes at {}, but must end at {}",
         directory.bytes, directory.begin, directory.end);
  }
  return directory;
}

/// Reads the sizes and the offset that don't fit in an entry's own fields from its extra fields.
void read_zip64_extra(RecordReader extra, ZipEntry& entry, std::uint64_t& local_begin) {
  while (extra.left() > 0) {
    const auto id = extra.number<std::uint16_t>();
    const auto bytes = extra.number<std::uint16_t>();
    RecordReader field(extra.take(bytes), "an extra field");
    if (id != kZip64ExtraId) continue;
    for (std::uint64_t* value : {&entry.bytes, &entry.packed_bytes, &local_begin}) {
      if (*value == kZip32Max) *value = field.number<std::uint64_t>();
    }
    return;
  }
}

/// Reads an entry of the directory. Sets `data_begin` to the offset of the local header;
/// find_data() replaces it.
ZipEntry read_central(RecordReader& reader) {
  reader.expect_signature(kZipCentralSignature);
  reader.skip(2 * sizeof(std::uint16_t));
  const auto flags = reader.number<std::uint16_t>();
  const auto method = reader.number<std::uint16_t>();
  reader.skip(sizeof(std::uint32_t));
  ZipEntry entry{.deflated = method == kZipDeflated, .crc32 = reader.number<std::uint32_t>()};
  entry.packed_bytes = reader.number<std::uint32_t>();
  entry.bytes = reader.number<std::uint32_t>();
  const auto name_bytes = reader.number<std::uint16_t>();
  const auto extra_bytes = reader.number<std::uint16_t>();
  const auto comment_bytes = reader.number<std::uint16_t>();
  const auto disk = reader.number<std::uint16_t>();
  reader.skip(sizeof(std::uint16_t) + sizeof(std::uint32_t));
  entry.data_begin = reader.number<std::uint32_t>();
  const auto name = reader.take(name_bytes);
  entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
  read_zip64_extra({reader.take(extra_bytes), "an extra field"}, entry, entry.data_begin);
  reader.skip(comment_bytes);
  if ((flags & kZipEncrypted) != 0) {
    fail(Errc::version, "zip: {} is encrypted", in_quotes(entry.name));
  }
  if (method != kZipStored && method != kZipDeflated) {
    fail(Errc::version, "zip: {} is compressed by method {}; expected 0 (stored) or 8 (deflated)",
         in_quotes(entry.name), method);
  }
  if (disk != 0 && disk != kZip16Max)
    fail(Errc::version, "zip: is one part of an archive in several files, which weft doesn't read");
  return entry;
}

/// Replaces `data_begin`, the offset of the local header, by the offset of the data after it.
void find_data(ZipEntry& entry, const Directory& directory, const ReadAt& read) {
  const auto refuse = [&](std::string_view what) {
    fail(Errc::corrupt, "zip: {}: {}", in_quotes(entry.name), what);
  };
  const std::uint64_t header_bytes = kZipLocalBytes + entry.name.size();
  if (entry.data_begin > directory.begin || directory.begin - entry.data_begin < header_bytes) {
    refuse("is outside the file");
  }
  const auto header = read_bytes(read, entry.data_begin, header_bytes);
  RecordReader reader(header, "a local header");
  reader.expect_signature(kZipLocalSignature);
  reader.skip(2 * sizeof(std::uint16_t));
  const auto method = reader.number<std::uint16_t>();
  reader.skip(4 * sizeof(std::uint32_t));
  const auto name_bytes = reader.number<std::uint16_t>();
  const auto extra_bytes = reader.number<std::uint16_t>();
  if (method != (entry.deflated ? kZipDeflated : kZipStored) || name_bytes != entry.name.size() ||
      !std::ranges::equal(reader.take(name_bytes), std::as_bytes(std::span(entry.name)))) {
    refuse("its local header differs from the directory");
  }
  entry.data_begin += header_bytes + extra_bytes;
  if (entry.data_begin > directory.begin ||
      directory.begin - entry.data_begin < entry.packed_bytes) {
    refuse("its data end outside the file");
  }
  constexpr std::uint64_t kRatioMax = 1032;  // the highest compression ratio of deflate
  if (entry.deflated ? entry.bytes / kRatioMax > entry.packed_bytes
                     : entry.bytes != entry.packed_bytes) {
    fail(Errc::corrupt, "zip: {}: {} bytes can't be packed to {} bytes", in_quotes(entry.name),
         entry.bytes, entry.packed_bytes);
  }
}

void check_overlap(std::vector<ZipEntry> entries) {
  std::ranges::sort(entries, {}, &ZipEntry::data_begin);
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i - 1].data_begin + entries[i - 1].packed_bytes <= entries[i].data_begin) continue;
    fail(Errc::corrupt, "zip: {} and {} overlap", in_quotes(entries[i - 1].name),
         in_quotes(entries[i].name));
  }
}

/// Unpacks a raw deflate stream that arrives in pieces.
class Inflater {
 public:
  explicit Inflater(const ZipEntry& entry) : entry_(entry) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) fail(Errc::no_space, "zlib is out of memory");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  /// Unpacks the piece to `out`, behind the `done` bytes that are already there, and advances
  /// `done`.
  void add(std::span<const std::byte> piece, std::span<std::byte> out, std::size_t& done) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
    stream_.avail_in = static_cast<uInt>(piece.size());
    Bytef none = 0;
    do {
      const std::size_t room = std::min<std::size_t>(out.size() - done, kPieceBytes);
      stream_.next_out = room > 0 ? reinterpret_cast<Bytef*>(out.data() + done) : &none;
      stream_.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (room == 0 && stream_.avail_out == 0) refuse("has more bytes than the directory says");
      if (room > 0) done += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        ended_ = true;
        if (stream_.avail_in > 0) refuse("has bytes after its end");
        return;
      }
      if (status == Z_BUF_ERROR && stream_.avail_in == 0) return;  // waits for the next piece
      if (status != Z_OK) refuse(stream_.msg != nullptr ? stream_.msg : "can't be unpacked");
    } while (stream_.avail_in > 0 || stream_.avail_out == 0);
  }
  bool ended() const { return ended_; }

  static constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail(Errc::corrupt, "zip: {}: {}", in_quotes(entry_.name), what);
  }

  const ZipEntry& entry_;
  z_stream stream_{};
  bool ended_ = false;
};

void inflate_entry(const ZipEntry& entry, const ReadAt& read, std::span<std::byte> out) {
  Inflater inflater(entry);
  std::vector<std::byte> piece;
  std::size_t done = 0;
  for (std::uint64_t at = 0; at < entry.packed_bytes && !inflater.ended(); at += piece.size()) {
    piece.resize(static_cast<std::size_t>(
        std::min<std::uint64_t>(entry.packed_bytes - at, Inflater::kPieceBytes)));
    read(entry.data_begin + at, piece);
    inflater.add(piece, out, done);
  }
  if (inflater.ended() && done == out.size()) return;
  fail(Errc::corrupt, "zip: {}: has {} bytes; the directory says {}", in_quotes(entry.name), done,
       out.size());
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(std::uint64_t file_bytes, const ReadAt& read) {
  const Directory directory = find_directory(file_bytes, read);
  const auto bytes = read_bytes(read, directory.begin, directory.bytes);
  RecordReader reader(bytes, "the directory");
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  while (reader.left() > 0) {
    ZipEntry& entry = entries.emplace_back(read_central(reader));
    if (!names.insert(entry.name).second) {
      fail(Errc::corrupt, "zip: two entries have the name {}", in_quotes(entry.name));
    }
    find_data(entry, directory, read);
  }
  if (entries.size() != directory.entries) {
    fail(Errc::corrupt, "zip: has {} entries; the end record says {}", entries.size(),
         directory.entries);
  }
  check_overlap(entries);
  return entries;
}

std::vector<std::byte> read_zip_entry(const ZipEntry& entry, const ReadAt& read) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  if (entry.deflated) {
    inflate_entry(entry, read, bytes);
  } else {
    read(entry.data_begin, bytes);
  }
  const auto found = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (found != entry.crc32) {
    fail(Errc::corrupt, "zip: {}: checksum {:08x}; the directory says {:08x}",
         in_quotes(entry.name), found, entry.crc32);
  }
  return bytes;
}

}  // namespace weft
