#include "data/files/plain_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a special file";
}

void require_plain(const std::string& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  fail(Errc::invalid_argument, "{} is {}: expected a plain file", path, kind_of(status.st_mode));
}

[[noreturn]] void fail_open(const std::string& path, int error) {
  struct stat status {};
  // open() fails with these errors for a socket, or a device without a driver.
  if (error == ENXIO || error == ENODEV) {
    if (::stat(path.c_str(), &status) == 0) require_plain(path, status);
  }
  const bool is_absent = error == ENOENT || error == ENOTDIR;
  fail(is_absent ? Errc::not_found : Errc::io, "can't open {}: {}", path, std::strerror(error));
}

std::string expand_home(const std::string& path, std::string_view field) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    fail(Errc::invalid_argument, "{} = \"{}\": HOME is not set; give a path without ~", field,
         path);
  }
  return home + path.substr(1);
}

}  // namespace

std::string_view url_scheme(std::string_view path) {
  const std::size_t end = path.find("://");
  if (end == std::string_view::npos || end == 0 || !is_letter(path.front())) return {};
  const std::string_view scheme = path.substr(0, end);
  const bool is_scheme = std::ranges::all_of(scheme, [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
  });
  return is_scheme ? scheme : std::string_view();
}

void require_local_path(std::string_view path, std::string_view option) {
  const std::string_view scheme = url_scheme(path);
  if (scheme.empty()) return;
  const std::string advice = scheme == kLocalScheme ? "give the path alone, without \"file://\""
                                                    : "give a path of this machine";
  fail(Errc::unavailable,
       "{}{}\"{}\" is a URL, but only a file of this machine is possible here; {}", option,
       option.empty() ? "" : " = ", path, advice);
}

std::string path_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string path = value != nullptr ? value : "";
  require_local_path(path, name);
  return path;
}

std::string absolute_path(const std::string& path, std::string_view field) {
  require_local_path(path, field);
  if (path.empty()) return path;
  const auto normal = std::filesystem::absolute(expand_home(path, field)).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).string();
}

int open_plain_file(const std::string& path) {
  require_local_path(path);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) fail_open(path, errno);
  try {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) fail_open(path, errno);
    require_plain(path, status);
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  return descriptor;
}

}  // namespace weft
