#include "transport/storage/output_file.hpp"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <weft/error.hpp>

#include "transport/storage/file_system.hpp"

namespace weft {
namespace {

/// A new file, whose name this completes. Null where there can't be one.
std::FILE* open_unfinished(std::string& name) {
  constexpr int kSuffix = 4;  // ".tmp"
  const int descriptor = ::mkstemps(name.data(), kSuffix);
  if (descriptor < 0) return nullptr;
  ::fchmod(descriptor, 0644);
  return ::fdopen(descriptor, "wb");
}

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)),
      unfinished_(path_ + ".XXXXXX.tmp"),
      file_(open_unfinished(unfinished_)) {
  if (file_ == nullptr) fail_call("create");
}

OutputFile::~OutputFile() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::remove(unfinished_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail_call("write");
}

void OutputFile::finish() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) fail_call("write");
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) fail_call("name");
  std::fclose(std::exchange(file_, nullptr));
  const auto folder = std::filesystem::path(path_).parent_path();
  posix_file_system().sync_folder(folder.empty() ? "." : folder.string());
}

void OutputFile::fail_call(const char* what) const {
  const int error = errno;
  fail(error == ENOSPC || error == EDQUOT ? Errc::no_space : Errc::io, "can't {} {}: {}", what,
       path_, std::strerror(error));
}

}  // namespace weft
