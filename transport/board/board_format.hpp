#pragma once
/// Format of the board segment, version 1 (native byte order, little-endian hosts):
///
///   board  = header row{1 + num_workers + num_chips}        row 0: the trainer, then the workers,
///   header = BoardHeaderV1, 4096 bytes                      then the devices by chip
///   row    = BoardRowV1, 512 bytes
///
/// Text is UTF-8, cut to its field less one byte and filled with zeros. A change of any of this
/// needs a new version; golden file: tests/golden/board-v1.bin.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::board_format {

inline constexpr std::uint64_t kMagic = 0x3164'7262'7466'6577;  // "weftbrd1"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr int kAxisCountMax = 16;
inline constexpr int kRowCountMax = 1 << 16;
/// A byte of the file that the process that made the board locks for its lifetime.
inline constexpr std::uint32_t kLifeByte = 0;

struct BoardHeaderV1 {
  std::uint64_t magic;  ///< written last
  std::uint32_t version;
  std::uint32_t header_bytes;
  std::uint32_t row_bytes;
  std::int32_t num_workers;
  std::int32_t num_chips;
  std::int32_t trainer_pid;
  std::int64_t started_unix_ns;
  std::uint64_t status;  ///< JobStatus
  std::int32_t num_axes;
  std::int32_t zero;
  std::int64_t mesh_shape[kAxisCountMax];
  char axis_names[kAxisCountMax][32];
  char job[64];
  char name[256];
  char run_dir[1024];
  char reserved[2056];
};
static_assert(sizeof(BoardHeaderV1) == 4096);
static_assert(std::is_trivially_copyable_v<BoardHeaderV1>);

/// Fields that change often are in the first cache line. Text is declared as words, in which it is
/// copied.
struct alignas(64) BoardRowV1 {
  std::uint64_t sequence;  ///< odd while the row is written
  std::uint64_t step;
  std::uint64_t collective;
  std::int32_t waiting_for;
  std::uint8_t state;  ///< ActorState
  std::uint8_t in_collective;
  std::uint8_t kind;  ///< ActorKind
  std::uint8_t zero;
  std::int64_t updated_ns;
  std::uint64_t mailbox;
  std::int32_t worker;
  std::int32_t chip;
  std::int32_t pid;
  std::int32_t zero2;
  std::uint64_t collective_name[96 / 8];
  std::uint64_t last_message[96 / 8];
  std::uint64_t last_error[256 / 8];
};
static_assert(sizeof(BoardRowV1) == 512);
static_assert(offsetof(BoardRowV1, collective_name) == 64);
static_assert(std::is_trivially_copyable_v<BoardRowV1>);

}  // namespace weft::board_format
