#pragma once
/// The board: shared memory with one row per actor of a job. Other processes can read the board
/// even after the job has died.
///
/// Invariants:
/// 1. A row has one writer at a time: the thread that has its BoardWriter. There are two exceptions
///    when a job ends. The trainer writes the row of a worker whose process is gone. A thread whose
///    check failed writes its worker's row before it aborts. Two parts of a row have further
///    writers. Threads that send messages count the messages that arrive; the actor's thread writes
///    the other counts. The thread that is in a foreign call writes the fields of that call.
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
  std::vector<std::int64_t> dcn_shape = {};  ///< hosts per axis of the mesh; empty: one host
  std::vector<int> device_ids = {};          ///< ids by position in the mesh; empty: 0, 1, 2, ...
  int num_workers = 1;  ///< number of workers' rows; 1 if the trainer's process is the worker
  int num_chips = 0;
  int trainer_pid = 0;
  std::int64_t started_unix_ns = 0;
  /// The time namespace of the process that made the board; 0: unknown. The times of two namespaces
  /// differ by a constant.
  std::uint64_t time_namespace = 0;
  std::int64_t boottime_minus_realtime_ns = 0;
  int host = 0;  ///< the host that writes the board; rows of other hosts are copies
  int num_hosts = 1;

  /// Returns the host that runs the worker. The trainer (-1) is on host 0.
  int host_of(int worker) const {
    const int workers_per_host = num_workers / num_hosts;
    return worker < 0 || workers_per_host == 0 ? 0 : worker / workers_per_host;
  }
};

/// Writes one row. All functions are wait-free and may be called a million times a second. They cut
/// text to fit: names and places to 95 bytes, messages to 31, errors to 255.
class BoardWriter {
 public:
  BoardWriter() = default;  ///< makes a writer that writes nothing
  explicit BoardWriter(void* row) : row_(row) {}

  void open(ActorKind kind, int worker, int chip, int pid) const;
  /// Sets the thread id (gettid()) of the thread that drives the actor. By default this is the
  /// thread that opened the row.
  void thread(int tid) const;
  void state(ActorState state) const;
  ActorState state() const;  ///< the state that the row shows
  void step(std::uint64_t step) const;
  void source(std::string_view place) const;
  void message_came() const;  ///< a message arrived; any thread may call this
  void message_begun(std::string_view name) const;
  void message_begun() const;  ///< the message has the same name as the previous one
  void message_done() const;
  void error(std::string_view text) const;
  /// Records that the chip enters a collective. Sets no time stamp, because it must be fast.
  void enter_collective(std::uint64_t number, std::string_view name) const;
  /// Records that the chip enters another collective of the same name as the last one.
  void enter_collective_again(std::uint64_t number) const;
  /// Sets the state to `waiting`. leave_collective() sets it back to `running`.
  void waiting_for(int chip) const;
  void leave_collective() const;
  /// enter_inside() records that the trainer or a loop calls foreign code that may not return.
  /// `number` is the number of an item, or -1. Only one thread may call these two functions; it
  /// needn't be the row's writer.
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

  /// Returns whether the process that made the job's board is alive: it then holds a lock on the
  /// board. Throws the errors of open().
  static bool is_held(std::string_view job);

  /// Creates the job's board. The returned object holds the board's lock during its lifetime.
  static Board create(const BoardHeader& header);
  /// Opens the job's board, and checks every size and count against the mapping. Throws not_found,
  /// version or corrupt.
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
  /// Returns a copy of the row. Throws corrupt for values that no writer can have written.
  ActorRow read(int index) const;
  /// Returns the bytes of a row, for copy_row() of another board; "" if the row's writer writes too
  /// often.
  std::string bytes_of_row(int index) const;
  /// Copies a row from another host's board, and adds `shift_ns` to its times. An actor of that
  /// host must not write to this board. Throws corrupt as read() does.
  void copy_row(int index, std::string_view bytes, std::int64_t shift_ns) const;
  /// Returns all rows except those for which read() throws corrupt, so that a corrupt row hides no
  /// other row. `refused` gets each error's text.
  std::vector<ActorRow> readable_rows(std::vector<std::string>* refused = nullptr) const;

 private:
  Board(Segment segment, BoardHeader header);
  void* row(int index) const;
  BoardWriter writer(int index) const;
  bool is_own(const ActorRow& row) const;
  ActorRow require_own(int index, ActorRow copy) const;

  Segment segment_;
  BoardHeader header_;
  std::optional<LifeLock> life_;  ///< held by the process that made the board
};

}  // namespace weft
