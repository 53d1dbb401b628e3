#include "inspect/snapshot/kept_hang.hpp"

#include <filesystem>

#include <weft/tensor/error.hpp>

#include "inspect/snapshot/process_file.hpp"
#include "transport/job/job_record.hpp"

namespace weft {

namespace fs = std::filesystem;

void keep_hang(const Snapshot& job) {
  const std::string record = record_folder(job.header.run_dir, job.header.host);
  const std::string folder = hang_in(record);
  const std::string unfinished = folder + ".tmp";
  std::error_code error;
  fs::create_directories(record, error);  // if this fails, copy_memory() throws the reason
  copy_memory(job.job, unfinished);
  write_processes(unfinished + "/processes.json", job);
  forget_hang(job.header.run_dir, job.header.host);
  fs::rename(unfinished, folder, error);
  if (error) fail(Errc::io, "can't rename {}: {}", unfinished, error.message());
}

void forget_hang(const std::string& run_dir, int host) noexcept {
  std::error_code none;
  fs::remove_all(hang_in(record_folder(run_dir, host)), none);
}

}  // namespace weft
