#include "transport/board/board_row.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include "data/files/utf8.hpp"
#include "transport/memory/namespaces.hpp"

namespace weft {
namespace {

using board_format::BoardRowV2;

/// Returns whether a loop in this state counts as running the program's own code. A loop that only
/// reports counts too, because it makes no progress although its state changes.
bool is_own_code(ActorState state) {
  return state == ActorState::user_code || state == ActorState::reporting;
}

std::uint64_t own_pid_namespace() {
  static const std::uint64_t number = namespace_of_this_process("pid");
  return number;
}

template <std::size_t N>
void put_text(std::uint64_t (&words)[N], std::string_view text) {
  const auto packed = pack_text<N>(text);
  for (std::size_t i = 0; i < N; ++i) store_field(words[i], packed[i]);
}
template <std::size_t N>
std::string get_text(const std::uint64_t (&words)[N]) {
  std::array<std::uint64_t, N> packed;
  for (std::size_t i = 0; i < N; ++i) packed[i] = load_field(words[i]);
  return as_utf8(unpack_text(packed));
}

/// Makes the row's sequence number odd during its lifetime. If a writer died and left the number
/// odd, the next edit starts from that odd number.
class RowEdit {
 public:
  explicit RowEdit(void* row) : row_(*static_cast<BoardRowV2*>(row)) {
    store_field(row_.sequence, load_field(row_.sequence) | 1U);
  }
  ~RowEdit() { store_field(row_.sequence, load_field(row_.sequence) + 1); }
  RowEdit(const RowEdit&) = delete;
  RowEdit& operator=(const RowEdit&) = delete;

  BoardRowV2* operator->() const { return &row_; }
  std::int64_t stamp() const {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    const std::int64_t ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
    store_field(row_.updated_ns, ns);
    return ns;
  }
  /// Sets the state. If the state is new, also sets the time at which it was entered.
  void enter(ActorState state) const {
    const auto number = static_cast<std::uint8_t>(state);
    const std::uint8_t before = load_field(row_.state);
    store_field(row_.state, number);
    const std::int64_t now = stamp();
    if (before == number) return;
    store_field(row_.since_ns, now);
    if (!is_own_code(state) || !is_own_code(static_cast<ActorState>(before))) moved(now);
  }
  void moved(std::int64_t now) const { store_field(row_.moved_ns, now); }

 private:
  BoardRowV2& row_;
};

/// Makes `message_sequence` odd during its lifetime, as RowEdit does with `sequence`.
class MessageEdit {
 public:
  explicit MessageEdit(void* row) : row_(*static_cast<BoardRowV2*>(row)) {
    store_field(row_.message_sequence, load_field(row_.message_sequence) | 1U);
  }
  ~MessageEdit() { store_field(row_.message_sequence, load_field(row_.message_sequence) + 1); }
  MessageEdit(const MessageEdit&) = delete;
  MessageEdit& operator=(const MessageEdit&) = delete;

  BoardRowV2* operator->() const { return &row_; }

 private:
  BoardRowV2& row_;
};

/// Copies the counts of messages. `came` is read last, so that it includes every message that had
/// begun before.
void copy_messages(const BoardRowV2& row, ActorRow& copy) {
  copy.messages_begun = load_field(row.begun);
  copy.messages_done = load_field(row.done);
  copy.last_message = get_text(row.message);
  copy.messages_came = load_field(row.came);
  copy.mailbox = std::max(copy.messages_came, copy.messages_begun) - copy.messages_begun;
}

ActorRow copy_row(const BoardRowV2& row) {
  ActorRow copy;
  copy.kind = static_cast<ActorKind>(load_field(row.kind));
  copy.state = static_cast<ActorState>(load_field(row.state));
  copy.worker = load_field(row.worker);
  copy.chip = load_field(row.chip);
  copy.pid = load_field(row.pid);
  copy.step = load_field(row.step);
  copy.tid = load_field(row.tid);
  copy.source = get_text(row.source);
  copy.since_ns = load_field(row.since_ns);
  copy.last_error = get_text(row.last_error);
  copy.collective = load_field(row.collective);
  copy.collective_name = get_text(row.collective_name);
  copy.in_collective = load_field(row.in_collective) != 0;
  copy.waiting_for = load_field(row.waiting_for);
  copy.updated_ns = load_field(row.updated_ns);
  copy.moved_ns = load_field(row.moved_ns);
  copy.pid_namespace = load_field(row.pid_namespace);
  copy.inside_since_ns = load_field(row.inside_since_ns);
  if (copy.kind == ActorKind::device || copy.inside_since_ns == 0) return copy;
  copy.inside = std::move(copy.collective_name);
  copy.collective_name.clear();
  copy.inside_number = load_field(row.inside_number);
  copy.inside_tid = load_field(row.inside_tid);
  return copy;
}

}  // namespace

std::string_view to_string(ActorKind kind) noexcept {
  switch (kind) {
    case ActorKind::trainer: return "trainer";
    case ActorKind::worker: return "worker";
    case ActorKind::device: return "device";
  }
  return "unknown";
}

std::string_view to_string(ActorState state) noexcept {
  switch (state) {
    case ActorState::absent: return "absent";
    case ActorState::starting: return "starting";
    case ActorState::joining: return "joining";
    case ActorState::idle: return "idle";
    case ActorState::compiling: return "compiling";
    case ActorState::running: return "running";
    case ActorState::waiting: return "waiting";
    case ActorState::ended: return "ended";
    case ActorState::failed: return "failed";
    case ActorState::lost: return "lost";
    case ActorState::host_lost: return "host lost";
    case ActorState::saving: return "saving";
    case ActorState::loading: return "loading";
    case ActorState::user_code: return "user code";
    case ActorState::admission: return "admission";
    case ActorState::lease: return "lease";
    case ActorState::reporting: return "reporting";
    case ActorState::commands: return "commands";
  }
  return "unknown";
}

std::string_view to_string(JobStatus status) noexcept {
  switch (status) {
    case JobStatus::starting: return "starting";
    case JobStatus::running: return "running";
    case JobStatus::succeeded: return "succeeded";
    case JobStatus::failed: return "failed";
    case JobStatus::cancelled: return "cancelled";
  }
  return "unknown";
}

void BoardWriter::open(ActorKind kind, int worker, int chip, int pid) const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->kind, static_cast<std::uint8_t>(kind));
  store_field(row->state, static_cast<std::uint8_t>(ActorState::starting));
  store_field(row->worker, worker);
  store_field(row->chip, chip);
  store_field(row->pid, pid);
  store_field(row->step, std::uint64_t{0});
  store_field(row->tid, static_cast<std::int32_t>(::gettid()));
  store_field(row->collective, std::uint64_t{0});
  store_field(row->in_collective, std::uint8_t{0});
  store_field(row->waiting_for, -1);
  put_text(row->collective_name, "");
  put_text(row->source, "");
  put_text(row->last_error, "");
  store_field(row->pid_namespace, own_pid_namespace());
  store_field(row->inside_since_ns, std::int64_t{0});
  const std::int64_t now = row.stamp();
  store_field(row->since_ns, now);
  row.moved(now);
}

void BoardWriter::state(ActorState state) const {
  if (!row_) return;
  const RowEdit row(row_);
  row.enter(state);
}

ActorState BoardWriter::state() const {
  if (!row_) return ActorState::absent;
  return static_cast<ActorState>(load_field(static_cast<const BoardRowV2*>(row_)->state));
}

void BoardWriter::thread(int tid) const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->tid, static_cast<std::int32_t>(tid));
}

void BoardWriter::source(std::string_view place) const {
  if (!row_) return;
  const RowEdit row(row_);
  put_text(row->source, place);
}

void BoardWriter::step(std::uint64_t step) const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->step, step);
  row.moved(row.stamp());
}

void BoardWriter::message_came() const {
  if (!row_) return;
  std::atomic_ref(static_cast<BoardRowV2*>(row_)->came).fetch_add(1, std::memory_order_release);
}

void BoardWriter::message_begun(std::string_view name) const {
  if (!row_) return;
  const MessageEdit row(row_);
  put_text(row->message, name);
  store_field(row->begun, load_field(row->begun) + 1);
}

void BoardWriter::message_begun() const {
  if (!row_) return;
  const MessageEdit row(row_);
  store_field(row->begun, load_field(row->begun) + 1);
}

void BoardWriter::message_done() const {
  if (!row_) return;
  const MessageEdit row(row_);
  store_field(row->done, load_field(row->done) + 1);
}

void BoardWriter::error(std::string_view text) const {
  if (!row_) return;
  const RowEdit row(row_);
  put_text(row->last_error, text);
  row.stamp();
}

void BoardWriter::enter_collective(std::uint64_t number, std::string_view name) const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->collective, number);
  store_field(row->in_collective, std::uint8_t{1});
  put_text(row->collective_name, name);
}

void BoardWriter::enter_collective_again(std::uint64_t number) const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->collective, number);
  store_field(row->in_collective, std::uint8_t{1});
}

void BoardWriter::waiting_for(int chip) const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->waiting_for, chip);
  row.enter(ActorState::waiting);
}

void BoardWriter::leave_collective() const {
  if (!row_) return;
  const RowEdit row(row_);
  store_field(row->in_collective, std::uint8_t{0});
  if (load_field(row->waiting_for) >= 0) {
    store_field(row->waiting_for, -1);
    row.enter(ActorState::running);
  }
}

void BoardWriter::enter_inside(std::string_view name, std::int64_t number, int tid,
                               std::int64_t since_ns) const {
  if (!row_) return;
  auto& row = *static_cast<BoardRowV2*>(row_);
  put_text(row.collective_name, name);
  store_field(row.inside_number, number);
  store_field(row.inside_tid, static_cast<std::int32_t>(tid));
  store_field(row.inside_since_ns, since_ns);
}

void BoardWriter::leave_inside() const {
  if (!row_) return;
  store_field(static_cast<BoardRowV2*>(row_)->inside_since_ns, std::int64_t{0});
}

void init_row(BoardRowV2& row, ActorKind kind, int worker, int chip) {
  row = {};
  row.kind = static_cast<std::uint8_t>(kind);
  row.state = static_cast<std::uint8_t>(ActorState::absent);
  row.worker = worker;
  row.chip = chip;
  row.waiting_for = -1;
}

ActorRow read_row(const BoardRowV2& row) {
  ActorRow copy;
  const bool is_whole = read_between_writes(row.sequence, [&] { copy = copy_row(row); });
  const bool are_whole =
      read_between_writes(row.message_sequence, [&] { copy_messages(row, copy); });
  copy.torn = !is_whole || !are_whole;
  return copy;
}

}  // namespace weft
