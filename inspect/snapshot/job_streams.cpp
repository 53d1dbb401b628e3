#include "inspect/snapshot/job_streams.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "inspect/process/segment_file.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/published/published_memory.hpp"
#include "transport/published/row_memory.hpp"

namespace weft {
namespace {

/// Reads the head of a segment. Returns null if the segment is gone or still being made. Throws
/// version or corrupt.
template <typename Header>
std::unique_ptr<Header> read_head(const std::string& segment, std::uint64_t magic,
                                  std::uint32_t format) {
  const std::optional<SegmentFile> file = SegmentFile::open(segment);
  if (!file) return nullptr;
  auto header = std::make_unique<Header>();
  if (!file->read(0, header.get(), sizeof(Header))) {
    fail(Errc::corrupt, "segment {} has no head", segment);
  }
  if (header->magic == 0) return nullptr;
  if (header->magic != magic) fail(Errc::corrupt, "segment {} has another format", segment);
  if (header->format != format) {
    fail(Errc::version, "segment {} has version {}, but this program reads version {}", segment,
         header->format, format);
  }
  return header;
}

std::optional<VersionStream> read_versions(const std::string& job, const std::string& name) {
  const auto header = read_head<PublishedHeader>(PublishedMemory::ledger_name(job, name),
                                                 kPublishedMagic, kPublishedFormat);
  if (header == nullptr) return std::nullopt;
  VersionStream stream{.name = name, .skipped = header->skipped.load()};
  if (const std::uint64_t word = header->newest.load(); word != 0) {
    stream.newest = NewestVersion::of(word).version;
  }
  for (std::uint32_t reader = 0; reader < kReaderCountMax; ++reader) {
    std::uint64_t newest = 0;  // the version + 1
    for (const PlaceRow& place : header->places) {
      const bool is_held = (place.holders[reader / 64].load() >> (reader % 64) & 1U) != 0;
      if (is_held) newest = std::max(newest, place.version.load());
    }
    if (newest == 0) continue;
    stream.holders.push_back({.pid = header->reader_pids[reader].load(), .version = newest - 1});
  }
  return stream;
}

std::optional<RowStream> read_rows(const std::string& job, const std::string& name) {
  const auto header =
      read_head<RowHeader>(RowMemory::segment_name(job, name), kRowMagic, kRowFormat);
  if (header == nullptr) return std::nullopt;
  const std::uint64_t base = header->base.load();
  RowStream stream{.name = name,
                   .rows = header->rows.load(),
                   .batch_rows = header->batch_rows.load(),
                   .lag = header->lag.load()};
  if (stream.rows == kNoRow) stream.rows = base == kNoRow ? 0 : base;
  for (std::uint32_t worker = 0; worker < std::min(header->worker_count, kPublishingWorkersMax);
       ++worker) {
    stream.used.push_back(header->used[worker].load());
  }
  for (const RowSenderRow& sender : header->senders) {
    if (const int pid = sender.pid.load(); pid != 0) {
      stream.writers.push_back({.pid = pid, .sent_ns = sender.sent_ns.load()});
    }
  }
  return stream;
}

/// Adds what `read` returns for each name to `streams`.
template <typename Stream>
void add_streams(std::vector<Stream>& streams, std::vector<std::string>& unreadable,
                 const std::string& job, const std::vector<std::string>& names,
                 std::optional<Stream> (*read)(const std::string&, const std::string&)) {
  for (const std::string& name : names) {
    try {
      if (auto stream = read(job, name)) streams.push_back(std::move(*stream));
    } catch (const Error& error) {
      unreadable.emplace_back(error.what());
    }
  }
}

}  // namespace

std::optional<std::uint64_t> VersionStream::held_by(int pid) const {
  std::optional<std::uint64_t> held;
  for (const VersionHolder& holder : holders) {
    if (holder.pid == pid) held = std::max(held.value_or(0), holder.version);
  }
  return held;
}

std::string RowStream::rows_text(int worker) const {
  const auto index = static_cast<std::size_t>(worker);
  const std::uint64_t before = index < used.size() ? used[index] : 0;
  const std::uint64_t come = rows - std::min(rows, before);
  if (batch_rows == 0) return fmt::format("{} rows", come);
  return fmt::format("{} of {} rows", std::min(come, batch_rows), batch_rows);
}

const RowStream* JobStreams::rows_of(std::string_view inside) const {
  const auto is_its = [&](const RowStream& stream) {
    return inside.find(experience_name(stream.name)) != inside.npos;
  };
  const auto found = std::ranges::find_if(rows, is_its);
  return found == rows.end() ? nullptr : &*found;
}

JobStreams read_job_streams(const std::string& job) {
  JobStreams streams{.at_ns = clock_ns(CLOCK_MONOTONIC)};
  add_streams(streams.versions, streams.unreadable, job, PublishedMemory::names(job),
              read_versions);
  add_streams(streams.rows, streams.unreadable, job, RowMemory::names(job), read_rows);
  return streams;
}

}  // namespace weft
