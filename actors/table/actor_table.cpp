#include "actors/table/actor_table.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// Copies as much of a text as there is room for, with a terminating zero.
template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

/// Copies as many texts as there is room for, each with a terminating zero.
template <std::size_t N>
void put_texts(char (&to)[N], const std::vector<std::string>& texts) {
  std::size_t used = 0;
  for (const std::string& text : texts) {
    if (text.size() >= N - used) break;
    text.copy(to + used, text.size());
    used += text.size() + 1;
  }
}

/// Returns the texts that put_texts() wrote, at most `count`.
template <std::size_t N>
std::vector<std::string> texts_of(const char (&from)[N], std::uint32_t count) {
  std::vector<std::string> texts;
  std::string_view rest(from, N);
  while (texts.size() < count) {
    const std::size_t end = rest.find('\0');
    if (end == 0 || end == rest.npos) break;
    texts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return texts;
}

template <std::size_t N>
std::string text_of(const char (&from)[N]) {
  return {from, ::strnlen(from, N)};
}

}  // namespace

ActorTable ActorTable::create(std::string_view system, const SystemFacts& facts) {
  ActorTable table(Segment::create(actor_table_name(system), kActorTableBytes));
  try {
    table.segment_.reserve(0, sizeof(ActorTableHead));
    table.segment_.reserve(ring_ports_offset(0), job_source_offset(0, 0) - ring_ports_offset(0));
    table.life_ = LifeLock::take(table.segment_, kActorTableLifeByte);
  } catch (...) {
    Segment::remove(table.segment_.name());
    throw;
  }
  auto* head = new (table.segment_.data()) ActorTableHead{};
  head->version = kActorTableVersion;
  head->started_unix_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::system_clock::now().time_since_epoch())
                              .count();
  put_text(head->name, facts.name);
  head->threads = facts.threads;
  head->heap_bytes = facts.heap_bytes;
  head->call_timeout_s = facts.call_timeout_s;
  head->key =
      facts.key != 0 ? facts.key : std::stoull(std::string(system.substr(0, 16)), nullptr, 16) | 1;
  head->host = facts.host;
  head->host_count = facts.host_count;
  const TickSource source = find_tick_source();
  head->tick_source = static_cast<std::uint32_t>(source);
  head->start = read_clock_pair(source);
  std::atomic_ref(head->magic).store(kActorTableMagic, std::memory_order_release);
  return table;
}

ActorTable ActorTable::open(std::string_view system) {
  ActorTable table(Segment::open(actor_table_name(system), false, kActorTableBytes));
  const std::uint64_t magic = std::atomic_ref(table.head().magic).load(std::memory_order_acquire);
  if (magic != kActorTableMagic) {
    fail(magic == 0 ? Errc::not_found : Errc::corrupt, "segment {} {}", table.segment_.name(),
         magic == 0 ? "is still being made" : "is no table of actors");
  }
  if (table.head().version != kActorTableVersion) {
    fail(Errc::version,
         "segment {}: actors of version {}, but this program reads version {}; build both programs "
         "with the same weft",
         table.segment_.name(), table.head().version, kActorTableVersion);
  }
  return table;
}

std::uint32_t ActorTable::mesh_count() const {
  return std::min(head().mesh_count.load(std::memory_order_acquire), kMeshCountMax);
}

std::uint32_t ActorTable::row_count() const {
  return std::min(head().row_count.load(std::memory_order_acquire), kActorCountMax);
}

MeshTableRow& ActorTable::mesh(std::uint32_t mesh) const {
  WEFT_CHECK(mesh < kMeshCountMax, mesh);
  return *reinterpret_cast<MeshTableRow*>(segment_.data() + mesh_row_offset(mesh));
}

ActorNumber ActorTable::number(std::uint32_t mesh, std::uint32_t index) const {
  return number_in(this->mesh(mesh).first_row + index);
}

ActorNumber ActorTable::number_in(std::uint32_t row) const {
  return actor_number(row, this->row(row).turn.load(std::memory_order_acquire));
}

bool ActorTable::has(ActorNumber actor) const {
  return row_of(actor) < row_count() && number_in(row_of(actor)) == actor;
}

ActorTableRow& ActorTable::row(ActorNumber actor) const {
  const std::uint32_t row = row_of(actor);
  WEFT_CHECK(row < kActorCountMax, row);
  return *reinterpret_cast<ActorTableRow*>(segment_.data() + actor_row_offset(row));
}

ActorPosition ActorTable::position(ActorNumber actor) const {
  const ActorTableRow& row = this->row(actor);
  // The turn is read after the position. It is incremented before a later actor gets a position, so
  // an unchanged turn shows that the position belongs to this actor.
  const std::uint64_t word = row.position.load(std::memory_order_seq_cst);
  if (row.turn.load(std::memory_order_acquire) != turn_of(actor)) {
    return {.phase = ActorPhase::ended};
  }
  return ActorPosition::of(word);
}

std::vector<std::string> ActorTable::schemas(std::uint32_t mesh) const {
  const MeshTableRow& row = this->mesh(mesh);
  std::vector<std::string> all = texts_of(row.schemas, row.endpoint_count);
  if (all.size() < row.endpoint_count) {
    fail(Errc::no_space,
         "mesh \"{}\": the schemas of its {} endpoints don't fit {} bytes, so programs that attach "
         "can't call it; divide its class",
         text_of(row.name), row.endpoint_count, sizeof row.schemas);
  }
  return all;
}

std::string ActorTable::job(std::uint32_t mesh) const { return text_of(this->mesh(mesh).job); }

std::string ActorTable::type(ActorNumber actor) const {
  return text_of(mesh(row(actor).mesh).type);
}

std::string ActorTable::name(ActorNumber actor) const {
  const ActorTableRow& row = this->row(actor);
  std::string name = fmt::format("{}[{}]", text_of(mesh(row.mesh).name), row.index);
  std::atomic_thread_fence(std::memory_order_acquire);  // the turn is read after the text
  if (row.turn.load(std::memory_order_acquire) == turn_of(actor)) return name;
  return "an actor of an earlier mesh";  // its name was overwritten
}

std::string ActorTable::function_name(ActorNumber actor, const ActorFunction& function) const {
  std::string text = name(actor);
  if (function.kind == ActorFunctionKind::work) return text + ".work";
  if (function.kind == ActorFunctionKind::make) return text + ".constructor";
  const MeshTableRow& row = mesh(this->row(actor).mesh);
  const std::vector<std::string> names = texts_of(row.endpoints, row.endpoint_count);
  return function.endpoint < names.size() ? text + "." + names[function.endpoint]
                                          : fmt::format("{}.endpoint {}", text, function.endpoint);
}

std::optional<std::uint32_t> ActorTable::find(std::string_view name) const {
  for (std::uint32_t m = 0; m < mesh_count(); ++m) {
    if (mesh(m).is_ended.load(std::memory_order_acquire) == 0 && text_of(mesh(m).name) == name) {
      return m;
    }
  }
  return std::nullopt;
}

MeshCause ActorTable::cause(ActorNumber actor) const {
  const MeshTableRow& ended = mesh(row(actor).mesh);
  MeshCause cause{
      .code = static_cast<std::uint8_t>(ended.cause_code.load(std::memory_order_acquire)),
      .text = text_of(ended.cause)};
  std::atomic_thread_fence(std::memory_order_acquire);
  return has(actor) ? cause : MeshCause{};
}

/// Returns the index for a new mesh. Takes unused rows if there are enough, otherwise the smallest
/// released mesh with enough rows; if several have this size, the one that was released first.
std::uint32_t ActorTable::place_for(const MeshFacts& facts) {
  const std::uint32_t first = row_count();
  const std::uint32_t index = mesh_count();
  if (index < kMeshCountMax && facts.count <= kActorCountMax - first) {
    segment_.reserve(mesh_row_offset(index), sizeof(MeshTableRow));
    segment_.reserve(actor_row_offset(first), facts.count * sizeof(ActorTableRow));
    auto* const made = new (&mesh(index)) MeshTableRow{};
    made->first_row = first;
    made->row_count = facts.count;
    for (std::uint32_t i = 0; i < facts.count; ++i) {
      auto* const actor = new (&row(first + i)) ActorTableRow{};
      actor->mesh = index;
      actor->index = i;
    }
    return index;
  }
  auto found = released_.end();
  for (auto each = released_.begin(); each != released_.end(); ++each) {
    const std::uint32_t rows = mesh(*each).row_count;
    if (rows < facts.count) continue;
    if (found == released_.end() || rows < mesh(*found).row_count) found = each;
  }
  if (found == released_.end()) {
    fail(Errc::no_space,
         "mesh \"{}\" of {} actors: the table of the actor system had rows for {} meshes and {} "
         "actors (at most {} and {}); all were used, and no stopped mesh has left {} rows",
         facts.name, facts.count, index, first, kMeshCountMax, kActorCountMax, facts.count);
  }
  const std::uint32_t place = *found;
  released_.erase(found);
  return place;
}

CallRing& ActorTable::open_ring(std::uint32_t slot, std::uint32_t port) {
  WEFT_CHECK(slot < kPeerCountMax && port < kPortCountMax, slot, port);
  segment_.reserve(call_ring_offset(slot, port), sizeof(CallRing));
  auto& ring = *reinterpret_cast<CallRing*>(segment_.data() + call_ring_offset(slot, port));
  for (CallRingRecord& record : ring.records) {  // claimed by a killed process
    if (record.words[0].load(std::memory_order_relaxed) == CallRingRecord::kClaimed) {
      record.words[0].store(0, std::memory_order_relaxed);
    }
  }
  std::atomic_ref(*reinterpret_cast<std::uint64_t*>(segment_.data() + ring_ports_offset(slot)))
      .fetch_or(std::uint64_t{1} << port, std::memory_order_release);
  return ring;
}

std::uint32_t ActorTable::job_source(std::uint32_t slot, std::string_view job,
                                     std::string_view name) {
  WEFT_CHECK(slot < kPeerCountMax, slot);
  static std::mutex mutex;
  static std::uint32_t next = 0;  // rows are used in turn, also those of previous processes
  const std::size_t offset = job_source_offset(slot, 0);
  const std::lock_guard lock(mutex);
  segment_.reserve(offset, kJobSourceCountMax * sizeof(JobSourceRow));
  const std::span rows(reinterpret_cast<JobSourceRow*>(segment_.data() + offset),
                       kJobSourceCountMax);
  for (std::uint32_t i = 0; i < rows.size(); ++i) {
    if (rows[i].is_set.load(std::memory_order_relaxed) != 0 && text_of(rows[i].job) == job &&
        text_of(rows[i].name) == name) {
      return i;
    }
  }
  const std::uint32_t place = next++ % kJobSourceCountMax;
  JobSourceRow& row = rows[place];
  row.is_set.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  put_text(row.job, job);
  put_text(row.name, name);
  row.is_set.store(1, std::memory_order_release);
  return place;
}

std::atomic<std::uint64_t>& ActorTable::pipe_wait(std::uint32_t slot) const {
  WEFT_CHECK(slot < kPeerCountMax, slot);
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(segment_.data() + pipe_wait_offset(slot));
}

std::uint32_t ActorTable::add(const MeshFacts& facts) {
  const std::uint32_t index = place_for(facts);  // may throw, before other hosts are told
  tell({.kind = TableChange::add, .facts = facts});
  MeshTableRow& made = mesh(index);
  if (index < mesh_count()) {
    // First the turns change, so that the earlier actors end for all that know their numbers.
    const std::uint32_t turn = made.turn.fetch_add(1, std::memory_order_seq_cst) + 1;
    for (std::uint32_t i = 0; i < made.row_count; ++i) {
      ActorTableRow& actor = row(made.first_row + i);
      actor.turn.store(turn & 0xffffU, std::memory_order_seq_cst);
      for (auto* word :
           {&actor.since_ns, &actor.function, &actor.call, &actor.awaited, &actor.begun}) {
        word->store(0, std::memory_order_relaxed);
      }
      actor.position.store(0, std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_release);  // turns change before texts
    made.cause_code.store(0, std::memory_order_relaxed);
    made.restarts.store(0, std::memory_order_relaxed);
    std::ranges::fill(made.endpoints, '\0');
    std::ranges::fill(made.schemas, '\0');
  }
  made.count = facts.count;
  made.max_restarts = facts.max_restarts;
  made.restart = facts.restart;
  made.then = facts.then;
  made.own_thread = facts.own_thread ? 1 : 0;
  put_text(made.name, facts.name);
  put_text(made.type, facts.type);
  made.endpoint_count = static_cast<std::uint32_t>(facts.endpoints.size());
  put_texts(made.endpoints, facts.endpoints);
  put_texts(made.schemas, facts.schemas);
  put_text(made.job, facts.job);
  made.is_ended.store(0, std::memory_order_release);
  if (index == mesh_count()) {
    head().row_count.store(made.first_row + made.row_count, std::memory_order_release);
    head().mesh_count.store(index + 1, std::memory_order_release);
  }
  return index;
}

void ActorTable::set_position(ActorNumber actor, const ActorPosition& position) {
  tell({.kind = TableChange::position, .number = actor, .word = position.word()});
  row(actor).position.store(position.word(), std::memory_order_seq_cst);
  head().changes.fetch_add(1, std::memory_order_seq_cst);
}

void ActorTable::set_restarts(std::uint32_t mesh, int restarts) {
  tell({.kind = TableChange::restarts,
        .number = mesh,
        .word = static_cast<std::uint64_t>(restarts)});
  this->mesh(mesh).restarts.store(static_cast<std::uint32_t>(restarts), std::memory_order_relaxed);
}

void ActorTable::set_cause(std::uint32_t mesh, const MeshCause& cause) {
  tell({.kind = TableChange::cause, .number = mesh, .failure = cause});
  MeshTableRow& row = this->mesh(mesh);
  if (row.cause_code.load(std::memory_order_relaxed) != 0) return;  // others may read it
  put_text(row.cause, cause.text);
  row.cause_code.store(cause.code, std::memory_order_release);
}

void ActorTable::end(std::uint32_t mesh, const MeshCause& cause) {
  set_cause(mesh, cause);
  tell({.kind = TableChange::end, .number = mesh});
  this->mesh(mesh).is_ended.store(1, std::memory_order_release);
}

void ActorTable::release(std::uint32_t mesh) {
  tell({.kind = TableChange::release, .number = mesh});
  released_.push_back(mesh);
}

void ActorTable::apply(const TableChange& change) {
  const bool is_actor = change.kind == TableChange::position;
  const bool is_known = is_actor ? row_of(change.number) < row_count()
                                 : change.kind == TableChange::add || change.number < mesh_count();
  if (!is_known || change.kind > TableChange::release) {
    fail(Errc::corrupt, "host 0 tells a change of kind {} of {}, which doesn't exist", change.kind,
         change.number);
  }
  switch (change.kind) {
    case TableChange::add: add(change.facts); break;
    case TableChange::position: set_position(change.number, ActorPosition::of(change.word)); break;
    case TableChange::restarts: set_restarts(change.number, static_cast<int>(change.word)); break;
    case TableChange::cause: set_cause(change.number, change.failure); break;
    case TableChange::end: end(change.number, {}); break;
    default: release(change.number);
  }
}

}  // namespace weft
