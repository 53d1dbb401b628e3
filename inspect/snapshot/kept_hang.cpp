#include "inspect/snapshot/kept_hang.hpp"

#include <filesystem>

#include <weft/tensor/error.hpp>

#include "inspect/snapshot/process_file.hpp"
#include "transport/job/job_record.hpp"

namespace weft {

namespace fs = std::filesystem;

void keep_hang(const Snapshot& job) {
  const std::string folder = hang_in(job.header.run_dir);
  const std::string unfinished = folder + ".tmp";
  copy_memory(job.job, unfinished);
  write_processes(unfinished + "/processes.json", job);
  forget_hang(job.header.run_dir);
  std::error_code error;
  fs::rename(unfinished, folder, error);
  if (error) fail(Errc::io, "can't rename {}: {}", unfinished, error.message());
}

void forget_hang(const std::string& run_dir) noexcept {
  std::error_code none;
  fs::remove_all(hang_in(run_dir), none);
}

}  // namespace weft
