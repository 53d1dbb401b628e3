/// Bytes as one of the files that a run folder keeps of a job. The first byte says which; the other
/// files are whole or absent. All views of `weft inspect` are made of them.

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "inspect/history/late.hpp"
#include "inspect/history/trace.hpp"
#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/views/job_views.hpp"
#include "inspect/why/explain.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft {
namespace {

constexpr std::array kFiles{"blackbox/board.bin", "blackbox/box.bin", "blackbox/control.bin",
                            "hang/board.bin",     "hang/control.bin", "hang/processes.json",
                            "result.json"};

void write(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// A run folder with the golden board and box, which stays for all inputs.
const std::string& folder() {
  static const testing::TemporaryFolder made;
  static const bool is_filled = [] {
    for (const char* of : {"blackbox", "hang"}) {
      const std::string copies = made.path() + "/" + of;
      std::filesystem::create_directory(copies);
      std::filesystem::copy_file(WEFT_TEST_DIR "/golden/board-v2.bin", copies + "/board.bin");
      std::filesystem::copy_file(WEFT_TEST_DIR "/golden/box-v1.bin", copies + "/box.bin");
    }
    return true;
  }();
  WEFT_CHECK(is_filled);
  return made.path();
}

void look_at(const std::string& run_dir) {
  const Snapshot job = SnapshotReader::of_folder(run_dir).read({.events = true});
  to_json(explain_ended(job));
  to_text(explain(job, job));
  show_text(job);
  actors_json(job);
  mesh_text(job, true);
  mesh_steps_text(job, true);
  late_mesh_text(job, true);
  late_json(job);
  if (!job.rings.empty()) write_trace(job, {}, [](std::string_view) {});
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string& run_dir = weft::folder();
  const std::string path = run_dir + "/" + weft::kFiles[data[0] % weft::kFiles.size()];
  const std::string kept = path + ".kept";
  const bool is_there = std::filesystem::exists(path);
  if (is_there) std::filesystem::rename(path, kept);
  weft::write(path, {data + 1, size - 1});
  try {
    weft::look_at(run_dir);
  } catch (const weft::Error& error) {
    const weft::Errc code = error.code();
    WEFT_CHECK(
        code == weft::Errc::corrupt || code == weft::Errc::version || code == weft::Errc::not_found,
        error.what());
  }
  std::filesystem::remove(path);
  if (is_there) std::filesystem::rename(kept, path);
  return 0;
}
