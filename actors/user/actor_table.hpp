#pragma once
/// ActorTable: the meshes and actors of a system, in shared memory that all its processes read.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/lanes/lane_ids.hpp"
#include "transport/memory/segment.hpp"

namespace weft {

inline constexpr std::uint32_t kActorCountMax = 65'535;
inline constexpr std::uint32_t kMeshCountMax = 1024;
inline constexpr std::size_t kActorNameMax = 63;
inline constexpr std::size_t kCauseBytesMax = 2047;

enum class ActorPhase : std::uint8_t {
  none = 0,
  starting = 1,  ///< it is being made, for the first time or again; its messages wait
  alive = 2,
  ended = 3,  ///< or about to end: its stop is requested
};

/// The phase and the place of an actor. They are one word, so that a reader never combines the
/// phase of one incarnation with the process of another.
struct ActorPosition {
  ActorPhase phase = ActorPhase::none;
  std::uint32_t port = 0;         ///< of its process
  std::uint32_t incarnation = 0;  ///< of the actor; below 2^17
  PeerId process{};

  static ActorPosition of(std::uint64_t word) noexcept;
  std::uint64_t word() const noexcept;
  friend bool operator==(const ActorPosition&, const ActorPosition&) = default;
};

/// Format, version 1 (native byte order):
///   ActorTableHead MeshTableRow{kMeshCountMax} ActorTableRow{kActorCountMax}
struct ActorTableHead {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::atomic<std::uint32_t> mesh_count;
  std::atomic<std::uint32_t> row_count;
  std::atomic<std::uint32_t> changes;    ///< how often a position has changed
  std::atomic<std::uint32_t> processes;  ///< that run
  std::byte reserved[100];
};
static_assert(sizeof(ActorTableHead) == 128);

/// The texts are written before mesh_count, and `cause` before the actors' phase `ended`.
struct MeshTableRow {
  std::atomic<std::uint32_t> is_ended;
  std::uint32_t first_row;
  std::uint32_t count;
  std::uint32_t reserved;
  char name[kActorNameMax + 1];
  char type[kActorNameMax + 1];
  std::atomic<std::uint32_t> cause_code;  ///< an Errc; 0: none
  char cause[kCauseBytesMax + 1];
  std::byte reserved2[60];
};
static_assert(sizeof(MeshTableRow) == 2256);

struct alignas(64) ActorTableRow {
  std::atomic<std::uint64_t> position;  ///< an ActorPosition; only the keeper writes it
  std::uint32_t mesh;
  std::uint32_t index;
  // The actor's process writes the following.
  /// When the function that runs began, by the steady clock; 0: none runs.
  std::atomic<std::uint64_t> since_ns;
  std::byte reserved[40];
};
static_assert(sizeof(ActorTableRow) == 64);

/// A failure that ended a mesh.
struct MeshCause {
  std::uint8_t code = 0;
  std::string text{};
};

/// The keeper's process makes the table and writes all but those fields of ActorTableRow that an
/// actor's process writes. Thread-safe, but one thread at a time uses the keeper's functions.
class ActorTable {
 public:
  /// Throws io if the system has a table, no_space.
  static ActorTable create(std::string_view system);
  /// Throws not_found, version or corrupt.
  static ActorTable open(std::string_view system);

  ActorTableHead& head() const { return *reinterpret_cast<ActorTableHead*>(segment_.data()); }
  std::uint32_t mesh_count() const;
  std::uint32_t row_count() const;
  MeshTableRow& mesh(std::uint32_t mesh) const;
  ActorTableRow& row(std::uint32_t row) const;
  ActorPosition position(std::uint32_t row) const;
  std::string name(std::uint32_t row) const;  ///< "sieves[3]"
  /// Returns the mesh of this name that hasn't ended.
  std::optional<std::uint32_t> find(std::string_view name) const;
  /// Returns why the actor's mesh has ended.
  MeshCause cause(std::uint32_t row) const;

  /// The rest are the keeper's. add() throws no_space if there are too many actors or meshes.
  std::uint32_t add(std::string_view name, std::string_view type, std::uint32_t count);
  void set_position(std::uint32_t row, const ActorPosition& position);
  /// Ends a mesh. Its name is free again.
  void end(std::uint32_t mesh, const MeshCause& cause);

 private:
  explicit ActorTable(Segment segment) : segment_(std::move(segment)) {}

  Segment segment_;
};

}  // namespace weft
