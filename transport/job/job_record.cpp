#include "transport/job/job_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "transport/blackbox/black_box.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/board/board.hpp"
#include "transport/job/crash_format.hpp"
#include "transport/job/job_memory.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kIncidentsBefore = 2;
/// The number of reserved bytes: enough for result.json without its history, and for the board of
/// some 100 workers.
constexpr off_t kRoomBytes = 256 << 10;

std::string room_in(const std::string& run_dir) { return run_dir + "/.room"; }

/// Calls take(offset, bytes) for the parts of the segment that aren't holes.
template <typename Take>
void read_pieces(const Segment& segment, const Take& take) {
  const int from = segment.descriptor();
  std::array<char, 1 << 16> buffer;
  const auto end = static_cast<off_t>(segment.capacity());
  for (off_t at = ::lseek(from, 0, SEEK_DATA); at >= 0 && at < end;) {
    const auto wanted = std::min<off_t>(static_cast<off_t>(buffer.size()), end - at);
    const ssize_t read = ::pread(from, buffer.data(), static_cast<std::size_t>(wanted), at);
    if (read <= 0) break;
    take(at, std::string_view(buffer.data(), static_cast<std::size_t>(read)));
    at = ::lseek(from, at + read, SEEK_DATA);
  }
}

/// Copies the segment to a file. Holes remain holes.
void copy_to(const Segment& segment, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  read_pieces(segment, [&](off_t at, std::string_view bytes) {
    file.seekp(at);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  });
  file.close();
  if (!file) fail(Errc::io, "can't write {}: {}", path, std::strerror(errno));
  fs::resize_file(path, segment.capacity());
}

void copy_if_there(const std::string& name, const std::string& path) {
  try {
    copy_to(Segment::open(name, true, 1), path);
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
}

std::string numbered(const std::string& folder, int number) {
  return number == 0 ? folder : fmt::format("{}-{}", folder, number);
}

/// Copies the memory to a folder that gets its name only when all copies are complete.
void keep_incident(std::string_view job, const std::string& run_dir) {
  const std::string folder = incident_in(run_dir);
  const std::string unfinished = folder + ".tmp";
  copy_memory(job, unfinished);
  fs::remove_all(numbered(folder, kIncidentsBefore));
  for (int number = kIncidentsBefore; number > 0; --number) {
    std::error_code none;
    fs::rename(numbered(folder, number - 1), numbered(folder, number), none);
  }
  fs::rename(unfinished, folder);
}

Json waits_of(const BlackBox& box, int chip) {
  const LedgerSums sums = sum_up(box.ledger(chip));
  return {{"chip", chip},
          {"collectives", sums.calls},
          {"times_last", sums.times_last},
          {"waited_s", static_cast<double>(sums.waited_ns) / 1e9}};
}

void write_summary(const Board& board, std::string_view job, const std::string& folder) {
  const BoardHeader& header = board.header();
  Json summary{{"schema", "weft.summary/1"}, {"job", header.job}, {"name", header.name}};
  std::uint64_t steps = 0;
  for (const ActorRow& row : board.readable_rows()) steps = std::max(steps, row.step);
  summary["step"] = steps;
  summary["workers"] = header.num_workers;
  summary["mesh"] = header.mesh_shape;
  summary["chips"] = Json::array();
  const BlackBox box = BlackBox::open(job);
  for (const RingId ring : box.rings()) {
    if (ring.kind == RingKind::chip) summary["chips"].push_back(waits_of(box, ring.owner));
  }
  const std::string path = folder + "/summary.json";
  std::ofstream file(path);
  file << summary.dump(2) << '\n';
  if (!file.flush()) fail(Errc::io, "can't write {}", path);
}

}  // namespace

std::string record_folder(const std::string& run_dir, int host) {
  return host == 0 ? run_dir : fmt::format("{}/host-{}", run_dir, host);
}

std::string incident_in(const std::string& run_dir) { return run_dir + "/blackbox"; }
std::string crash_file(const std::string& run_dir, int worker) {
  return fmt::format("{}/crash-worker-{}", run_dir, worker);
}

void reserve_room(const std::string& run_dir) noexcept {
  const int file = ::open(room_in(run_dir).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  (void)::fallocate(file, 0, 0, kRoomBytes);
  ::close(file);
}

void free_room(const std::string& run_dir) noexcept { ::unlink(room_in(run_dir).c_str()); }

std::string hang_in(const std::string& run_dir) { return run_dir + "/hang"; }

std::vector<MemoryPiece> pieces_of(const Segment& segment) {
  std::vector<MemoryPiece> pieces;
  read_pieces(segment, [&](off_t at, std::string_view bytes) {
    const auto offset = static_cast<std::size_t>(at);
    const bool continues =
        !pieces.empty() && pieces.back().offset + pieces.back().bytes.size() == offset;
    if (!continues) pieces.push_back({.offset = offset, .bytes = {}});
    pieces.back().bytes += bytes;
  });
  return pieces;
}

void copy_memory(std::string_view job, const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directory(folder, error);
  if (!error) fs::permissions(folder, fs::perms::owner_all, error);
  if (error) fail(Errc::io, "can't make {}: {}", folder, error.message());
  copy_if_there(Board::segment_name(job), folder + "/board.bin");
  copy_if_there(BlackBoxWriter::segment_name(job), folder + "/box.bin");
  copy_if_there(control_segment_name(job), folder + "/control.bin");
}

void keep_record(std::string_view job) noexcept {
  try {
    const Board board = Board::open(job, true);
    const BoardHeader& header = board.header();
    if (!header.run_dir.starts_with('/') || !fs::is_directory(header.run_dir)) return;
    const std::string folder = record_folder(header.run_dir, header.host);
    fs::create_directory(folder);
    if (header.host == 0) free_room(folder);
    if (board.status() == JobStatus::succeeded) {
      fs::remove_all(hang_in(folder));
      write_summary(board, job, folder);
      if (BlackBox::open(job).level() != TraceLevel::full) return;
    }
    keep_incident(job, folder);
  } catch (...) {
  }
}

}  // namespace weft
