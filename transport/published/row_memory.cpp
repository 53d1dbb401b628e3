#include "transport/published/row_memory.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/job/job_memory.hpp"
#include "transport/memory/wait.hpp"
#include "transport/published/published_memory.hpp"

namespace weft {
namespace {

constexpr std::size_t kRowPage = 4096;
/// The approximate size of a block. Small rows share blocks, so that a long chunk has few blocks. A
/// chunk of one row takes a block too, so a block isn't much larger than the 64 bytes that are
/// needed to manage it.
constexpr std::size_t kRowBlockBytes = 128;

std::size_t up_to_page(std::size_t bytes) { return (bytes + kRowPage - 1) / kRowPage * kRowPage; }

/// The fields of the header that give the segment's size. Each is read only once.
struct RowSizes {
  std::size_t fields = 0;
  std::size_t names = 0;
  std::size_t row = 0;
  std::size_t per_block = 0;
  std::size_t blocks = 0;

  std::size_t blocks_at() const {
    return up_to_page(sizeof(RowHeader) + fields * sizeof(TensorEntry) + names);
  }
  std::size_t arrivals_at() const { return up_to_page(blocks_at() + blocks * sizeof(RowBlock)); }
  std::size_t chunks_at() const {
    return up_to_page(arrivals_at() + blocks * sizeof(std::atomic<std::uint64_t>));
  }
  std::size_t data_at() const { return up_to_page(chunks_at() + blocks * sizeof(RowChunk)); }
  std::size_t bytes() const { return data_at() + blocks * per_block * row; }
  bool fit(std::size_t segment_bytes) const {
    if (fields > kPublishedTensorsMax || names > kPublishedNamesMax || blocks == 0 ||
        blocks > kRowBlocksMax || per_block == 0 || row == 0 || row % kRowAlignment != 0) {
      return false;
    }
    // These checks exclude that the product in bytes() wraps around.
    return row <= segment_bytes && per_block <= segment_bytes / row &&
           blocks <= segment_bytes / (per_block * row) && bytes() <= segment_bytes;
  }
};

}  // namespace

RowMemory::RowMemory(std::string_view job, Segment segment)
    : job_(job), segment_(std::move(segment)) {
  const RowHeader& its = header();
  const RowSizes sizes{.fields = its.field_count,
                       .names = its.name_bytes,
                       .row = its.row_bytes,
                       .per_block = its.rows_per_block,
                       .blocks = its.block_count};
  worker_count_ = its.worker_count;
  if (!sizes.fit(segment_.capacity()) || worker_count_ == 0 ||
      worker_count_ > kPublishingWorkersMax) {
    fail(
        Errc::corrupt,
        "segment {}: {} fields, {} bytes of names, {} workers and {} blocks of {} rows of {} bytes "
        "don't fit its {} bytes",
        segment_.name(), sizes.fields, sizes.names, worker_count_, sizes.blocks, sizes.per_block,
        sizes.row, segment_.capacity());
  }
  fields_ = read_tensor_table(segment_, sizeof(RowHeader),
                              {.count = sizes.fields,
                               .name_bytes = sizes.names,
                               .bytes = sizes.row,
                               .alignment = kRowAlignment});
  max_lag_ = its.max_lag;
  row_bytes_ = sizes.row;
  rows_per_block_ = static_cast<std::uint32_t>(sizes.per_block);
  block_count_ = static_cast<std::uint32_t>(sizes.blocks);
  blocks_at_ = sizes.blocks_at();
  arrivals_at_ = sizes.arrivals_at();
  chunks_at_ = sizes.chunks_at();
  data_at_ = sizes.data_at();
  control_root_.assign(its.control_root, ::strnlen(its.control_root, sizeof(its.control_root)));
}

std::string RowMemory::segment_name(std::string_view job, std::string_view name) {
  return fmt::format("weft-{}-rows-{}", job, name);
}

RowMemory RowMemory::create(std::string_view job, std::string_view name,
                            const RowMemoryOptions& options) {
  RowSizes sizes{.fields = options.fields.size(),
                 .names = name_bytes_of(options.fields),
                 .row = kRowAlignment};
  for (const PublishedTensor& field : options.fields) {
    sizes.row = std::max(sizes.row, field.offset + static_cast<std::size_t>(field.type.bytes()));
  }
  sizes.row = (sizes.row + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  sizes.per_block = std::max<std::size_t>(kRowBlockBytes / sizes.row, 1);
  sizes.blocks = std::max<std::uint64_t>(options.capacity, 1);
  if (sizes.blocks > kRowBlocksMax) {
    fail(Errc::invalid_argument, "experience \"{}\": capacity = {} rows: expected at most {}", name,
         options.capacity, kRowBlocksMax);
  }
  Segment segment = Segment::create(segment_name(job, name), sizes.bytes());
  try {
    segment.reserve(0, sizes.bytes());
    auto* header = new (segment.data()) RowHeader{};
    header->format = kRowFormat;
    header->field_count = static_cast<std::uint32_t>(sizes.fields);
    header->name_bytes = sizes.names;
    header->row_bytes = sizes.row;
    header->rows_per_block = static_cast<std::uint32_t>(sizes.per_block);
    header->block_count = static_cast<std::uint32_t>(sizes.blocks);
    header->max_lag = options.max_lag;
    header->worker_count = static_cast<std::uint32_t>(options.worker_count);
    header->base = kNoRow;
    JobMemory::control_root_of(job).copy(header->control_root, sizeof(header->control_root) - 1);
    write_tensor_table(segment.data() + sizeof(RowHeader), options.fields);
    std::atomic_ref(header->magic).store(kRowMagic, std::memory_order_release);
    return RowMemory(job, std::move(segment));
  } catch (...) {
    remove(job, name);
    throw;
  }
}

RowMemory RowMemory::open(std::string_view job, std::string_view name) {
  Segment segment = Segment::open(segment_name(job, name), false, sizeof(RowHeader));
  auto& header = *reinterpret_cast<RowHeader*>(segment.data());
  const std::uint64_t magic = std::atomic_ref(header.magic).load(std::memory_order_acquire);
  if (magic != kRowMagic) {
    fail(magic == 0 ? Errc::not_found : Errc::corrupt, "segment {} {}", segment.name(),
         magic == 0 ? "is still being made" : "isn't one for rows of a job");
  }
  if (header.format != kRowFormat) {
    fail(Errc::version,
         "segment {}: a format of version {}, but this program reads version {}; build both "
         "programs with the same weft",
         segment.name(), header.format, kRowFormat);
  }
  return RowMemory(job, std::move(segment));
}

void RowMemory::remove(std::string_view job, std::string_view name) noexcept {
  Segment::remove(segment_name(job, name));
}

std::vector<std::string> RowMemory::names(std::string_view job) {
  const std::string prefix = segment_name(job, "");
  std::vector<std::string> names = Segment::list(prefix);
  for (std::string& name : names) name.erase(0, prefix.size());
  return names;
}

std::uint32_t RowMemory::next_of(std::uint32_t index) const {
  const std::uint32_t next = block(index).next.load(std::memory_order_acquire);
  if (next == 0 || next > block_count_) {
    fail(Errc::corrupt, "segment {}: block {} of {} is followed by {}", segment_.name(), index,
         block_count_, next);
  }
  return next - 1;
}

bool RowMemory::has_job_ended() const {
  return has_publishing_job_ended(segment_, control_root_, job_);
}

void RowMemory::call_worker_0() const {
  header().calls.fetch_add(1, std::memory_order_seq_cst);
  wake_all(header().calls);
}

std::string experience_name(std::string_view name) { return fmt::format("experience({})", name); }

void RowMemory::tell_news() const {
  header().news.fetch_add(1, std::memory_order_seq_cst);
  wake_all(header().news);
}

}  // namespace weft
