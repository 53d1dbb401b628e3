#include "transport/memory/namespaces.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>

#include <fmt/format.h>

namespace weft {

std::uint64_t namespace_of_this_process(std::string_view kind) {
  struct stat status {};
  const std::string path = fmt::format("/proc/self/ns/{}", kind);
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::string machine_name() {
  utsname names{};
  ::uname(&names);
  return names.nodename;
}

}  // namespace weft
