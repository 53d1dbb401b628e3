#include "data/files/part_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <weft/tensor/error.hpp>

#include "data/files/plain_file.hpp"

namespace weft {
namespace {

std::uint64_t size_of(int file) {
  struct stat status {};
  return ::fstat(file, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

}  // namespace

PartFiles::PartFiles(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) files_.push_back({.path = folder + "/" + name});
}

PartFiles::PartFiles(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files_.push_back({.path = path});
}

PartFiles::~PartFiles() {
  for (const File& file : files_) {
    if (file.descriptor >= 0) ::close(file.descriptor);
  }
}

template <typename Use>
void PartFiles::with(std::uint32_t number, Use use) const {
  int descriptor = -1;
  {
    const std::lock_guard lock(mutex_);
    File& file = files_[number];
    if (file.descriptor < 0 && open_ < kOpenFilesMax) {
      file.descriptor = open_plain_file(file.path);
      ++open_;
    }
    descriptor = file.descriptor;
  }
  if (descriptor >= 0) return use(descriptor);
  const struct Closing {
    int descriptor;
    ~Closing() { ::close(descriptor); }
  } closing{open_plain_file(files_[number].path)};
  use(closing.descriptor);
}

void PartFiles::open() const {
  const auto count = static_cast<std::uint32_t>(std::min(files_.size(), kOpenFilesMax));
  for (std::uint32_t file = 0; file < count; ++file) {
    try {
      with(file, [](int) {});
    } catch (const Error&) {
      // The error is ignored here, because the first use of the file reports it.
    }
  }
}

std::uint64_t PartFiles::bytes(std::uint32_t file) const {
  std::uint64_t bytes = 0;
  with(file, [&](int descriptor) { bytes = size_of(descriptor); });
  return bytes;
}

void PartFiles::require(std::uint32_t file, std::uint64_t offset, std::uint64_t wanted) const {
  const std::uint64_t size = bytes(file);
  if (offset <= size && wanted <= size - offset) return;
  fail(Errc::corrupt, "{} has {} bytes: expected {} bytes at byte {}", path(file), size, wanted,
       offset);
}

void PartFiles::read(std::uint32_t file, std::uint64_t offset, std::span<std::byte> out) const {
  with(file, [&](int descriptor) {
    for (std::size_t done = 0; done < out.size();) {
      const ssize_t count = ::pread(descriptor, out.data() + done, out.size() - done,
                                    static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(Errc::io, "can't read {}: {}", path(file), std::strerror(errno));
      if (count == 0) {
        fail(Errc::corrupt, "{} ends at byte {}: expected {} bytes at byte {}", path(file),
             offset + done, out.size(), offset);
      }
      done += static_cast<std::size_t>(count);
    }
  });
}

}  // namespace weft
