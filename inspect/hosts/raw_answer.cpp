#include "inspect/hosts/raw_answer.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#include <weft/tensor/error.hpp>

#include "inspect/snapshot/process_file.hpp"
#include "transport/blackbox/black_box_writer.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/blackbox/box_format.hpp"
#include "transport/job/job_memory.hpp"
#include "transport/job/job_record.hpp"

namespace weft {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SnapshotParts, control, processes, events, steps, waits, metrics)

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kSchema = "weft.raw/1";
constexpr std::size_t kHeadBytesMax = std::size_t{4} << 20;
/// No file is larger than the box of the largest job.
constexpr std::size_t kFileBytesMax =
    box_format::box_bytes(box_format::kWorkerCountMax, box_format::kChipCountMax);
constexpr std::string_view kFiles[] = {"board.bin", "control.bin", "box.bin", "processes.json"};

/// Adds a file's entry to the head, and its bytes to the body.
void add_file(Json& head, std::string& body, const char* name, std::size_t bytes,
              const std::vector<MemoryPiece>& pieces) {
  Json file{{"name", name}, {"bytes", bytes}, {"pieces", Json::array()}};
  for (const MemoryPiece& piece : pieces) {
    file["pieces"].push_back({piece.offset, piece.bytes.size()});
    body += piece.bytes;
  }
  head["files"].push_back(std::move(file));
}

void add_segment(Json& head, std::string& body, const char* name, const std::string& segment) {
  try {
    const Segment memory = Segment::open(segment, true, 1);
    add_file(head, body, name, memory.capacity(), pieces_of(memory));
  } catch (const Error& error) {
    if (error.code() != Errc::not_found) throw;
  }
}

/// Returns the line of an answer's head.
std::string head_line(const Json& head) {
  return head.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string answer_about(const std::string& memory_id, const RawRequest& request) {
  SnapshotParts parts = request.parts;
  const bool wants_box = parts.events || parts.steps || parts.waits;
  parts.events = parts.steps = parts.waits = parts.metrics = false;
  Snapshot job = SnapshotReader::of_job(memory_id).read(parts);
  std::vector<HostPid> wanted;
  for (const int pid : request.sights) wanted.push_back({job.header.host, pid});
  add_sights(job, wanted);
  Json head{{"schema", kSchema}, {"held", job.held}, {"files", Json::array()}};
  std::string body;
  add_segment(head, body, "board.bin", Board::segment_name(memory_id));
  if (parts.control) add_segment(head, body, "control.bin", control_segment_name(memory_id));
  if (wants_box) add_segment(head, body, "box.bin", BlackBoxWriter::segment_name(memory_id));
  const std::string processes = processes_text(job);
  add_file(head, body, "processes.json", processes.size(), {{0, processes}});
  head["boottime_ns"] = clock_ns(CLOCK_BOOTTIME);
  head["monotonic_ns"] = clock_ns(CLOCK_MONOTONIC);
  return head_line(head) + body;
}

/// A private folder for the files of one answer. The destructor removes it.
class AnswerFolder {
 public:
  AnswerFolder() {
    if (::mkdtemp(path_.data()) == nullptr) {
      fail(Errc::io, "can't make {}: {}", path_, std::strerror(errno));
    }
  }
  ~AnswerFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  AnswerFolder(const AnswerFolder&) = delete;
  AnswerFolder& operator=(const AnswerFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = fs::temp_directory_path() / "weft-raw-XXXXXX";
};

struct PieceRange {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

struct RawFile {
  std::string name;
  std::size_t bytes = 0;
  std::vector<PieceRange> pieces;
};

/// Returns the file that the head describes. Checks all numbers first.
RawFile to_file(const Json& json) {
  RawFile file{.name = json.at("name"), .bytes = json.at("bytes"), .pieces = {}};
  if (std::ranges::count(kFiles, file.name) == 0 || file.bytes > kFileBytesMax) {
    fail(Errc::corrupt, "file \"{}\" of {} bytes: expected a known name and at most {} bytes",
         file.name, file.bytes, kFileBytesMax);
  }
  std::size_t end = 0;
  for (const Json& piece : json.at("pieces")) {
    const PieceRange range{piece.at(0).get<std::size_t>(), piece.at(1).get<std::size_t>()};
    if (range.offset < end || range.offset > file.bytes ||
        range.bytes > file.bytes - range.offset) {
      fail(Errc::corrupt, "{} of {} bytes has a piece of {} bytes at {}: expected pieces in order",
           file.name, file.bytes, range.bytes, range.offset);
    }
    end = range.offset + range.bytes;
    file.pieces.push_back(range);
  }
  return file;
}

void write_file(const RawFile& raw, std::string_view body, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const PieceRange& piece : raw.pieces) {
    file.seekp(static_cast<std::streamoff>(piece.offset));
    file.write(body.data(), static_cast<std::streamsize>(piece.bytes));
    body.remove_prefix(piece.bytes);
  }
  file.close();
  if (!file) fail(Errc::io, "can't write {}: {}", path, std::strerror(errno));
  fs::resize_file(path, raw.bytes);
}

std::size_t body_bytes(const RawFile& file) {
  std::size_t sum = 0;
  for (const PieceRange& piece : file.pieces) sum += piece.bytes;
  return sum;
}

/// Returns the files of an answer. If the answer is an error, throws it.
std::vector<RawFile> files_of(const Json& head) {
  if (head.at("schema") != kSchema) {
    fail(Errc::version,
         "the answer has the schema {}, expected {}: install the same version of "
         "weft on all hosts",
         head.at("schema").dump(), kSchema);
  }
  if (head.contains("error")) fail(Errc::unavailable, "{}", head["error"].get<std::string>());
  std::vector<RawFile> files;
  for (const Json& file : head.at("files")) files.push_back(to_file(file));
  if (files.size() > std::size(kFiles)) fail(Errc::corrupt, "the answer has too many files");
  return files;
}

}  // namespace

std::string to_line(const RawRequest& request) {
  return head_line({{"parts", request.parts}, {"sights", request.sights}});
}

RawRequest parse_raw_request(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    return {.parts = json.at("parts"), .sights = json.at("sights")};
  } catch (const nlohmann::json::exception& e) {
    fail(Errc::corrupt, "stdin has a line that isn't a request of weft inspect: {}", e.what());
  }
}

std::string raw_answer(const std::string& memory_id, const RawRequest& request) {
  try {
    return answer_about(memory_id, request);
  } catch (const std::exception& e) {
    return head_line({{"schema", kSchema}, {"error", e.what()}});
  }
}

std::optional<RawAnswer> take_raw_answer(std::string& bytes, const SnapshotParts& parts) {
  const std::size_t line_end = bytes.find('\n');
  if (line_end == std::string::npos) {
    if (bytes.size() <= kHeadBytesMax) return {};
    fail(Errc::corrupt, "the answer has no head within {} bytes", kHeadBytesMax);
  }
  try {
    const Json head =
        Json::parse(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(line_end));
    const std::vector<RawFile> files = files_of(head);
    std::size_t end = line_end + 1;
    for (const RawFile& file : files) end += body_bytes(file);
    if (bytes.size() < end) return {};
    const AnswerFolder folder;
    std::string_view body = std::string_view(bytes).substr(line_end + 1);
    for (const RawFile& file : files) {
      write_file(file, body, folder.path() + "/" + file.name);
      body.remove_prefix(body_bytes(file));
    }
    RawAnswer answer{.job = SnapshotReader::read_copies(folder.path(), parts),
                     .boottime_ns = head.at("boottime_ns"),
                     .monotonic_ns = head.at("monotonic_ns")};
    answer.job.held = head.at("held");
    bytes.erase(0, end);
    return answer;
  } catch (const nlohmann::json::exception& e) {
    fail(Errc::corrupt, "the answer isn't one of weft inspect --raw: {}", e.what());
  }
}

}  // namespace weft
