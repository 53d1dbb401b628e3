#pragma once
/// The board: one row per actor of a job in shared memory, readable from outside, alive or dead.
///
/// Invariants:
/// 1. A row has one writer at a time: the thread that holds its BoardWriter. Two others write at
///    the end: the trainer the row of a worker whose process is gone, and the thread of a failed
///    check the row of its worker, which aborts.
///    The counts of messages are apart from this: whoever sends counts what came, the thread in
///    which the actor runs the rest. So is what an actor is inside of, which has a thread of its
///    own.
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
  std::vector<int> device_ids = {};  ///< by position of the mesh; empty: 0, 1, 2, ...
  int num_workers = 1;  ///< rows for workers; 1 also where the worker is the trainer's own process
  int num_chips = 0;
  int trainer_pid = 0;
  std::int64_t started_unix_ns = 0;
  /// The time namespace of the process that made the board; 0: not known. Times that are taken in
  /// another one differ by a constant.
  std::uint64_t time_namespace = 0;
  std::int64_t boottime_minus_realtime_ns = 0;
};

/// Writes one row. Every function is wait-free and may be called a million times a second.
/// Text is cut to fit: 95 bytes of a name or a place, 31 of a message, 255 of an error.
class BoardWriter {
 public:
  BoardWriter() = default;  ///< writes nothing
  explicit BoardWriter(void* row) : row_(row) {}

  void open(ActorKind kind, int worker, int chip, int pid) const;
  /// The thread that drives the actor, by gettid(); that which opened the row, unless this is told.
  void thread(int tid) const;
  void state(ActorState state) const;
  ActorState state() const;  ///< as it stands in the row
  void step(std::uint64_t step) const;
  void source(std::string_view place) const;
  void message_came() const;  ///< any thread
  void message_begun(std::string_view name) const;
  void message_begun() const;  ///< of the same name as the last
  void message_done() const;
  void error(std::string_view text) const;
  /// Sets no time stamp, because it is on the fast path of every collective.
  void enter_collective(std::uint64_t number, std::string_view name) const;
  /// Keeps the name that the row already shows.
  void enter_collective_again(std::uint64_t number) const;
  /// The state becomes `waiting`, until leave_collective() makes it `running` again.
  void waiting_for(int chip) const;
  void leave_collective() const;
  /// The trainer or a loop has called something that isn't weft's and may not return: `number` of
  /// an item, or -1. By one thread, which needn't be the row's writer.
  void enter_inside(std::string_view name, std::int64_t number, int tid,
                    std::int64_t since_ns) const;
  void leave_inside() const;

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
  /// A copy of a board that was saved. Throws as open(), and io.
  static Board open_file(const std::string& path);
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
  /// All rows except those that read() refuses, so that one worker's corrupt row hides no other.
  /// `refused` gets the reason for each of these.
  std::vector<ActorRow> readable_rows(std::vector<std::string>* refused = nullptr) const;

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
