#include "tools/weft/inspect/trace_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {

TraceFile::TraceFile(const std::string& path)
    : path_(path),
      output_(path),
      // With "T", zlib writes the data unchanged: without compression and without a header.
      file_(::gzdopen(::dup(output_.descriptor()), path.ends_with(".gz") ? "wb6" : "wbT")) {
  check(file_ != nullptr);
}

TraceFile::~TraceFile() {
  if (file_ != nullptr) ::gzclose(file_);
}

void TraceFile::write(std::string_view text) {
  if (text.empty()) return;
  check(::gzwrite(file_, text.data(), static_cast<unsigned>(text.size())) > 0);
}

void TraceFile::finish() {
  check(::gzclose(std::exchange(file_, nullptr)) == Z_OK);
  output_.finish();
}

void TraceFile::check(bool is_written) const {
  if (!is_written) fail(Errc::io, "can't write {}: {}", path_, std::strerror(errno));
}

}  // namespace weft
