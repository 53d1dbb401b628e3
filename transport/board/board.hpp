#pragma once
/// The board: one row per actor of a job in shared memory. Other processes can read it, even after
/// the job has died.
///
/// Invariants:
/// 1. A row has one writer at a time: the thread that holds its BoardWriter. There are two
///    exceptions at the end. The trainer writes the row of a worker whose process is gone. The
///    thread of a failed check writes the row of its worker, which aborts. Two parts of a row have
///    other writers: senders count the messages that arrived, and the actor's thread counts the
///    rest; and the thread that is inside foreign code writes what it is inside of.
/// 2. A row is guarded by a sequence word, which is odd while the row is written. Readers copy the
///    row and retry, a bounded number of times. If the writer died during a write, the row is
///    returned as it is, marked `torn`.
/// 3. The header is written before the magic number. Afterwards only `status` changes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weft/sharding/mesh.hpp>

#include "transport/board/actor_row.hpp"
#include "transport/memory/life_lock.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

struct BoardHeader {
  std::string job = {};
  std::string name = {};
  std::string run_dir = {};
  std::vector<std::int64_t> mesh_shape = {};  ///< empty: no mesh
  std::vector<std::string> axis_names = {};
  std::vector<int> device_ids = {};  ///< by position in the mesh; empty: 0, 1, 2, ...
  int num_workers = 1;  ///< rows for workers; also 1 if the worker is the trainer's own process
  int num_chips = 0;
  int trainer_pid = 0;
  std::int64_t started_unix_ns = 0;
  /// The time namespace of the process that made the board; 0: unknown. Times of another namespace
  /// differ from the board's by a constant.
  std::uint64_t time_namespace = 0;
  std::int64_t boottime_minus_realtime_ns = 0;
};

/// Writes one row. Every function is wait-free and may be called a million times a second. Text is
/// cut to fit: 95 bytes of a name or a place, 31 of a message, 255 of an error.
class BoardWriter {
 public:
  BoardWriter() = default;  ///< makes a writer that writes nothing
  explicit BoardWriter(void* row) : row_(row) {}

  void open(ActorKind kind, int worker, int chip, int pid) const;
  /// Sets the gettid() of the thread that drives the actor. The default is the thread that opened
  /// the row.
  void thread(int tid) const;
  void state(ActorState state) const;
  ActorState state() const;  ///< the state that the row shows
  void step(std::uint64_t step) const;
  void source(std::string_view place) const;
  void message_came() const;  ///< any thread may call it
  void message_begun(std::string_view name) const;
  void message_begun() const;  ///< one with the same name as the last
  void message_done() const;
  void error(std::string_view text) const;
  /// Sets no time stamp, because every collective calls it on its fast path.
  void enter_collective(std::uint64_t number, std::string_view name) const;
  /// Keeps the name that the row already shows.
  void enter_collective_again(std::uint64_t number) const;
  /// Sets the state `waiting`, until leave_collective() sets `running` again.
  void waiting_for(int chip) const;
  void leave_collective() const;
  /// The trainer or a loop has called foreign code that may not return. `number` is that of an
  /// item, or -1. Only one thread may call it, which needn't be the row's writer.
  void enter_inside(std::string_view name, std::int64_t number, int tid,
                    std::int64_t since_ns) const;
  void leave_inside() const;

 private:
  void* row_ = nullptr;
};

class Board {
 public:
  /// Returns "weft-<job>-board".
  static std::string segment_name(std::string_view job);
  /// Returns the jobs of this user that have a board.
  static std::vector<std::string> jobs();

  /// Returns whether the process that made the job's board is alive, by its lock. Throws the errors
  /// of open().
  static bool is_held(std::string_view job);

  /// Holds a lock on the board as long as it exists.
  static Board create(const BoardHeader& header);
  /// Throws not_found, version or corrupt. Every size and count is checked against the mapping.
  static Board open(std::string_view job, bool read_only);
  /// Opens a saved copy of a board. Throws the errors of open(), and io.
  static Board open_file(const std::string& path);
  static Board anonymous(const BoardHeader& header);

  /// Returns whether another process holds this board's lock. Throws io.
  bool is_held() const;

  const BoardHeader& header() const { return header_; }
  JobStatus status() const;
  void set_status(JobStatus status);

  int num_rows() const { return 1 + header_.num_workers + header_.num_chips; }
  BoardWriter trainer() const { return writer(0); }
  BoardWriter worker(int worker) const;
  BoardWriter device(int chip) const;
  /// Throws corrupt for values that no writer of the row can have written.
  ActorRow read(int index) const;
  /// Returns all rows except those that read() refuses, so that one worker's corrupt row hides no
  /// other row. `refused` receives the reason for each refused row.
  std::vector<ActorRow> readable_rows(std::vector<std::string>* refused = nullptr) const;

 private:
  Board(Segment segment, BoardHeader header);
  void* row(int index) const;
  BoardWriter writer(int index) const;
  bool is_own(const ActorRow& row) const;

  Segment segment_;
  BoardHeader header_;
  std::optional<LifeLock> life_;  ///< held by the process that made the board
};

}  // namespace weft
