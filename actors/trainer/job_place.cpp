#include <weft/actors/trainer/job_place.hpp>

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <weft/spmd/error.hpp>

namespace weft {
namespace {

std::string random_hex() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    fail(Errc::io, "getrandom: {}", std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

JobPlace::JobPlace() : id_(random_hex()), token_(random_hex()), root_(make_control_root()) {
  sweep_dead_jobs(root_);
  // The lock comes first: what has no lock that is held is swept.
  lock_ = JobLock::take(root_, id_);
  make_private_folder(folder_in(root_, id_));
}

void JobPlace::remove() {
  if (!lock_) return;
  remove_job(root_, id_);
  lock_ = JobLock();
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
