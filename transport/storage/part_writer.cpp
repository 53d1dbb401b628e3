#include "transport/storage/part_writer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kWriteBytes = kStoredChunkBytes;
/// Payloads of at least this many bytes are aligned to 4096 bytes. To align smaller payloads would
/// waste too much room.
constexpr std::size_t kAlignedPayloadBytes = std::size_t{64} << 10;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

/// The place of a frame in the file, in bytes.
struct PlacedFrame {
  std::uint64_t begin = 0;
  std::uint64_t payload = 0;
  std::uint64_t end = 0;
  std::vector<std::byte> head{};  // bytes before the payload
};

/// Fills `out` with the bytes of a shard's payload from offset `begin` on.
void copy_payload(const SourceShard& shard, std::uint64_t begin, std::span<std::byte> out) {
  const auto element = static_cast<std::uint64_t>(byte_size(shard.header.type.dtype));
  const Box box{shard.header.offsets, shard.header.dims};
  const BoxRuns runs(box, {box, shard.room});
  // `out` may begin and end within an element, but the runs consist of complete elements.
  const std::uint64_t end = begin + out.size();
  const auto first = static_cast<std::int64_t>(begin / element);
  const auto last = static_cast<std::int64_t>((end + element - 1) / element);
  runs.each(first, last, [&](std::int64_t stored, std::int64_t placed, std::int64_t count) {
    const std::uint64_t from = static_cast<std::uint64_t>(stored) * element;
    const std::uint64_t to = from + static_cast<std::uint64_t>(count) * element;
    const std::uint64_t low = std::max(from, begin);
    const std::uint64_t high = std::min(to, end);
    const std::byte* source = shard.elements + static_cast<std::uint64_t>(placed) * element;
    std::memcpy(out.data() + (low - begin), source + (low - from), high - low);
  });
}

/// Returns whether the shard's elements are contiguous. The room in the first dim doesn't matter.
bool is_dense(const SourceShard& shard) {
  for (int d = 1; d < shard.room.size(); ++d) {
    if (shard.room[d] != shard.header.dims[d]) return false;
  }
  return true;
}

class AlignedBytes {
 public:
  AlignedBytes() : bytes_(new (std::align_val_t{kStorageAlignment}) std::byte[kWriteBytes]) {}
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  ~AlignedBytes() { ::operator delete[](bytes_, std::align_val_t{kStorageAlignment}); }
  std::span<std::byte> first(std::size_t count) const { return {bytes_, count}; }

 private:
  std::byte* bytes_;
};

class PartWriter {
 public:
  PartWriter(std::span<const SourceShard> shards, const std::atomic<bool>& stop)
      : shards_(shards), stop_(stop), stored_(shards.size()), frames_(shards.size()) {}

  /// Computes the checksums. They are stored before the bytes that they cover, so all data is read
  /// twice: here and in fill().
  void hash(WorkCrew& crew) {
    crew.each(shards_.size(), [this](std::size_t i) {
      require_going();
      hash(shards_[i], stored_[i]);
    });
  }

  void place(std::uint32_t file) {
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      PlacedFrame& frame = frames_[i];
      frame.head = shard_frame_head(shards_[i].header, stored_[i].payload_xxh3);
      const std::uint64_t bytes = shard_layout(shards_[i].header).payload_bytes;
      const std::size_t alignment =
          bytes < kAlignedPayloadBytes ? kShardAlignment : kStorageAlignment;
      frame.payload = round_up(end + frame.head.size(), alignment);
      frame.begin = frame.payload - frame.head.size();
      end = frame.end = frame.payload + bytes;
      stored_[i].offsets = shards_[i].header.offsets;
      stored_[i].dims = shards_[i].header.dims;
      stored_[i].file = file;
      stored_[i].file_offset = frame.begin;
      stored_[i].frame_bytes = frame.end - frame.begin;
    }
  }

  std::uint64_t file_bytes() const { return frames_.empty() ? 0 : frames_.back().end; }

  void write(NewFile& file, WorkCrew& crew) const {
    const std::uint64_t bytes = file_bytes();
    crew.each((bytes + kWriteBytes - 1) / kWriteBytes, [&](std::size_t i) {
      require_going();
      thread_local const AlignedBytes buffer;
      const std::uint64_t begin = i * kWriteBytes;
      const auto piece = buffer.first(std::min<std::uint64_t>(kWriteBytes, bytes - begin));
      fill(begin, piece);
      file.write(begin, piece);
    });
  }

  std::vector<StoredShard> stored() && { return std::move(stored_); }

 private:
  void require_going() const {
    if (stop_.load(std::memory_order_relaxed)) fail(Errc::cancelled, "the checkpoint was dropped");
  }

  void hash(const SourceShard& shard, StoredShard& stored) const {
    Xxh3 whole;
    const std::uint64_t bytes = shard_layout(shard.header).payload_bytes;
    std::vector<std::byte> gathered;
    const bool is_contiguous = is_dense(shard);
    for (std::uint64_t begin = 0; begin < bytes; begin += kStoredChunkBytes) {
      require_going();
      const auto count = std::min<std::uint64_t>(kStoredChunkBytes, bytes - begin);
      std::span<const std::byte> chunk(shard.elements + begin, is_contiguous ? count : 0);
      if (!is_contiguous) {
        gathered.resize(count);
        copy_payload(shard, begin, gathered);
        chunk = gathered;
      }
      whole.add(chunk);
      stored.chunk_xxh3.push_back(xxh3(chunk));
    }
    stored.payload_xxh3 = whole.sum();
  }

  /// Fills `out` with the bytes of the file from offset `begin` on.
  void fill(std::uint64_t begin, std::span<std::byte> out) const {
    const std::uint64_t end = begin + out.size();
    std::ranges::fill(out, std::byte{0});
    const auto ends_by = [&](const PlacedFrame& frame) { return frame.end <= begin; };
    const auto first = std::ranges::partition_point(frames_, ends_by);
    for (auto i = static_cast<std::size_t>(first - frames_.begin()); i < frames_.size(); ++i) {
      const PlacedFrame& frame = frames_[i];
      if (frame.begin >= end) return;
      const std::uint64_t head = std::max(frame.begin, begin);
      if (head < std::min(frame.payload, end)) {
        std::memcpy(out.data() + (head - begin), frame.head.data() + (head - frame.begin),
                    std::min(frame.payload, end) - head);
      }
      const std::uint64_t payload = std::max(frame.payload, begin);
      const std::uint64_t payload_end = std::min(frame.end, end);
      if (payload < payload_end) {
        copy_payload(shards_[i], payload - frame.payload,
                     out.subspan(payload - begin, payload_end - payload));
      }
    }
  }

  const std::span<const SourceShard> shards_;
  const std::atomic<bool>& stop_;
  std::vector<StoredShard> stored_;
  std::vector<PlacedFrame> frames_;
};

}  // namespace

std::vector<StoredShard> write_part(FileSystem& files, const std::string& path,
                                    std::span<const SourceShard> shards, const PartOptions& options,
                                    const std::atomic<bool>& stop) {
  WorkCrew crew(options.threads, options.urgency);
  PartWriter writer(shards, stop);
  writer.hash(crew);
  writer.place(options.file);
  const auto file = files.create_file(path, writer.file_bytes());
  writer.write(*file, crew);
  file->sync();
  return std::move(writer).stored();
}

}  // namespace weft
