#pragma once
/// The board: one row per actor of a job in shared memory, readable from outside, alive or dead.
///
/// Invariants:
/// 1. A row has one writer at a time: the thread that holds its BoardWriter. Two others write at
///    the end: the trainer the row of a worker whose process is gone, and the thread of a failed
///    check the row of its worker, which aborts.
/// 2. A row is guarded by a sequence word: odd while it is written. Readers copy and retry, a
///    bounded number of times; a row whose writer died inside a write is returned as it stands,
///    marked `torn`.
/// 3. The header is written before the magic number, and but for `status` never again.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/mesh.hpp>

#include "transport/memory/life_lock.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

enum class ActorKind : std::uint8_t { trainer = 0, worker = 1, device = 2 };
enum class ActorState : std::uint8_t {
  absent = 0,
  starting = 1,
  joining = 2,
  idle = 3,
  compiling = 4,
  running = 5,
  waiting = 6,  ///< in a collective, for another chip
  ended = 7,
  failed = 8,
  lost = 9,      ///< its process is gone; written by the trainer
  saving = 10,   ///< its loop waits for a checkpoint to be written
  loading = 11,  ///< its loop waits for a batch of a DeviceLoader
};
enum class JobStatus : std::uint8_t { starting = 0, running = 1, succeeded = 2, failed = 3 };

std::string_view to_string(ActorKind kind) noexcept;
std::string_view to_string(ActorState state) noexcept;
std::string_view to_string(JobStatus status) noexcept;

/// A copy of one actor's row.
struct ActorRow {
  int index = 0;  ///< row: 0 the trainer, then the workers, then the devices
  ActorKind kind = ActorKind::trainer;
  ActorState state = ActorState::absent;
  int worker = -1;
  int chip = -1;
  int pid = 0;
  std::uint64_t step = 0;
  std::uint64_t mailbox = 0;  ///< messages waiting, at the last update
  std::string last_message;
  std::string last_error;
  std::uint64_t collective = 0;  ///< number of the last collective entered, 0: none
  std::string collective_name;   ///< "all_reduce 'fc1.weight.grad'"
  bool in_collective = false;
  int waiting_for = -1;         ///< a chip that hadn't arrived
  std::int64_t updated_ns = 0;  ///< CLOCK_BOOTTIME
  bool torn = false;
};

struct BoardHeader {
  std::string job = {};
  std::string name = {};
  std::string run_dir = {};
  std::vector<std::int64_t> mesh_shape = {};  ///< empty: no mesh
  std::vector<std::string> axis_names = {};
  int num_workers = 1;  ///< rows for workers; 1 also where the worker is the trainer's own process
  int num_chips = 0;
  int trainer_pid = 0;
  std::int64_t started_unix_ns = 0;
};

/// Writes one row. Every function is wait-free and may be called a million times a second.
/// Text is cut to fit: 95 bytes of a name, 255 of an error.
class BoardWriter {
 public:
  BoardWriter() = default;  ///< writes nothing
  explicit BoardWriter(void* row) : row_(row) {}

  void open(ActorKind kind, int worker, int chip, int pid) const;
  void state(ActorState state) const;
  void step(std::uint64_t step) const;
  void message(std::string_view name, std::uint64_t mailbox) const;
  void error(std::string_view text) const;
  /// Sets no time stamp, because it is on the fast path of every collective.
  void enter_collective(std::uint64_t number, std::string_view name) const;
  /// Keeps the name that the row already shows.
  void enter_collective_again(std::uint64_t number) const;
  /// The state becomes `waiting`, until leave_collective() makes it `running` again.
  void waiting_for(int chip) const;
  void leave_collective() const;

 private:
  void* row_ = nullptr;
};

class Board {
 public:
  /// "weft-<job>-board".
  static std::string segment_name(std::string_view job);
  /// Jobs of this user that have a board.
  static std::vector<std::string> jobs();

  /// Whether the process that made the job's board is alive, by its lock. Throws as open().
  static bool is_held(std::string_view job);

  /// Holds a lock on the board as long as it exists.
  static Board create(const BoardHeader& header);
  /// Throws not_found, version or corrupt: every size and count is checked against the mapping.
  static Board open(std::string_view job, bool read_only);
  static Board anonymous(const BoardHeader& header);

  /// Locks this board, which another process made, in the same way. Throws io.
  bool is_held() const;

  const BoardHeader& header() const { return header_; }
  JobStatus status() const;
  void set_status(JobStatus status);

  int num_rows() const { return 1 + header_.num_workers + header_.num_chips; }
  BoardWriter trainer() const { return writer(0); }
  BoardWriter worker(int worker) const;
  BoardWriter device(int chip) const;
  /// Throws corrupt for values that no writer of that row writes.
  ActorRow read(int index) const;
  std::vector<ActorRow> rows() const;
  /// All rows except those that read() refuses, so that one worker's corrupt row hides no other.
  std::vector<ActorRow> readable_rows() const;

 private:
  Board(Segment segment, BoardHeader header);
  void* row(int index) const;
  BoardWriter writer(int index) const;
  bool is_own(const ActorRow& row) const;

  Segment segment_;
  BoardHeader header_;
  std::optional<LifeLock> life_;  ///< of the process that made it
};

}  // namespace weft
