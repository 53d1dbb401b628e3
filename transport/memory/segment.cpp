#include "transport/memory/segment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <utility>

#include <boost/interprocess/mapped_region.hpp>
#include <boost/interprocess/permissions.hpp>
#include <boost/interprocess/shared_memory_object.hpp>

#include <weft/tensor/error.hpp>

#include "transport/memory/huge_pages.hpp"
#include "transport/memory/parent_only.hpp"

namespace weft {
namespace {

namespace bip = boost::interprocess;

constexpr char kFolder[] = "/dev/shm";

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::string path_of(const std::string& name) { return fmt::format("{}/{}", kFolder, name); }

void require_file_name(const std::string& name) {
  if (name.empty() || name.size() > NAME_MAX || name.find('/') != std::string::npos ||
      name.front() == '.') {
    fail(Errc::invalid_argument,
         "segment name '{}': expected one file name of 1 to {} characters, not beginning with '.'",
         name, NAME_MAX);
  }
}

/// Throws corrupt for a file that another user has made, or may change later.
void require_private(const struct stat& status, const std::string& name) {
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 077U) != 0) {
    fail(Errc::corrupt,
         "segment {}: expected a plain file of user {} with mode 0600, found mode {:#o} of user {}",
         path_of(name), geteuid(), status.st_mode, status.st_uid);
  }
}

[[noreturn]] void fail_exists(const std::string& name) {
  struct stat status {};
  const std::string path = path_of(name);
  if (lstat(path.c_str(), &status) != 0) fail(Errc::io, "segment {} exists already", path);
  fail(Errc::io,
       "segment {} exists already: it belongs to user {} and was last changed {} s ago; if no job "
       "uses it, remove it (rm {})",
       path, status.st_uid, std::time(nullptr) - status.st_mtim.tv_sec, path);
}

/// A mappable object for Boost, with the member functions that Boost requires.
struct Mappable {
  int descriptor;
  bip::mode_t mode;

  bip::mapping_handle_t get_mapping_handle() const {
    bip::mapping_handle_t handle;
    handle.handle = descriptor;
    handle.is_xsi = false;
    return handle;
  }
  bip::mode_t get_mode() const { return mode; }
};

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

/// Reserves address space for a mapping, beginning at a multiple of kHugePageBytes. The destructor
/// frees it unless something was mapped there.
class AddressRange {
 public:
  explicit AddressRange(std::size_t bytes) : bytes_(round_up(bytes, page_bytes())) {
    const std::size_t found_bytes = bytes_ + kHugePageBytes;
    void* found =
        mmap(nullptr, found_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) {
      fail(Errc::no_space, "no address space for a segment of {} bytes: {}", bytes,
           std::strerror(errno));
    }
    auto* const first = static_cast<std::byte*>(found);
    const std::size_t before = round_up(reinterpret_cast<std::uintptr_t>(found), kHugePageBytes) -
                               reinterpret_cast<std::uintptr_t>(found);
    begin_ = first + before;
    if (before > 0) munmap(first, before);
    munmap(begin_ + bytes_, kHugePageBytes - before);
  }
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }
  void* begin() const { return begin_; }
  void release() { begin_ = nullptr; }

 private:
  static std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

  std::size_t bytes_;
  std::byte* begin_ = nullptr;
};

bip::mapped_region map(const Descriptor& descriptor, bip::mode_t mode, std::size_t capacity) {
  const Mappable file{descriptor.get(), mode};
  if (capacity < kHugePageBytes) return {file, mode, 0, capacity, nullptr, MAP_NORESERVE};
  AddressRange range(capacity);
  bip::mapped_region region(file, mode, 0, capacity, range.begin(), MAP_NORESERVE | MAP_FIXED);
  range.release();
  ask_for_huge_pages(static_cast<std::byte*>(region.get_address()), capacity);
  return region;
}

/// Returns whether the memory must be touched to get huge pages. It may not be touched if that
/// could fill /dev/shm: if there is too little memory, posix_fallocate() changes nothing, but
/// touching pages fills it.
bool wants_population(const std::string& name, int descriptor, std::size_t bytes) {
  if (bytes < kHugePageBytes) return false;
  if (name.empty()) return huge_pages_of_anonymous() == "advise";
  struct statvfs folder {};
  return huge_pages_of_shm() == "advise" && fstatvfs(descriptor, &folder) == 0 &&
         folder.f_bavail * folder.f_frsize >= bytes;
}

/// A set of disjoint half-open ranges, as a map from begin to end. Ranges that touch are merged.
class RangeSet {
 public:
  bool contains(std::size_t begin, std::size_t end) const {
    const auto after = ranges_.upper_bound(begin);
    return after != ranges_.begin() && std::prev(after)->second >= end;
  }
  void insert(std::size_t begin, std::size_t end) {
    auto range = ranges_.lower_bound(begin);
    if (range != ranges_.begin() && std::prev(range)->second >= begin) --range;
    while (range != ranges_.end() && range->first <= end) {
      begin = std::min(begin, range->first);
      end = std::max(end, range->second);
      range = ranges_.erase(range);
    }
    ranges_.emplace(begin, end);
  }

 private:
  std::map<std::size_t, std::size_t> ranges_;
};

[[noreturn]] void fail_no_space(const std::string& name, std::size_t bytes) {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  struct statvfs folder {};
  if (name.empty() || statvfs(kFolder, &folder) != 0) {
    fail(Errc::no_space,
         "no memory for {} bytes of an anonymous segment: use fewer or smaller arenas", bytes);
  }
  const std::size_t free_bytes = folder.f_bavail * folder.f_frsize;
  const std::size_t total_bytes = folder.f_blocks * folder.f_frsize;
  // The message suggests a size that has room for more than this call, because otherwise the next
  // call would fail.
  const std::size_t wanted_bytes = std::max(total_bytes + bytes, 2 * total_bytes);
  const std::size_t wanted_mib = round_up(wanted_bytes, kMiB) / kMiB;
  fail(Errc::no_space,
       "segment {} needs {} bytes, {} has {} of {} bytes free; enlarge it: mount -o "
       "remount,size={}m "
       "{}, or in a container docker run --shm-size={}m",
       path_of(name), bytes, kFolder, free_bytes, total_bytes, wanted_mib, kFolder, wanted_mib);
}

[[noreturn]] void fail_no_file(const std::string& name) {
  struct statvfs folder {};
  statvfs(kFolder, &folder);
  fail(Errc::no_space,
       "segment {} can't be created: {} has {} of {} files free; allow more: mount -o "
       "remount,nr_inodes={} {}",
       path_of(name), kFolder, folder.f_favail, folder.f_files, 2 * folder.f_files, kFolder);
}

/// Throws no_space if the file would exceed the process's limit on file sizes. Growth beyond the
/// limit would end the process by SIGXFSZ.
void require_file_size(const std::string& name, std::size_t capacity) {
  rlimit most{};
  if (getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur >= capacity) return;
  fail(Errc::no_space,
       "segment {}: a sparse file of {} bytes is larger than the {} that files of this process may "
       "have: ulimit -f unlimited",
       path_of(name), capacity, most.rlim_cur);
}

}  // namespace

struct Segment::State {
  State(std::string name_in, Descriptor descriptor_in, bip::mode_t mode, std::size_t capacity)
      : name(std::move(name_in)),
        descriptor(std::move(descriptor_in)),
        region(map(descriptor, mode, capacity)) {}

  std::string name;
  Descriptor descriptor;
  bip::mapped_region region;
  ParentOnly hidden;  // destroyed before the descriptor is closed
  std::mutex mutex;
  RangeSet reserved;  // guarded by mutex
};

Segment::Segment(std::unique_ptr<State> state) : state_(std::move(state)) {}
Segment::Segment(Segment&&) noexcept = default;
Segment& Segment::operator=(Segment&&) noexcept = default;
Segment::~Segment() = default;

Segment Segment::create(const std::string& name, std::size_t capacity) {
  require_file_name(name);
  if (capacity == 0) fail(Errc::invalid_argument, "segment {}: capacity is 0", name);
  require_file_size(name, capacity);
  try {
    const bip::shared_memory_object object(bip::create_only, name.c_str(), bip::read_write,
                                           bip::permissions(0600));
    try {
      // Boost's truncate() isn't used, because it would allocate every page.
      Descriptor descriptor(fcntl(object.get_mapping_handle().handle, F_DUPFD_CLOEXEC, 0));
      if (descriptor.get() < 0 || ftruncate(descriptor.get(), static_cast<off_t>(capacity)) != 0) {
        fail(Errc::io, "segment {}: can't be sized to {} bytes: {}", path_of(name), capacity,
             std::strerror(errno));
      }
      return Segment(
          std::make_unique<State>(name, std::move(descriptor), bip::read_write, capacity));
    } catch (...) {
      remove(name);
      throw;
    }
  } catch (const bip::interprocess_exception& error) {
    if (error.get_error_code() == bip::already_exists_error) fail_exists(name);
    if (error.get_native_error() == ENOSPC) fail_no_file(name);
    fail(Errc::io, "segment {} of {} bytes can't be created: {}", path_of(name), capacity,
         error.what());
  }
}

Segment Segment::open(const std::string& name, bool read_only, std::size_t bytes_min) {
  require_file_name(name);
  const std::string path = path_of(name);
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    fail(errno == ENOENT ? Errc::not_found : Errc::io, "segment {}: {}", path,
         std::strerror(errno));
  }
  require_private(status, name);  // checked before open(), which would block on a FIFO
  const bip::mode_t mode = read_only ? bip::read_only : bip::read_write;
  try {
    const bip::shared_memory_object object(bip::open_only, name.c_str(), mode);
    Descriptor descriptor(fcntl(object.get_mapping_handle().handle, F_DUPFD_CLOEXEC, 0));
    if (descriptor.get() < 0 || fstat(descriptor.get(), &status) != 0) {
      fail(Errc::io, "segment {}: {}", path, std::strerror(errno));
    }
    require_private(status, name);
    const auto bytes = static_cast<std::size_t>(status.st_size);
    // The segment's creator hasn't given it a size yet, or was killed before.
    if (bytes == 0) fail(Errc::not_found, "segment {} is still being made", path);
    if (bytes < bytes_min) {
      fail(Errc::corrupt, "segment {}: expected at least {} bytes, found {}", path, bytes_min,
           bytes);
    }
    return Segment(std::make_unique<State>(name, std::move(descriptor), mode, bytes));
  } catch (const bip::interprocess_exception& error) {
    const bool gone = error.get_error_code() == bip::not_found_error;
    fail(gone ? Errc::not_found : Errc::io, "segment {} can't be opened: {}", path, error.what());
  }
}

Segment Segment::anonymous(std::size_t capacity) {
  if (capacity == 0) fail(Errc::invalid_argument, "anonymous segment: capacity is 0");
  try {
    Descriptor descriptor(memfd_create("weft", MFD_CLOEXEC));
    if (descriptor.get() < 0 || ftruncate(descriptor.get(), static_cast<off_t>(capacity)) != 0) {
      fail(Errc::io, "anonymous segment of {} bytes can't be created: {}", capacity,
           std::strerror(errno));
    }
    return Segment(std::make_unique<State>("", std::move(descriptor), bip::read_write, capacity));
  } catch (const bip::interprocess_exception& error) {
    fail(Errc::io, "anonymous segment of {} bytes can't be mapped: {}", capacity, error.what());
  }
}

bool Segment::remove(const std::string& name) noexcept {
  return bip::shared_memory_object::remove(name.c_str());
}

std::vector<std::string> Segment::list(std::string_view prefix) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(kFolder), closedir);
  if (!folder) fail(Errc::io, "{} can't be read: {}", kFolder, std::strerror(errno));
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    struct stat status {};
    if (name.starts_with(prefix) &&
        fstatat(dirfd(folder.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::byte* Segment::data() const { return static_cast<std::byte*>(state_->region.get_address()); }
std::size_t Segment::capacity() const { return state_->region.get_size(); }
const std::string& Segment::name() const { return state_->name; }
bool Segment::read_only() const { return state_->region.get_mode() == bip::read_only; }
int Segment::descriptor() const { return state_->descriptor.get(); }

void Segment::hide_from_children() {
  if (madvise(data(), capacity(), MADV_DONTFORK) != 0) {
    fail(Errc::io, "segment {}: madvise(MADV_DONTFORK): {}", name(), std::strerror(errno));
  }
  state_->hidden = ParentOnly(descriptor());
}

void Segment::reserve(std::size_t offset, std::size_t bytes) {
  if (offset > capacity() || bytes > capacity() - offset) {
    fail(Errc::invalid_argument,
         "segment {}: can't reserve [{}, {} + {}) of a capacity of {} bytes", name(), offset,
         offset, bytes, capacity());
  }
  if (read_only()) fail(Errc::invalid_argument, "segment {} is mapped read-only", name());
  if (bytes == 0) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->reserved.contains(offset, offset + bytes)) return;
  if (wants_population(name(), descriptor(), bytes)) populate_huge_pages(data() + offset, bytes);
  int error = EINTR;
  while (error == EINTR) {
    error = posix_fallocate(state_->descriptor.get(), static_cast<off_t>(offset),
                            static_cast<off_t>(bytes));
  }
  if (error == ENOSPC || error == ENOMEM) fail_no_space(name(), bytes);
  if (error != 0) {
    fail(Errc::io, "segment {}: [{}, {} + {}) can't be reserved: {}", name(), offset, offset, bytes,
         std::strerror(error));
  }
  state_->reserved.insert(offset, offset + bytes);
}

void Segment::prefer_this_node() noexcept {
  constexpr std::size_t kBits = 64;
  std::array<std::uint64_t, 16> nodes{};
  unsigned core = 0;
  unsigned node = 0;
  if (getcpu(&core, &node) != 0 || node >= kBits * nodes.size()) return;
  nodes[node / kBits] = std::uint64_t{1} << (node % kBits);
  // The policy belongs to the file, not to the mapping. The + 1 is there because the kernel uses
  // one bit fewer than the given number of bits.
  syscall(SYS_mbind, data(), capacity(), MPOL_PREFERRED, nodes.data(), kBits * nodes.size() + 1, 0);
}

}  // namespace weft
