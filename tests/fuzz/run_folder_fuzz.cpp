/// Puts the fuzz input into one file of a run folder, and builds all views of `weft inspect` from
/// the folder. The first byte of the input chooses the file; the other files are valid.

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "inspect/history/late.hpp"
#include "inspect/history/trace.hpp"
#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/views/job_views.hpp"
#include "inspect/why/explain.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/box_parts.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft {
namespace {

constexpr std::array kFiles{"blackbox/board.bin",  "blackbox/box.bin", "blackbox/control.bin",
                            "hang/board.bin",      "hang/box.bin",     "hang/control.bin",
                            "hang/processes.json", "result.json"};

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  WEFT_CHECK(file.good(), path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
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

/// Returns a valid run folder, which all inputs share. It is made from the golden box and the
/// seeds; the first byte of a seed says which file the rest is.
const std::string& folder() {
  static const testing::TemporaryFolder made;
  static const bool is_filled = [] {
    for (const char* part : {"/blackbox", "/hang"}) {
      std::filesystem::create_directory(made.path() + part);
    }
    const std::vector<char> box = bytes_of(WEFT_TEST_DIR "/golden/box-v2.bin");
    for (const char* file : {"/blackbox/box.bin", "/hang/box.bin"}) {
      write(made.path() + file, testing::scatter_box(std::as_bytes(std::span(box))));
    }
    for (const auto& seed :
         std::filesystem::directory_iterator(WEFT_TEST_DIR "/fuzz/corpus/run_folder")) {
      const std::vector<char> bytes = bytes_of(seed.path());
      const auto file = static_cast<std::size_t>(bytes.at(0));
      write(made.path() + "/" + kFiles.at(file), std::as_bytes(std::span(bytes).subspan(1)));
    }
    look_at(made.path());
    return true;
  }();
  WEFT_CHECK(is_filled);
  return made.path();
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string& run_dir = weft::folder();
  const std::string path = run_dir + "/" + weft::kFiles[data[0] % weft::kFiles.size()];
  const std::string kept = path + ".kept";
  std::filesystem::rename(path, kept);
  weft::write(path, std::as_bytes(std::span(data + 1, size - 1)));
  try {
    weft::look_at(run_dir);
  } catch (const weft::Error& error) {
    const weft::Errc code = error.code();
    WEFT_CHECK(
        code == weft::Errc::corrupt || code == weft::Errc::version || code == weft::Errc::not_found,
        error.what());
  }
  std::filesystem::rename(kept, path);
  return 0;
}
