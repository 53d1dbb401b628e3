#include "actors/table/actor_table.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

/// Copies as much of a text as there is room for, and a null character.
template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

/// Copies as many texts as there is room for, and a null character behind each.
template <std::size_t N>
void put_texts(char (&to)[N], const std::vector<std::string_view>& texts) {
  std::size_t used = 0;
  for (const std::string_view text : texts) {
    if (text.size() >= N - used) break;
    text.copy(to + used, text.size());
    used += text.size() + 1;
  }
}

template <std::size_t N>
std::string text_of(const char (&from)[N]) {
  return {from, ::strnlen(from, N)};
}

}  // namespace

ActorTable ActorTable::create(std::string_view system, std::string_view name) {
  ActorTable table(Segment::create(actor_table_name(system), kActorTableBytes));
  try {
    table.segment_.reserve(0, sizeof(ActorTableHead));
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
  put_text(head->name, name);
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

ActorTableRow& ActorTable::row(std::uint32_t row) const {
  WEFT_CHECK(row < kActorCountMax, row);
  return *reinterpret_cast<ActorTableRow*>(segment_.data() + actor_row_offset(row));
}

ActorPosition ActorTable::position(std::uint32_t row) const {
  return ActorPosition::of(this->row(row).position.load(std::memory_order_seq_cst));
}

std::vector<std::string> ActorTable::schemas(std::uint32_t mesh) const {
  const MeshTableRow& row = this->mesh(mesh);
  std::vector<std::string> all;
  std::string_view rest(row.schemas, sizeof row.schemas);
  while (all.size() < row.endpoint_count) {
    const std::size_t end = rest.find('\0');
    if (end == 0 || end == rest.npos) {
      fail(Errc::no_space,
           "mesh \"{}\": the schemas of its {} endpoints don't fit {} bytes, so programs that "
           "attach "
           "can't call it; divide its class",
           text_of(row.name), row.endpoint_count, sizeof row.schemas);
    }
    all.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return all;
}

std::string ActorTable::job(std::uint32_t mesh) const { return text_of(this->mesh(mesh).job); }

std::string ActorTable::name(std::uint32_t row) const {
  const ActorTableRow& actor = this->row(row);
  return fmt::format("{}[{}]", text_of(mesh(actor.mesh).name), actor.index);
}

std::optional<std::uint32_t> ActorTable::find(std::string_view name) const {
  for (std::uint32_t m = 0; m < mesh_count(); ++m) {
    if (mesh(m).is_ended.load(std::memory_order_acquire) == 0 && text_of(mesh(m).name) == name) {
      return m;
    }
  }
  return std::nullopt;
}

MeshCause ActorTable::cause(std::uint32_t row) const {
  const MeshTableRow& ended = mesh(this->row(row).mesh);
  return {.code = static_cast<std::uint8_t>(ended.cause_code.load(std::memory_order_acquire)),
          .text = text_of(ended.cause)};
}

std::uint32_t ActorTable::add(const MeshFacts& facts) {
  const std::uint32_t first = row_count();
  const std::uint32_t index = mesh_count();
  if (facts.count > kActorCountMax - first || index == kMeshCountMax) {
    fail(Errc::no_space,
         "mesh \"{}\" of {} actors: the actor system has had {} actors in {} meshes; at most {} "
         "actors and {} meshes can be made while it lives",
         facts.name, facts.count, first, index, kActorCountMax, kMeshCountMax);
  }
  segment_.reserve(mesh_row_offset(index), sizeof(MeshTableRow));
  segment_.reserve(actor_row_offset(first), facts.count * sizeof(ActorTableRow));
  auto* made = new (&mesh(index)) MeshTableRow{};
  made->first_row = first;
  made->count = facts.count;
  made->max_restarts = facts.max_restarts;
  made->restart = facts.restart;
  made->then = facts.then;
  made->own_thread = facts.own_thread ? 1 : 0;
  put_text(made->name, facts.name);
  put_text(made->type, facts.type);
  made->endpoint_count = static_cast<std::uint32_t>(facts.endpoints.size());
  put_texts(made->endpoints, facts.endpoints);
  put_texts(made->schemas, facts.schemas);
  put_text(made->job, facts.job);
  for (std::uint32_t i = 0; i < facts.count; ++i) {
    auto* actor = new (&row(first + i)) ActorTableRow{};
    actor->mesh = index;
    actor->index = i;
  }
  head().row_count.store(first + facts.count, std::memory_order_release);
  head().mesh_count.store(index + 1, std::memory_order_release);
  return index;
}

void ActorTable::set_position(std::uint32_t row, const ActorPosition& position) {
  this->row(row).position.store(position.word(), std::memory_order_seq_cst);
  head().changes.fetch_add(1, std::memory_order_seq_cst);
}

void ActorTable::set_restarts(std::uint32_t mesh, int restarts) {
  this->mesh(mesh).restarts.store(static_cast<std::uint32_t>(restarts), std::memory_order_relaxed);
}

void ActorTable::set_cause(std::uint32_t mesh, const MeshCause& cause) {
  MeshTableRow& row = this->mesh(mesh);
  if (row.cause_code.load(std::memory_order_relaxed) != 0) return;  // others may read it
  put_text(row.cause, cause.text);
  row.cause_code.store(cause.code, std::memory_order_release);
}

void ActorTable::end(std::uint32_t mesh, const MeshCause& cause) {
  set_cause(mesh, cause);
  this->mesh(mesh).is_ended.store(1, std::memory_order_release);
}

}  // namespace weft
