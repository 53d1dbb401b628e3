#include "transport/job/program_list.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <sstream>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "transport/format/plan_file.hpp"

namespace weft {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProgramEntry, worker, generation, number, step, fingerprint,
                                   site, reason, seconds, stored, arena_bytes, keeps_state)

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kListBytesMax = std::size_t{64} << 20;

std::string programs_in(const std::string& run_dir) { return run_dir + "/programs"; }

class File {
 public:
  File(const std::string& path, int flags)
      : path_(path),
        descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  void write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(Errc::io, "can't write {}: {}", path_, std::strerror(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

 private:
  std::string path_;
  int descriptor_;
};

/// Writes a file unless it exists. Equal programs have equal files, so only the first worker needs
/// to write them.
template <typename MakeBytes>
void write_once(const std::string& path, const MakeBytes& make_bytes) {
  if (fs::exists(path)) return;
  const std::string unfinished = path + ".tmp";
  {
    const File file(unfinished, O_EXCL);
    if (!file.is_open()) return;
    file.write(make_bytes());
  }
  fs::rename(unfinished, path);
}

/// Returns whether the line's number is below kLinesMax and all counts are unsigned integers. Other
/// numbers would silently be converted to wrong counts.
bool has_counts(const nlohmann::json& line) {
  for (const char* name : {"generation", "number", "step", "arena_bytes"}) {
    if (!line.at(name).is_number_unsigned()) return false;
  }
  return line.at("number").get<std::uint64_t>() < ProgramList::kLinesMax;
}

/// Returns whether the text consists of hex digits. Other texts would be unsafe as parts of paths.
bool is_fingerprint(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

ProgramList::ProgramList(const std::string& run_dir)
    : folder_(run_dir.empty() ? "" : programs_in(run_dir)) {}

void ProgramList::add(const ProgramEntry& entry, const std::string& text,
                      const Plan& plan) const noexcept {
  if (folder_.empty() || entry.number >= kLinesMax) return;
  try {
    write(entry, text, plan);
  } catch (...) {
  }
}

void ProgramList::write(const ProgramEntry& entry, const std::string& text,
                        const Plan& plan) const {
  fs::create_directory(folder_);
  const File list(folder_ + "/list.jsonl", O_APPEND);
  if (!list.is_open()) return;
  const std::string line =
      nlohmann::json(entry).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  list.write(std::as_bytes(std::span(line)));
  if (entry.number >= kFilesMax) return;
  const std::string path = folder_ + "/" + entry.fingerprint;
  write_once(path + ".txt", [&] { return std::as_bytes(std::span(text)); });
  std::vector<std::byte> encoded;
  write_once(path + ".weftplan", [&] {
    encoded = encode_plan(plan);
    return std::span<const std::byte>(encoded);
  });
}

std::vector<ProgramEntry> read_program_list(const std::string& run_dir) {
  std::vector<ProgramEntry> entries;
  std::istringstream file(
      find_file_text(programs_in(run_dir) + "/list.jsonl", kListBytesMax).value_or(""));
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    try {
      ProgramEntry entry = json.get<ProgramEntry>();
      if (has_counts(json) && is_fingerprint(entry.fingerprint))
        entries.push_back(std::move(entry));
    } catch (const nlohmann::json::exception&) {
      // This line is incomplete, because its worker was killed meanwhile; it is skipped.
    }
  }
  return entries;
}

std::string program_text_path(const std::string& run_dir, const ProgramEntry& entry) {
  return programs_in(run_dir) + "/" + entry.fingerprint + ".txt";
}
std::string program_plan_path(const std::string& run_dir, const ProgramEntry& entry) {
  return programs_in(run_dir) + "/" + entry.fingerprint + ".weftplan";
}

}  // namespace weft
