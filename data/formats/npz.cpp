#include "data/formats/npz.hpp"

#include <zlib.h>

#include <algorithm>
#include <string_view>

#include <weft/tensor/error.hpp>

#include "data/formats/in_quotes.hpp"
#include "data/formats/npy.hpp"
#include "data/formats/zip_records.hpp"

namespace weft {
namespace {

constexpr std::string_view kSuffix = ".npy";
constexpr std::uint16_t kVersionNeeded = 45;  // the version that zip64 needs
constexpr std::uint16_t kUtf8Name = 1 << 11;  // a flag: the name is UTF-8
constexpr std::uint16_t kFirstDay = 0x0021;   // 1980-01-01
constexpr std::uint16_t kLocalExtraBytes = 2 * sizeof(std::uint64_t);
constexpr std::uint16_t kCentralExtraBytes = 3 * sizeof(std::uint64_t);

class RecordWriter {
 public:
  template <typename... Numbers>
  void add(Numbers... numbers) {
    (add_number(static_cast<std::uint64_t>(numbers), sizeof numbers), ...);
  }
  void add_text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void add_number(std::uint64_t number, std::size_t bytes) {
    for (; bytes > 0; --bytes, number >>= 8) {
      bytes_.push_back(static_cast<std::byte>(number & 0xff));
    }
  }
  std::vector<std::byte> bytes_;
};

/// Adds the fields that a local header and an entry of the directory have in common.
void add_common(RecordWriter& record, const ZipEntry& entry, std::uint16_t extra_bytes) {
  record.add(kUtf8Name, kZipStored, std::uint16_t{0}, kFirstDay, entry.crc32, kZip32Max, kZip32Max,
             static_cast<std::uint16_t>(entry.name.size()),
             static_cast<std::uint16_t>(extra_bytes + 2 * sizeof(std::uint16_t)));
}

RecordWriter local_header(const ZipEntry& entry) {
  RecordWriter record;
  record.add(kZipLocalSignature, kVersionNeeded);
  add_common(record, entry, kLocalExtraBytes);
  record.add_text(entry.name);
  record.add(kZip64ExtraId, kLocalExtraBytes, entry.bytes, entry.packed_bytes);
  return record;
}

void add_central(RecordWriter& record, const ZipEntry& entry) {
  record.add(kZipCentralSignature, kVersionNeeded, kVersionNeeded);
  add_common(record, entry, kCentralExtraBytes);
  constexpr std::uint16_t kNone = 0;  // comment, disk and attributes
  record.add(kNone, kNone, kNone, std::uint32_t{0}, kZip32Max);
  record.add_text(entry.name);
  record.add(kZip64ExtraId, kCentralExtraBytes, entry.bytes, entry.packed_bytes, entry.data_begin);
}

std::uint32_t checksum(std::span<const std::byte> head, std::span<const std::byte> rest) {
  const auto of = [](uLong crc, std::span<const std::byte> bytes) {
    return bytes.empty() ? crc
                         : crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  };
  return static_cast<std::uint32_t>(of(of(0, head), rest));
}

}  // namespace

std::vector<ZipEntry> npz_arrays(std::vector<ZipEntry> entries) {
  for (ZipEntry& entry : entries) {
    if (!entry.name.ends_with(kSuffix)) {
      fail(Errc::corrupt, "npz: has the entry {}; expected names that end with {}",
           in_quotes(entry.name), kSuffix);
    }
    entry.name.resize(entry.name.size() - kSuffix.size());
  }
  return entries;
}

void NpzWriter::put(std::span<const std::byte> bytes) {
  write_(bytes);
  written_ += bytes.size();
}

void NpzWriter::add(const std::string& name, const TensorType& type,
                    std::span<const std::byte> elements) {
  const std::string entry_name = name + std::string(kSuffix);
  if (name.empty() || entry_name.size() > kZip16Max) {
    fail(Errc::invalid_argument, "npz: an array's name has 1 to {} bytes; {} were given",
         kZip16Max - kSuffix.size(), name.size());
  }
  if (std::ranges::find(entries_, entry_name, &ZipEntry::name) != entries_.end()) {
    fail(Errc::invalid_argument, "npz: two arrays have the name {}", in_quotes(name));
  }
  if (elements.size() != static_cast<std::size_t>(type.bytes())) {
    fail(Errc::invalid_argument, "npz: {}: {} bytes are given for {}, which has {}",
         in_quotes(name), elements.size(), type.to_string(), type.bytes());
  }
  const std::vector<std::byte> header = write_npy_header(type);
  const std::uint64_t bytes = header.size() + elements.size();
  const ZipEntry& entry = entries_.emplace_back(ZipEntry{.name = entry_name,
                                                         .crc32 = checksum(header, elements),
                                                         .data_begin = written_,
                                                         .packed_bytes = bytes,
                                                         .bytes = bytes});
  put(local_header(entry).bytes());
  put(header);
  put(elements);
}

void NpzWriter::finish() {
  RecordWriter record;
  for (const ZipEntry& entry : entries_) add_central(record, entry);
  const std::uint64_t count = entries_.size();
  const std::uint64_t directory_bytes = record.bytes().size();
  constexpr std::uint64_t kFollowing = kZip64EndBytes - 12;
  record.add(kZip64EndSignature, kFollowing, kVersionNeeded, kVersionNeeded, std::uint32_t{0},
             std::uint32_t{0}, count, count, directory_bytes, written_);
  record.add(kZip64LocatorSignature, std::uint32_t{0}, written_ + directory_bytes,
             std::uint32_t{1});
  record.add(kZipEndSignature, std::uint16_t{0}, std::uint16_t{0}, kZip16Max, kZip16Max, kZip32Max,
             kZip32Max, std::uint16_t{0});
  put(record.bytes());
}

}  // namespace weft
