/// Reads the fuzz input as the shared memory in which a job publishes versions of tensors, or takes
/// rows. Bits of the first byte: 1 chooses rows, otherwise versions. With 2 the rest of the input
/// changes bytes of a valid segment, each by 3 bytes (place, place, value); otherwise it is the
/// whole segment. Also reads the segment as `weft inspect` does.

#include <algorithm>
#include <cstring>
#include <vector>

#include "inspect/snapshot/job_streams.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/planted.hpp"
#include "transport/published/row_order.hpp"
#include "transport/published/row_reader.hpp"
#include "transport/published/version_reader.hpp"

namespace weft {
namespace {

constexpr const char* kName = "planted";
constexpr std::size_t kRowsCapacity = 64;

std::vector<PublishedTensor> tensors(std::size_t alignment) {
  return lay_out(
      {{.name = "a", .type = {DType::f32, {2, 3}}}, {.name = "b", .type = {DType::u8, {5}}}},
      alignment);
}

std::string job() { return testing::planted_job(); }

std::vector<std::byte> bytes_of(const Segment& segment) {
  return {segment.data(), segment.data() + segment.capacity()};
}

/// Returns the bytes of a segment with a published version.
std::vector<std::byte> valid_versions() {
  PublishedMemory memory = PublishedMemory::create(job(), kName, tensors(kPublishedAlignment), 2);
  memory.reserve(3);
  PublishedHeader& header = memory.header();
  header.newest = NewestVersion{.version = 7, .place = 3}.word();
  header.places[3].version = 8;
  header.places[3].is_reserved = 1;
  std::vector<std::byte> bytes = bytes_of(memory.ledger());
  PublishedMemory::remove(job(), kName);
  return bytes;
}

/// Returns the bytes of a segment in which a chunk of rows has arrived, and one was taken.
std::vector<std::byte> valid_rows() {
  const RowMemory memory = RowMemory::create(
      job(), kName, {.fields = tensors(kRowAlignment), .capacity = kRowsCapacity, .max_lag = 4});
  RowHeader& header = memory.header();
  header.base = 0;
  header.wanted = kRowsCapacity;
  for (std::uint32_t block = 0; block < 2; ++block) {
    memory.block(block).owner = kTakenBlock;
    memory.block(block).rows = 1;
    memory.arrival(block + 1) = ArrivalWord{.number = block + 1, .block = block}.word();
  }
  header.tail = 2;
  header.taken = 1;
  header.chunks = 1;
  memory.chunk(0) = {.arrival = 1, .first_row = 0, .rows = 1, .block = 0};
  std::vector<std::byte> bytes = bytes_of(memory.segment());
  RowMemory::remove(job(), kName);
  return bytes;
}

/// Returns whether only worker 0 writes this byte: a byte of the header from `base` on. Worker 0
/// trusts these bytes, so they aren't changed.
bool is_worker_0s(std::size_t place, bool are_rows) {
  return are_rows && place >= offsetof(RowHeader, base) && place < sizeof(RowHeader);
}

std::vector<std::byte> changed(std::vector<std::byte> bytes, bool are_rows,
                               std::span<const std::byte> changes) {
  for (; changes.size() >= 3; changes = changes.subspan(3)) {
    std::uint16_t place = 0;
    std::memcpy(&place, changes.data(), sizeof place);
    const std::size_t at = place % bytes.size();
    if (!is_worker_0s(at, are_rows)) bytes[at] = changes[2];
  }
  return bytes;
}

/// Reads the heads of the segments as `weft inspect` does.
void read_streams() {
  const JobStreams streams = read_job_streams(job());
  for (const VersionStream& stream : streams.versions) (void)stream.held_by(1);
  for (const RowStream& stream : streams.rows) (void)stream.rows_text(0);
}

void read_versions(std::span<const std::byte> ledger) {
  const testing::Planted table(fmt::format("weft-{}-published-{}", job(), kName), ledger);
  const testing::Planted values(fmt::format("weft-{}-values-{}", job(), kName), {},
                                std::size_t{1} << 20);
  read_streams();
  VersionReader reader(job(), kName);
  const auto held = reader.hold_newest();
  if (!held) return;
  WEFT_CHECK(held->place < kVersionCountMax, held->place);
  for (const PublishedTensor& tensor : reader.memory().tensors()) {
    xxh3({reader.memory().place(held->place) + tensor.offset,
          static_cast<std::size_t>(tensor.type.bytes())});
  }
  reader.release(held->place);
}

void open_rows(std::span<const std::byte> bytes) {
  const testing::Planted planted(fmt::format("weft-{}-rows-{}", job(), kName), bytes);
  read_streams();
  RowMemory::open(job(), kName);
}

void read_rows(std::span<const std::byte> bytes) {
  const testing::Planted planted(fmt::format("weft-{}-rows-{}", job(), kName), bytes);
  read_streams();
  RowMemory memory = RowMemory::open(job(), kName);
  RowOrder order(memory);
  order.take();
  order.collect();
  const RowReader reader(memory, 0);
  std::size_t row_bytes = 0;
  for (const PublishedTensor& field : memory.fields()) {
    row_bytes += static_cast<std::size_t>(field.type.bytes());
  }
  if (row_bytes > 4096) return;
  std::vector<std::byte> row(row_bytes);
  std::vector<std::span<std::byte>> fields;
  std::size_t at = 0;
  for (const PublishedTensor& field : memory.fields()) {
    const auto size = static_cast<std::size_t>(field.type.bytes());
    fields.push_back(std::span(row).subspan(at, size));
    at += size;
  }
  try {
    for (std::uint64_t n = 0; n < 3; ++n) reader.read(n, fields);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;  // the row was released
  }
  order.release(2);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  if (size < 2) return 0;  // a segment has a byte at least
  static const std::vector<std::byte> versions = valid_versions();
  static const std::vector<std::byte> rows = valid_rows();
  const bool are_rows = (data[0] & 1U) != 0;
  const auto rest = std::as_bytes(std::span(data + 1, size - 1));
  if ((data[0] & 2U) != 0) {
    const std::vector<std::byte> bytes = changed(are_rows ? rows : versions, are_rows, rest);
    read_or_refuse_segment([&] { are_rows ? read_rows(bytes) : read_versions(bytes); });
  } else {
    read_or_refuse_segment([&] { are_rows ? open_rows(rest) : read_versions(rest); });
  }
  return 0;
}
