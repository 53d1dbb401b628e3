#include "actors/user/actor_table.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::uint64_t kMagic = 0x3172'6f74'6361'6677;  // "wfactor1"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kMeshesOffset = sizeof(ActorTableHead);
constexpr std::size_t kRowsOffset =
    (kMeshesOffset + kMeshCountMax * sizeof(MeshTableRow) + 63) / 64 * 64;
constexpr std::size_t kBytes = kRowsOffset + kActorCountMax * sizeof(ActorTableRow);

std::string segment_name(std::string_view system) { return fmt::format("weft-{}-actors", system); }

/// Copies as much of a text as there is room for, and a null character.
template <std::size_t N>
void put_text(char (&to)[N], std::string_view text) {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), size);
  to[size] = '\0';
}

template <std::size_t N>
std::string text_of(const char (&from)[N]) {
  return {from, ::strnlen(from, N)};
}

}  // namespace

ActorPosition ActorPosition::of(std::uint64_t word) noexcept {
  return {.phase = static_cast<ActorPhase>(word & 7U),
          .port = static_cast<std::uint32_t>(word >> 3U & 63U),
          .incarnation = static_cast<std::uint32_t>(word >> 17U & 0x1'ffffU),
          .process = {.slot = static_cast<std::uint32_t>(word >> 9U & 255U),
                      .incarnation = static_cast<std::uint32_t>(word >> 34U)}};
}

std::uint64_t ActorPosition::word() const noexcept {
  return static_cast<std::uint64_t>(phase) | std::uint64_t{port} << 3U |
         std::uint64_t{process.slot} << 9U | std::uint64_t{incarnation & 0x1'ffffU} << 17U |
         std::uint64_t{process.incarnation} << 34U;
}

ActorTable ActorTable::create(std::string_view system) {
  Segment segment = Segment::create(segment_name(system), kBytes);
  try {
    segment.reserve(0, sizeof(ActorTableHead));
  } catch (...) {
    Segment::remove(segment.name());
    throw;
  }
  auto* head = new (segment.data()) ActorTableHead{};
  head->version = kVersion;
  std::atomic_ref(head->magic).store(kMagic, std::memory_order_release);
  return ActorTable(std::move(segment));
}

ActorTable ActorTable::open(std::string_view system) {
  ActorTable table(Segment::open(segment_name(system), false, kBytes));
  const std::uint64_t magic = std::atomic_ref(table.head().magic).load(std::memory_order_acquire);
  if (magic != kMagic) {
    fail(magic == 0 ? Errc::not_found : Errc::corrupt, "segment {} {}", table.segment_.name(),
         magic == 0 ? "is still being made" : "is no table of actors");
  }
  if (table.head().version != kVersion) {
    fail(Errc::version,
         "segment {}: actors of version {}, but this program reads version {}; build both programs "
         "with the same weft",
         table.segment_.name(), table.head().version, kVersion);
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
  return reinterpret_cast<MeshTableRow*>(segment_.data() + kMeshesOffset)[mesh];
}

ActorTableRow& ActorTable::row(std::uint32_t row) const {
  WEFT_CHECK(row < kActorCountMax, row);
  return reinterpret_cast<ActorTableRow*>(segment_.data() + kRowsOffset)[row];
}

ActorPosition ActorTable::position(std::uint32_t row) const {
  return ActorPosition::of(this->row(row).position.load(std::memory_order_seq_cst));
}

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

std::uint32_t ActorTable::add(std::string_view name, std::string_view type, std::uint32_t count) {
  const std::uint32_t first = row_count();
  const std::uint32_t index = mesh_count();
  if (count > kActorCountMax - first || index == kMeshCountMax) {
    fail(Errc::no_space,
         "mesh \"{}\" of {} actors: the actor system has had {} actors in {} meshes; at most {} "
         "actors and {} meshes can be made while it lives",
         name, count, first, index, kActorCountMax, kMeshCountMax);
  }
  segment_.reserve(kMeshesOffset + index * sizeof(MeshTableRow), sizeof(MeshTableRow));
  segment_.reserve(kRowsOffset + first * sizeof(ActorTableRow), count * sizeof(ActorTableRow));
  auto* made = new (&mesh(index)) MeshTableRow{};
  made->first_row = first;
  made->count = count;
  put_text(made->name, name);
  put_text(made->type, type);
  for (std::uint32_t i = 0; i < count; ++i) {
    auto* actor = new (&row(first + i)) ActorTableRow{};
    actor->mesh = index;
    actor->index = i;
  }
  head().row_count.store(first + count, std::memory_order_release);
  head().mesh_count.store(index + 1, std::memory_order_release);
  return index;
}

void ActorTable::set_position(std::uint32_t row, const ActorPosition& position) {
  this->row(row).position.store(position.word(), std::memory_order_seq_cst);
  head().changes.fetch_add(1, std::memory_order_seq_cst);
}

void ActorTable::end(std::uint32_t mesh, const MeshCause& cause) {
  MeshTableRow& ended = this->mesh(mesh);
  put_text(ended.cause, cause.text);
  ended.cause_code.store(cause.code, std::memory_order_release);
  ended.is_ended.store(1, std::memory_order_release);
}

}  // namespace weft
