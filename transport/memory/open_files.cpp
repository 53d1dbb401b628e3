#include "transport/memory/open_files.hpp"

#include <dirent.h>
#include <sys/resource.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace weft {

std::size_t open_files_of_job(int num_workers, int num_chips, bool tls) noexcept {
  constexpr std::size_t kOfAnyJob = 25;
  constexpr std::size_t kOfWorker = 5;
  constexpr std::size_t kOfTlsLink = 2;
  return kOfAnyJob + static_cast<std::size_t>(num_workers) * (kOfWorker + (tls ? kOfTlsLink : 0)) +
         static_cast<std::size_t>(num_chips);
}

OpenFiles count_open_files() noexcept {
  OpenFiles files;
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  files.limit = limit.rlim_cur;
  files.hard_limit = limit.rlim_max;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (!folder) {  // most likely because all descriptors are in use
    files.open = files.limit;
    return files;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] != '.') ++files.open;
  }
  files.open = std::min(files.open - 1, files.limit);  // -1: the opened folder isn't counted
  return files;
}

std::string how_to_allow_open_files(std::size_t wanted, const OpenFiles& now) {
  if (wanted <= now.hard_limit) return fmt::format("ulimit -n {}", wanted);
  return fmt::format(
      "prlimit --nofile={0}:{0} --pid $$ (as root: the hard limit is {1}), or in a container "
      "docker run --ulimit nofile={0}",
      wanted, now.hard_limit);
}

}  // namespace weft
