#include "transport/storage/checkpoint_reader.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include <weft/tensor/error.hpp>

#include "data/files/part_files.hpp"
#include "data/files/work_crew.hpp"
#include "data/remote/object_cache.hpp"
#include "data/remote/storages.hpp"
#include "transport/format/shard_frame.hpp"
#include "transport/storage/checkpoint_objects.hpp"

namespace weft {
namespace {

/// The maximum size in bytes of a frame's head, without the tensor's name.
constexpr std::uint64_t kHeadBytesMax = 4096;

std::uint64_t payload_bytes(const StoredTensor& tensor, const StoredShard& shard) {
  return static_cast<std::uint64_t>(TensorType{tensor.type.dtype, shard.dims}.bytes());
}

/// A piece of a shard's payload that has its own checksum.
struct Chunk {
  std::size_t tensor = 0;
  std::size_t shard = 0;
  std::uint32_t file = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t begin = 0;  // offset in the payload, in bytes
  std::uint64_t bytes = 0;
  std::uint64_t xxh3 = 0;
};

std::vector<Chunk> chunks_of(const CheckpointManifest& manifest, std::size_t t, std::size_t s,
                             bool verify) {
  const StoredShard& shard = manifest.tensors[t].shards[s];
  const std::uint64_t bytes = payload_bytes(manifest.tensors[t], shard);
  const std::uint64_t payload = shard.file_offset + shard.frame_bytes - bytes;
  const auto chunk = [&](std::uint64_t begin, std::uint64_t size, std::uint64_t sum) {
    return Chunk{t, s, shard.file, payload + begin, begin, size, sum};
  };
  if (verify && shard.chunk_xxh3.empty()) return {chunk(0, bytes, shard.payload_xxh3)};
  std::vector<Chunk> chunks;
  for (std::uint64_t begin = 0; begin < bytes; begin += kStoredChunkBytes) {
    chunks.push_back(chunk(begin, std::min<std::uint64_t>(kStoredChunkBytes, bytes - begin),
                           verify ? shard.chunk_xxh3[chunks.size()] : 0));
  }
  return chunks;
}

void sort_by_place(std::vector<Chunk>& chunks) {
  std::ranges::sort(chunks, {},
                    [](const Chunk& chunk) { return std::pair(chunk.file, chunk.file_offset); });
}

/// Returns the bytes of the chunk. Verifies their checksum if `verify`. The bytes are valid until
/// this thread reads another chunk.
std::span<const std::byte> read_chunk(const PartFiles& files, const CheckpointManifest& manifest,
                                      const Chunk& chunk, bool verify) {
  thread_local std::vector<std::byte> buffer;
  const std::string& name = manifest.tensors[chunk.tensor].name;
  std::span<std::byte> bytes;
  try {
    files.require(chunk.file, chunk.file_offset, chunk.bytes);
    if (buffer.size() < chunk.bytes) buffer.resize(chunk.bytes);
    bytes = std::span(buffer).first(chunk.bytes);
    files.read(chunk.file, chunk.file_offset, bytes);
  } catch (const Error& e) {
    fail(e.code(), "'{}': {}", name, e.what());
  }
  if (const std::uint64_t sum = verify ? xxh3(bytes) : 0; sum != chunk.xxh3) {
    fail(Errc::corrupt,
         "'{}': the {} bytes at {} of {} have checksum {:016x}, not {:016x}: they were changed "
         "after they were written",
         name, chunk.bytes, chunk.file_offset, files.path(chunk.file), sum, chunk.xxh3);
  }
  return bytes;
}

/// Groups the wanted boxes by tensor.
std::vector<std::vector<const WantedBox*>> by_tensor(const CheckpointManifest& manifest,
                                                     std::span<const WantedBox> wanted) {
  std::vector<std::vector<const WantedBox*>> boxes(manifest.tensors.size());
  for (const WantedBox& box : wanted) boxes[box.tensor].push_back(&box);
  return boxes;
}

void copy_to(const WantedBox& wanted, const BoxRuns& runs, const Chunk& chunk,
             std::span<const std::byte> bytes, std::uint64_t element,
             std::atomic<std::uint64_t>& copied) {
  const auto begin = static_cast<std::int64_t>(chunk.begin / element);
  const auto end = static_cast<std::int64_t>((chunk.begin + chunk.bytes) / element);
  std::uint64_t sum = 0;
  runs.each(begin, end, [&](std::int64_t stored, std::int64_t placed, std::int64_t count) {
    const std::uint64_t size = static_cast<std::uint64_t>(count) * element;
    std::memcpy(wanted.memory + static_cast<std::uint64_t>(placed) * element,
                bytes.data() + static_cast<std::uint64_t>(stored - begin) * element, size);
    sum += size;
  });
  copied += sum;
}

std::string text_of(const CheckpointManifest& manifest, const StoredTensor& tensor,
                    const ShardHeader& header) {
  return fmt::format("'{}' {} step {}, not '{}' {} step {}", header.name, header.type.to_string(),
                     header.step, tensor.name, tensor.type.to_string(), manifest.step);
}

/// Verifies that the frame's head describes this shard.
void verify_head(const PartFiles& files, const CheckpointManifest& manifest,
                 const StoredTensor& tensor, const StoredShard& shard) {
  files.require(shard.file, shard.file_offset, shard.frame_bytes);
  const std::uint64_t head_bytes = shard.frame_bytes - payload_bytes(tensor, shard);
  if (head_bytes > kHeadBytesMax + tensor.name.size()) {
    fail(Errc::corrupt, "the frame at {} of {} has {} bytes before its payload", shard.file_offset,
         files.path(shard.file), head_bytes);
  }
  std::vector<std::byte> bytes(head_bytes);
  files.read(shard.file, shard.file_offset, bytes);
  const ShardHead head = read_shard_head(bytes);
  const ShardHeader& header = head.header;
  if (header.name != tensor.name || header.type != tensor.type || header.step != manifest.step ||
      header.offsets != shard.offsets || header.dims != shard.dims ||
      head.payload_xxh3 != shard.payload_xxh3 || head.layout.frame_bytes != shard.frame_bytes) {
    fail(Errc::corrupt, "the frame at {} of {} is of {}", shard.file_offset, files.path(shard.file),
         text_of(manifest, tensor, header));
  }
}

}  // namespace

ReadBytes read_boxes(const std::string& checkpoint, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options) {
  const std::string folder = local_folder(checkpoint, manifest.files);
  return read_boxes(PartFiles(folder, manifest.files), manifest, wanted, options);
}

ReadBytes read_boxes(const PartFiles& files, const CheckpointManifest& manifest,
                     std::span<const WantedBox> wanted, const ReadOptions& options) {
  const auto boxes = by_tensor(manifest, wanted);
  std::vector<Chunk> chunks;
  for (std::size_t t = 0; t < boxes.size(); ++t) {
    const StoredTensor& tensor = manifest.tensors[t];
    const auto element = static_cast<std::uint64_t>(byte_size(tensor.type.dtype));
    for (std::size_t s = 0; s < tensor.shards.size() && !boxes[t].empty(); ++s) {
      std::vector<BoxRuns> runs;
      for (const WantedBox* box : boxes[t]) {
        runs.emplace_back(Box{tensor.shards[s].offsets, tensor.shards[s].dims}, box->placed);
      }
      for (const Chunk& chunk : chunks_of(manifest, t, s, options.verify)) {
        const auto begin = static_cast<std::int64_t>(chunk.begin / element);
        const auto end = static_cast<std::int64_t>((chunk.begin + chunk.bytes) / element);
        const auto meets = [&](const BoxRuns& each) { return each.any(begin, end); };
        if (std::ranges::any_of(runs, meets)) chunks.push_back(chunk);
      }
    }
  }
  sort_by_place(chunks);

  std::atomic<std::uint64_t> read{0};
  std::atomic<std::uint64_t> copied{0};
  WorkCrew(options.threads).each(chunks.size(), [&](std::size_t i) {
    const Chunk& chunk = chunks[i];
    const StoredTensor& tensor = manifest.tensors[chunk.tensor];
    const StoredShard& shard = tensor.shards[chunk.shard];
    const auto bytes = read_chunk(files, manifest, chunk, options.verify);
    read += chunk.bytes;
    for (const WantedBox* box : boxes[chunk.tensor]) {
      copy_to(*box, BoxRuns({shard.offsets, shard.dims}, box->placed), chunk, bytes,
              static_cast<std::uint64_t>(byte_size(tensor.type.dtype)), copied);
    }
  });
  return {.read = read, .wanted = copied};
}

void require_files(const std::string& checkpoint, const CheckpointManifest& manifest) {
  std::vector<std::uint64_t> ends(manifest.files.size());
  for (const StoredTensor& tensor : manifest.tensors) {
    for (const StoredShard& shard : tensor.shards) {
      ends[shard.file] = std::max(ends[shard.file], shard.file_offset + shard.frame_bytes);
    }
  }
  if (is_remote(checkpoint)) return require_objects(checkpoint, manifest.files, ends);
  const PartFiles files(checkpoint, manifest.files);
  for (std::uint32_t file = 0; file < ends.size(); ++file) files.require(file, 0, ends[file]);
}

std::vector<std::string> verify_checkpoint(const std::string& checkpoint,
                                           const CheckpointManifest& manifest,
                                           const ReadOptions& options) {
  const PartFiles files(local_folder(checkpoint, manifest.files), manifest.files);
  std::vector<std::string> faults;
  std::mutex mutex;
  const auto check = [&](const auto& what) {
    try {
      what();
    } catch (const Error& e) {
      const std::lock_guard lock(mutex);
      faults.emplace_back(e.what());
    }
  };
  struct Frame {
    std::uint64_t begin, end;
  };
  std::vector<std::vector<Frame>> frames(manifest.files.size());
  std::vector<Chunk> chunks;
  for (std::size_t t = 0; t < manifest.tensors.size(); ++t) {
    const StoredTensor& tensor = manifest.tensors[t];
    for (std::size_t s = 0; s < tensor.shards.size(); ++s) {
      const StoredShard& shard = tensor.shards[s];
      frames[shard.file].push_back({shard.file_offset, shard.file_offset + shard.frame_bytes});
      check([&] { verify_head(files, manifest, tensor, shard); });
      std::ranges::copy(chunks_of(manifest, t, s, true), std::back_inserter(chunks));
    }
  }
  sort_by_place(chunks);
  WorkCrew(options.threads).each(chunks.size(), [&](std::size_t i) {
    check([&] { read_chunk(files, manifest, chunks[i], true); });
  });
  // All bytes between frames must be zeros, and the file must end where the last frame ends.
  for (std::uint32_t f = 0; f < frames.size(); ++f) {
    std::ranges::sort(frames[f], {}, &Frame::begin);
    std::uint64_t end = 0;
    for (const Frame& frame : frames[f]) {
      check([&] {
        if (frame.begin < end) {
          fail(Errc::corrupt, "two frames overlap at {} of {}", frame.begin, files.path(f));
        }
        files.require(f, end, frame.begin - end);
        std::vector<std::byte> gap;
        for (std::uint64_t at = end; at < frame.begin; at += gap.size()) {
          gap.resize(std::min<std::uint64_t>(kStoredChunkBytes, frame.begin - at));
          files.read(f, at, gap);
          if (std::ranges::any_of(gap, [](std::byte b) { return b != std::byte{0}; })) {
            fail(Errc::corrupt, "the {} bytes at {} of {} belong to no tensor and aren't zero",
                 frame.begin - end, end, files.path(f));
          }
        }
      });
      end = std::max(end, frame.end);
    }
    if (files.bytes(f) != end) {
      faults.push_back(
          fmt::format("{} has {} bytes: expected {}", files.path(f), files.bytes(f), end));
    }
  }
  return faults;
}

}  // namespace weft
