#include <weft/actors/trainer/job_place.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

/// "/<id>/control" and the end of the string.
constexpr std::size_t kPlaceInRoot = 1 + 32 + 8 + 1;

std::string random_hex() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail(Errc::io, "getrandom: {}", std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Makes `path` if it isn't there; refuses one that others could enter or own.
void make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    fail(Errc::io, "can't make the control folder {}: {}", path, std::strerror(errno));
  }
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) ||
      found.st_uid != ::geteuid() || (found.st_mode & 077) != 0) {
    fail(Errc::io,
         "the control folder {} is not a folder of this user with mode 0700: remove it, or set "
         "XDG_RUNTIME_DIR to a folder of your own",
         path);
  }
}

/// Makes $XDG_RUNTIME_DIR/weft, or /tmp/weft-<uid> where that can't be (a login without a session
/// has the variable and no folder) or is too long for a socket.
std::string make_control_root() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') {
    const std::string root = std::string(runtime) + "/weft";
    if (root.size() + kPlaceInRoot < sizeof(sockaddr_un::sun_path)) {
      try {
        make_private_folder(root);
        return root;
      } catch (const Error&) {
      }
    }
  }
  const std::string root = fmt::format("/tmp/weft-{}", ::geteuid());
  make_private_folder(root);
  return root;
}

constexpr const char* kLockSuffix = ".lock";

/// Opens and locks; -1 where the lock is held (LOCK_NB). The kernel drops the lock with the
/// process.
int lock_file(const std::string& path, int operation) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) fail(Errc::io, "can't make {}: {}", path, std::strerror(errno));
    if (::flock(fd, operation) != 0) {
      ::close(fd);
      return -1;
    }
    struct stat found {};
    // A sweeper may have removed the file between open and lock.
    if (::fstat(fd, &found) == 0 && found.st_nlink > 0) return fd;
    ::close(fd);
  }
}

/// Removes the segments, the folder and at last the lock's file of the job whose folder it is.
void remove_job(const std::filesystem::path& folder) {
  JobMemory::remove(folder.filename().string());
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  std::filesystem::remove(folder.string() + kLockSuffix, ignored);
}

bool is_id(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

/// What jobs of this user left whose trainer was killed. What can't be swept now, and what isn't of
/// a job, stays.
void sweep_dead_jobs(const std::string& root) {
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator(root, unreadable)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != kLockSuffix || !is_id(path.stem().string())) continue;
    try {
      const int lock = lock_file(path.string(), LOCK_EX | LOCK_NB);
      if (lock < 0) continue;
      remove_job(path.parent_path() / path.stem());
      ::close(lock);
    } catch (const Error&) {
    }
  }
}

}  // namespace

JobPlace::JobPlace() : id_(random_hex()), token_(random_hex()) {
  const std::string root = make_control_root();
  sweep_dead_jobs(root);
  // The lock comes first: what has no lock that is held is swept.
  lock_ = lock_file(root + "/" + id_ + kLockSuffix, LOCK_EX);
  folder_ = root + "/" + id_;
  make_private_folder(folder_);
}

void JobPlace::remove() {
  if (lock_ < 0) return;
  remove_job(folder_);
  ::close(std::exchange(lock_, -1));
}

Board JobPlace::make_board(const JobSpec& spec, const std::string& run_dir) const {
  BoardHeader header{.job = id_,
                     .name = spec.name,
                     .run_dir = run_dir,
                     .mesh_shape = {},
                     .axis_names = {},
                     .num_workers = spec.num_joins(),
                     .num_chips = spec.num_chips(),
                     .trainer_pid = ::getpid(),
                     .started_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                            std::chrono::system_clock::now().time_since_epoch())
                                            .count()};
  if (spec.mesh) {
    header.mesh_shape = spec.mesh->shape();
    header.axis_names = spec.mesh->axis_names();
  }
  return Board::create(header);
}

JobMemory JobPlace::make_memory(int num_chips) const {
  return JobMemory::create({.job = id_, .num_chips = num_chips});
}

}  // namespace weft
