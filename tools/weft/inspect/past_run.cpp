#include "tools/weft/inspect/past_run.hpp"

#include <cstdlib>
#include <exception>
#include <filesystem>

#include "inspect/snapshot/snapshot_reader.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

enum class Match { none, id, name };

constexpr std::size_t kIdLength = 6;

/// Compares the name of a folder, "NAME-TIME-ID", with `asked`. TIME is "20261121-085432", for
/// example, and ID is the first six digits of the job's id.
Match match(const std::string& folder, const std::string& asked) {
  const auto id = folder.rfind('-');
  if (id == std::string::npos || folder.size() - id - 1 != kIdLength) return Match::none;
  constexpr std::size_t kTimeLength = 15;
  if (id < kTimeLength + 1) return Match::none;
  const std::string name = folder.substr(0, id - kTimeLength - 1);
  const bool begins_alike =
      asked.size() >= 2 && folder.substr(id + 1).starts_with(asked.substr(0, kIdLength));
  if (asked.empty() || asked == name) return Match::name;
  return begins_alike ? Match::id : Match::none;
}

/// Returns whether this is the id of the folder's job. Use it for an id with more digits than the
/// folder's name has.
bool has_id(const fs::path& folder, const std::string& asked) {
  try {
    return SnapshotReader::of_folder(folder).read({.processes = false}).job.starts_with(asked);
  } catch (const std::exception&) {
    return false;
  }
}

bool is_run(const fs::directory_entry& entry) {
  std::error_code none;
  return !entry.is_symlink(none) && entry.is_directory(none) &&
         (fs::exists(entry.path() / "result.json", none) ||
          fs::exists(entry.path() / "blackbox", none) ||
          fs::exists(entry.path() / "hosts.json", none));
}

}  // namespace

std::optional<std::string> find_past_run(const std::string& asked) {
  const char* const home = std::getenv("HOME");
  if (home == nullptr) return {};
  std::optional<std::string> newest;
  Match best = Match::none;  // a match by name is better than one by the beginning of an id
  fs::file_time_type written{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(fs::path(home) / "weft_runs", error)) {
    const Match found = match(entry.path().filename().string(), asked);
    if (found == Match::none || found < best || !is_run(entry)) continue;
    const bool is_long = found == Match::id && asked.size() > kIdLength;
    if (is_long && !has_id(entry.path(), asked)) continue;
    const fs::file_time_type at = entry.last_write_time(error);
    if (found == best && at <= written) continue;
    best = found;
    newest = entry.path().string();
    written = at;
  }
  return newest;
}

}  // namespace weft
