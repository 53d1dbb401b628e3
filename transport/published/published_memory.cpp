#include "transport/published/published_memory.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <weft/tensor/error.hpp>

#include "transport/job/job_folder.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {
namespace {

std::string ledger_prefix(std::string_view job) { return fmt::format("weft-{}-published-", job); }
std::string values_name(std::string_view job, std::string_view name) {
  return fmt::format("weft-{}-values-{}", job, name);
}

std::size_t bytes_of_version(const std::vector<PublishedTensor>& tensors) {
  std::size_t bytes = kPublishedAlignment;
  for (const PublishedTensor& tensor : tensors) {
    bytes = std::max(bytes, tensor.offset + static_cast<std::size_t>(tensor.type.bytes()));
  }
  constexpr std::size_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

/// The fields of the header that give the segments' sizes. Each is read only once.
struct PublishedSizes {
  explicit PublishedSizes(const PublishedHeader& header)
      : tensors(header.tensor_count),
        names(header.name_bytes),
        version(header.version_bytes),
        workers(header.worker_count) {}
  bool fit(std::size_t ledger_bytes, std::size_t values_bytes) const {
    return tensors <= kPublishedTensorsMax && names <= kPublishedNamesMax && workers > 0 &&
           workers <= kPublishingWorkersMax && version % kPublishedAlignment == 0 &&
           sizeof(PublishedHeader) + tensors * sizeof(TensorEntry) + names <= ledger_bytes &&
           version <= values_bytes / kVersionCountMax;
  }

  std::size_t tensors;
  std::size_t names;
  std::size_t version;
  std::uint32_t workers;
};

}  // namespace

PublishedMemory::PublishedMemory(std::string_view job, Segment ledger, Segment values)
    : job_(job), ledger_(std::move(ledger)), values_(std::move(values)) {
  const PublishedSizes sizes(header());
  if (!sizes.fit(ledger_.capacity(), values_.capacity())) {
    fail(Errc::corrupt,
         "segment {}: {} tensors, {} bytes of names, versions of {} bytes and {} workers don't fit "
         "segments of {} and {} bytes",
         ledger_.name(), sizes.tensors, sizes.names, sizes.version, sizes.workers,
         ledger_.capacity(), values_.capacity());
  }
  tensors_ = read_tensor_table(ledger_, sizeof(PublishedHeader),
                               {.count = sizes.tensors,
                                .name_bytes = sizes.names,
                                .bytes = sizes.version,
                                .alignment = kPublishedAlignment});
  version_bytes_ = sizes.version;
  worker_count_ = sizes.workers;
  control_root_.assign(header().control_root,
                       ::strnlen(header().control_root, sizeof(header().control_root)));
}

std::string PublishedMemory::ledger_name(std::string_view job, std::string_view name) {
  return fmt::format("{}{}", ledger_prefix(job), name);
}

PublishedMemory PublishedMemory::create(std::string_view job, std::string_view name,
                                        const std::vector<PublishedTensor>& tensors,
                                        int worker_count) {
  const std::size_t name_bytes = name_bytes_of(tensors);
  const std::size_t version_bytes = bytes_of_version(tensors);
  const std::size_t ledger_bytes =
      sizeof(PublishedHeader) + tensors.size() * sizeof(TensorEntry) + name_bytes;
  // The values are made first, so that a process that can open the ledger also finds the values.
  Segment values = Segment::create(values_name(job, name), kVersionCountMax * version_bytes);
  try {
    Segment ledger = Segment::create(ledger_name(job, name), ledger_bytes);
    try {
      ledger.reserve(0, ledger_bytes);
      auto* header = new (ledger.data()) PublishedHeader{};
      header->format = kPublishedFormat;
      header->tensor_count = static_cast<std::uint32_t>(tensors.size());
      header->name_bytes = name_bytes;
      header->version_bytes = version_bytes;
      header->worker_count = static_cast<std::uint32_t>(worker_count);
      JobMemory::control_root_of(job).copy(header->control_root, sizeof(header->control_root) - 1);
      write_tensor_table(ledger.data() + sizeof(PublishedHeader), tensors);
      std::atomic_ref(header->magic).store(kPublishedMagic, std::memory_order_release);
      return PublishedMemory(job, std::move(ledger), std::move(values));
    } catch (...) {
      Segment::remove(ledger_name(job, name));
      throw;
    }
  } catch (...) {
    Segment::remove(values_name(job, name));
    throw;
  }
}

PublishedMemory PublishedMemory::open(std::string_view job, std::string_view name,
                                      bool only_reads) {
  Segment ledger = Segment::open(ledger_name(job, name), false, sizeof(PublishedHeader));
  auto& header = *reinterpret_cast<PublishedHeader*>(ledger.data());
  const std::uint64_t magic = std::atomic_ref(header.magic).load(std::memory_order_acquire);
  if (magic != kPublishedMagic) {
    fail(magic == 0 ? Errc::not_found : Errc::corrupt, "segment {} {}", ledger.name(),
         magic == 0 ? "is still being made" : "isn't one in which a job publishes tensors");
  }
  if (header.format != kPublishedFormat) {
    fail(Errc::version,
         "segment {}: a format of version {}, but this program reads version {}; build both "
         "programs with the same weft",
         ledger.name(), header.format, kPublishedFormat);
  }
  Segment values = Segment::open(values_name(job, name), only_reads, 1);
  return PublishedMemory(job, std::move(ledger), std::move(values));
}

void PublishedMemory::remove(std::string_view job, std::string_view name) noexcept {
  Segment::remove(ledger_name(job, name));
  Segment::remove(values_name(job, name));
}

std::vector<std::string> PublishedMemory::names(std::string_view job) {
  std::vector<std::string> names = Segment::list(ledger_prefix(job));
  for (std::string& name : names) name.erase(0, ledger_prefix(job).size());
  return names;
}

void PublishedMemory::reserve(std::uint32_t place) {
  values_.reserve(place * version_bytes_, version_bytes_);
  header().places[place].is_reserved.store(1, std::memory_order_relaxed);
}

bool PublishedMemory::has_job_ended() const {
  return has_publishing_job_ended(ledger_, control_root_, job_);
}

bool has_publishing_job_ended(const Segment& segment, const std::string& control_root,
                              const std::string& job) {
  struct stat found {};
  if (::fstat(segment.descriptor(), &found) == 0 && found.st_nlink == 0) return true;
  return !control_root.empty() && !JobLock::is_held(control_root, job);
}

}  // namespace weft
