#include "transport/board/board.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <weft/tensor/error.hpp>

#include "data/files/file_bytes.hpp"
#include "transport/board/board_format.hpp"
#include "transport/board/board_row.hpp"

namespace weft {
namespace {

using board_format::BoardHeaderV1;
using board_format::BoardRowV2;
using board_format::kAxisCountMax;
using board_format::kLifeByte;
using board_format::kRowCountMax;

constexpr std::string_view kPrefix = "weft-";
constexpr std::string_view kSuffix = "-board";

template <std::size_t N>
void set_text(char (&field)[N], std::string_view text) {
  text = cut_text(text, N - 1);
  std::memcpy(field, text.data(), text.size());
}
template <std::size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

std::size_t board_bytes(int num_workers, int num_chips) {
  return sizeof(BoardHeaderV1) +
         sizeof(BoardRowV2) * (std::size_t{1} + static_cast<std::size_t>(num_workers) +
                               static_cast<std::size_t>(num_chips));
}

/// Returns whether `host` is one of the hosts, and the workers can be divided evenly among the
/// hosts.
bool hosts_ok(std::int64_t host, std::int64_t num_hosts, std::int64_t num_workers) {
  return num_hosts >= 1 && host >= 0 && host < num_hosts && num_workers % num_hosts == 0;
}

bool counts_ok(std::int64_t num_workers, std::int64_t num_chips) {
  return num_workers >= 0 && num_chips >= 0 && num_workers < kRowCountMax &&
         num_chips < kRowCountMax;
}

/// Throws unless the text fits. A text that names something, such as a folder, must not be cut.
void require_fits(std::string_view job, std::string_view field, std::string_view text,
                  std::size_t bytes_max, std::string_view fix) {
  if (text.size() <= bytes_max) return;
  fail(Errc::invalid_argument, "board of job {}: {} has {} bytes, expected at most {}: {}", job,
       field, text.size(), bytes_max, fix);
}

void require_valid(const BoardHeader& header) {
  if (!counts_ok(header.num_workers, header.num_chips)) {
    fail(Errc::invalid_argument,
         "board of job {}: {} workers and {} chips, expected 0 to {} of each", header.job,
         header.num_workers, header.num_chips, kRowCountMax - 1);
  }
  if (!hosts_ok(header.host, header.num_hosts, header.num_workers)) {
    fail(Errc::invalid_argument,
         "board of job {}: host {} of {} with {} workers, expected a host from 0 to {}, and a "
         "number of workers that the number of hosts divides",
         header.job, header.host, header.num_hosts, header.num_workers, header.num_hosts - 1);
  }
  if (header.mesh_shape.size() != header.axis_names.size() ||
      header.mesh_shape.size() > kAxisCountMax) {
    fail(Errc::invalid_argument,
         "board of job {}: {} axis sizes and {} axis names, expected the same number of both "
         "and at most {}",
         header.job, header.mesh_shape.size(), header.axis_names.size(), kAxisCountMax);
  }
  if (!header.dcn_shape.empty() && header.dcn_shape.size() != header.mesh_shape.size()) {
    fail(Errc::invalid_argument,
         "board of job {}: hosts are given for {} axes, but the mesh has {}: expected one number "
         "for each axis, or none",
         header.job, header.dcn_shape.size(), header.mesh_shape.size());
  }
  if (header.device_ids.size() > board_format::kDeviceIdCountMax) {
    fail(Errc::invalid_argument, "board of job {}: {} device ids, expected at most {}", header.job,
         header.device_ids.size(), board_format::kDeviceIdCountMax);
  }
  require_fits(header.job, "name", header.name, sizeof(BoardHeaderV1::name) - 1,
               "give a shorter run.name");
  require_fits(header.job, "run_dir", header.run_dir, sizeof(BoardHeaderV1::run_dir) - 1,
               "give a shorter run.storage_path");
}

/// Fills a segment of board_bytes() bytes. Writes the magic number last, since other processes read
/// the segment only after that.
void write_board(Segment& segment, const BoardHeader& header) {
  segment.reserve(0, segment.capacity());
  auto& format = *reinterpret_cast<BoardHeaderV1*>(segment.data());
  format.version = board_format::kVersion;
  format.header_bytes = sizeof(BoardHeaderV1);
  format.row_bytes = sizeof(BoardRowV2);
  format.num_workers = header.num_workers;
  format.num_chips = header.num_chips;
  format.trainer_pid = header.trainer_pid;
  format.started_unix_ns = header.started_unix_ns;
  format.time_namespace = header.time_namespace;
  format.boottime_minus_realtime_ns = header.boottime_minus_realtime_ns;
  format.host = header.host;
  format.num_hosts = header.num_hosts == 1 ? 0 : header.num_hosts;
  format.num_axes = static_cast<std::int32_t>(header.mesh_shape.size());
  for (std::size_t i = 0; i < header.mesh_shape.size(); ++i) {
    format.mesh_shape[i] = header.mesh_shape[i];
    set_text(format.axis_names[i], header.axis_names[i]);
  }
  for (std::size_t i = 0; i < header.device_ids.size(); ++i) {
    format.device_ids[i] = static_cast<std::uint16_t>(header.device_ids[i]);
  }
  for (std::size_t i = 0; i < header.dcn_shape.size(); ++i) {
    format.dcn_shape[i] = static_cast<std::uint32_t>(header.dcn_shape[i]);
  }
  set_text(format.job, header.job);
  set_text(format.name, header.name);
  set_text(format.run_dir, header.run_dir);

  auto* row = reinterpret_cast<BoardRowV2*>(segment.data() + sizeof(BoardHeaderV1));
  init_row(*row++, ActorKind::trainer, -1, -1);
  for (int i = 0; i < header.num_workers; ++i) init_row(*row++, ActorKind::worker, i, -1);
  for (int i = 0; i < header.num_chips; ++i) init_row(*row++, ActorKind::device, -1, i);
  store_field(format.magic, board_format::kMagic);
}

/// Reads the header and checks every size and count against the mapping. Loads each of them only
/// once, because another process could change it after the check.
BoardHeader read_header(const Segment& segment) {
  const auto& format = *reinterpret_cast<const BoardHeaderV1*>(segment.data());
  const std::uint64_t magic = load_field(format.magic);
  if (magic == 0) fail(Errc::not_found, "segment {} is still being made", segment.name());
  if (magic != board_format::kMagic) {
    fail(Errc::corrupt, "segment {} isn't a board: its first word is {:#x}", segment.name(), magic);
  }
  if (format.version != board_format::kVersion) {
    fail(Errc::version,
         "segment {}: board of version {}, this program reads version {}: use the weft with which "
         "the job was started",
         segment.name(), format.version, board_format::kVersion);
  }
  const std::int32_t num_workers = load_field(format.num_workers);
  const std::int32_t num_chips = load_field(format.num_chips);
  const std::int32_t num_axes = load_field(format.num_axes);
  const std::int32_t host = load_field(format.host);
  const std::int32_t num_hosts = std::max(load_field(format.num_hosts), 1);
  if (format.header_bytes != sizeof(BoardHeaderV1) || format.row_bytes != sizeof(BoardRowV2) ||
      !counts_ok(num_workers, num_chips) || !hosts_ok(host, num_hosts, num_workers) ||
      num_axes < 0 || num_axes > kAxisCountMax ||
      board_bytes(num_workers, num_chips) > segment.capacity()) {
    fail(Errc::corrupt,
         "segment {} of {} bytes: header of {} bytes, rows of {} bytes, {} workers on {} hosts "
         "(this is host {}), {} chips, {} axes don't fit together",
         segment.name(), segment.capacity(), format.header_bytes, format.row_bytes, num_workers,
         num_hosts, host, num_chips, num_axes);
  }
  BoardHeader header;
  header.job = text_of(format.job);
  header.name = text_of(format.name);
  header.run_dir = text_of(format.run_dir);
  header.num_workers = num_workers;
  header.num_chips = num_chips;
  header.host = host;
  header.num_hosts = num_hosts;
  header.trainer_pid = format.trainer_pid;
  header.started_unix_ns = format.started_unix_ns;
  header.time_namespace = format.time_namespace;
  header.boottime_minus_realtime_ns = format.boottime_minus_realtime_ns;
  for (int i = 0; i < num_axes; ++i) {
    header.mesh_shape.push_back(format.mesh_shape[i]);
    header.axis_names.push_back(text_of(format.axis_names[i]));
    header.dcn_shape.push_back(format.dcn_shape[i]);
  }
  // The shape is zeros if the job is on one host, or if the board was written before this field
  // existed.
  if (std::ranges::count(header.dcn_shape, 0) != 0) header.dcn_shape.clear();
  for (int i = 0; i < std::min(num_chips, board_format::kDeviceIdCountMax); ++i) {
    header.device_ids.push_back(format.device_ids[i]);
  }
  // Exactly one chip has id 0. If not, the ids are missing: the job has no mesh, or the board was
  // written before this field existed.
  if (std::ranges::count(header.device_ids, 0) != 1) header.device_ids.clear();
  return header;
}

}  // namespace

Board::Board(Segment segment, BoardHeader header)
    : segment_(std::move(segment)), header_(std::move(header)) {}

Board Board::create(const BoardHeader& header) {
  require_valid(header);
  const std::string name = segment_name(header.job);
  Segment segment = Segment::create(name, board_bytes(header.num_workers, header.num_chips));
  try {
    auto life = LifeLock::take(segment, kLifeByte);
    write_board(segment, header);
    Board board(std::move(segment), header);
    board.life_ = std::move(life);
    return board;
  } catch (...) {
    Segment::remove(name);
    throw;
  }
}

bool Board::is_held(std::string_view job) {
  return LifeLock::is_held(Segment::open(segment_name(job), true, 1), kLifeByte);
}

bool Board::is_held() const { return LifeLock::is_held(segment_, kLifeByte); }

Board Board::open(std::string_view job, bool read_only) {
  Segment segment = Segment::open(segment_name(job), read_only, sizeof(BoardHeaderV1));
  BoardHeader header = read_header(segment);
  return Board(std::move(segment), std::move(header));
}

Board Board::open_file(const std::string& path) {
  constexpr std::size_t kBytesMax = std::size_t{128} << 20;  // twice the largest board
  const std::vector<std::byte> bytes = read_file_bytes(path, kBytesMax);
  if (bytes.size() < sizeof(BoardHeaderV1)) {
    fail(Errc::corrupt, "board {} has {} bytes, but its header alone needs {}", path, bytes.size(),
         sizeof(BoardHeaderV1));
  }
  Segment segment = Segment::anonymous(bytes.size());
  std::ranges::copy(bytes, segment.data());
  BoardHeader header = read_header(segment);
  return Board(std::move(segment), std::move(header));
}

Board Board::anonymous(const BoardHeader& header) {
  require_valid(header);
  Segment segment = Segment::anonymous(board_bytes(header.num_workers, header.num_chips));
  write_board(segment, header);
  return Board(std::move(segment), header);
}

std::string Board::segment_name(std::string_view job) {
  return fmt::format("{}{}{}", kPrefix, job, kSuffix);
}

std::vector<std::string> Board::jobs() {
  std::vector<std::string> jobs;
  for (const std::string& name : Segment::list(kPrefix)) {
    const bool channel = name.find("-channel-") != std::string::npos;  // its name may be "board"
    if (!channel && name.ends_with(kSuffix) && name.size() > kPrefix.size() + kSuffix.size()) {
      jobs.push_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()));
    }
  }
  return jobs;
}

JobStatus Board::status() const {
  const auto& format = *reinterpret_cast<const BoardHeaderV1*>(segment_.data());
  const std::uint64_t status = load_field(format.status);
  if (status > static_cast<std::uint64_t>(JobStatus::cancelled)) {
    fail(Errc::corrupt, "board of job {}: status is {}", header_.job, status);
  }
  return static_cast<JobStatus>(status);
}

void Board::set_status(JobStatus status) {
  if (segment_.read_only()) {
    fail(Errc::invalid_argument, "board of job {} was opened read-only", header_.job);
  }
  auto& format = *reinterpret_cast<BoardHeaderV1*>(segment_.data());
  store_field(format.status, static_cast<std::uint64_t>(status));
}

BoardWriter Board::worker(int worker) const {
  if (worker < 0 || worker >= header_.num_workers) {
    fail(Errc::invalid_argument, "board: worker = {}, but there are {} workers", worker,
         header_.num_workers);
  }
  return writer(1 + worker);
}

BoardWriter Board::device(int chip) const {
  if (chip < 0 || chip >= header_.num_chips) {
    fail(Errc::invalid_argument, "board: chip = {}, but there are {} chips", chip,
         header_.num_chips);
  }
  return writer(1 + header_.num_workers + chip);
}

BoardWriter Board::writer(int index) const {
  if (segment_.read_only()) {
    fail(Errc::invalid_argument, "board of job {} was opened read-only", header_.job);
  }
  return BoardWriter(row(index));
}

void* Board::row(int index) const {
  return segment_.data() + sizeof(BoardHeaderV1) +
         static_cast<std::size_t>(index) * sizeof(BoardRowV2);
}

bool Board::is_own(const ActorRow& row) const {
  const int worker = row.index - 1;
  const int chip = worker - header_.num_workers;
  if (row.waiting_for < -1 || row.waiting_for >= header_.num_chips) return false;
  if (worker < 0) return row.kind == ActorKind::trainer && row.worker == -1 && row.chip == -1;
  if (chip < 0) return row.kind == ActorKind::worker && row.worker == worker && row.chip == -1;
  return row.kind == ActorKind::device && row.chip == chip && row.worker >= -1 &&
         row.worker < header_.num_workers;
}

ActorRow Board::read(int index) const {
  if (index < 0 || index >= num_rows()) {
    fail(Errc::invalid_argument, "board: row = {}, but there are {} rows", index, num_rows());
  }
  return require_own(index, read_row(*static_cast<const BoardRowV2*>(row(index))));
}

/// Returns the row with its number set. Throws corrupt if no writer can have written it as that
/// row.
ActorRow Board::require_own(int index, ActorRow copy) const {
  copy.index = index;
  if (copy.state > kActorStateMax || !is_own(copy)) {
    fail(Errc::corrupt,
         "board of job {}: row {} is of kind {}, worker {}, chip {}, in state {}, waits for "
         "chip {}: a board of {} workers and {} chips can't have such a row there",
         header_.job, index, static_cast<int>(copy.kind), copy.worker, copy.chip,
         static_cast<int>(copy.state), copy.waiting_for, header_.num_workers, header_.num_chips);
  }
  return copy;
}

std::vector<ActorRow> Board::readable_rows(std::vector<std::string>* refused) const {
  std::vector<ActorRow> rows;
  for (int i = 0; i < num_rows(); ++i) {
    try {
      rows.push_back(read(i));
    } catch (const Error& e) {
      if (refused != nullptr) refused->emplace_back(e.what());
    }
  }
  return rows;
}

}  // namespace weft
