#pragma once
/// The format of the board's segment, version 2 (native byte order, little-endian hosts):
///
///   board  = header row{1 + num_workers + num_chips}        row 0: the trainer, then the workers,
///   header = BoardHeaderV1, 4096 bytes                      then the devices by chip
///   row    = BoardRowV2, 640 bytes
///
/// Text is UTF-8, cut to the size of its field less one byte and padded with zeros. A change of the
/// format needs a new version; golden file: tests/golden/board-v2.bin. Version 1 is refused: its
/// rows had neither a place nor counts of messages. The device ids, the namespaces, the hosts and
/// the last fields of a row use bytes that were reserved and zero before.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace weft::board_format {

inline constexpr std::uint64_t kMagic = 0x3164'7262'7466'6577;  // "weftbrd1"
inline constexpr std::uint32_t kVersion = 2;
inline constexpr int kAxisCountMax = 16;
inline constexpr int kDeviceIdCountMax = 512;
inline constexpr int kRowCountMax = 1 << 16;
/// The byte of the file that the process that made the board keeps locked.
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
  /// Ids by position in the mesh; zeros: 0, 1, 2, ...
  std::uint16_t device_ids[kDeviceIdCountMax];
  std::uint64_t time_namespace;  ///< time namespace of the board's times; 0: unknown
  /// CLOCK_BOOTTIME - CLOCK_REALTIME on this host, when the board was made
  std::int64_t boottime_minus_realtime_ns;
  std::uint32_t dcn_shape[kAxisCountMax];  ///< hosts per axis; zeros: one host
  std::int32_t host;       ///< the host that writes the board; rows of other hosts are copies
  std::int32_t num_hosts;  ///< number of hosts; 0: one host
  char reserved[944];
};
static_assert(sizeof(BoardHeaderV1) == 4096);
static_assert(std::is_trivially_copyable_v<BoardHeaderV1>);

/// A row of the board. Fields that change often are in the first cache line. Text fields are arrays
/// of words, because text is copied word by word.
struct alignas(64) BoardRowV2 {
  std::uint64_t sequence;  ///< odd while the row is written
  std::uint64_t step;
  std::uint64_t collective;
  std::int32_t waiting_for;
  std::uint8_t state;  ///< ActorState
  std::uint8_t in_collective;
  std::uint8_t kind;  ///< ActorKind
  std::uint8_t zero;
  std::int64_t updated_ns;
  std::int64_t since_ns;  ///< when `state` was entered
  std::int32_t worker;
  std::int32_t chip;
  std::int32_t pid;
  std::int32_t tid;
  std::uint64_t collective_name[96 / 8];
  std::uint64_t source[96 / 8];
  std::uint64_t last_error[256 / 8];

  /// The counts of messages, which `sequence` doesn't guard. Threads that send messages count
  /// `came`; the actor's thread counts the others.
  std::uint64_t came;
  std::uint64_t message_sequence;  ///< odd while the following fields are written
  std::uint64_t begun;
  std::uint64_t done;
  std::uint64_t message[32 / 8];  ///< name of the message that was begun last

  /// When the actor last did something else than run the program's own code.
  std::int64_t moved_ns;
  std::uint64_t pid_namespace;  ///< the namespace in which `pid` is valid; 0: unknown
  /// The foreign call that the actor is in. `sequence` doesn't guard these fields. The call's name
  /// is in `collective_name`, which otherwise only chips use.
  std::int64_t inside_since_ns;  ///< when the call began; 0: there is no such call
  std::int64_t inside_number;
  std::int32_t inside_tid;
  std::int32_t zeros;
  std::uint64_t reserved[24 / 8];
};
static_assert(sizeof(BoardRowV2) == 640);
static_assert(offsetof(BoardRowV2, collective_name) == 64);
static_assert(offsetof(BoardRowV2, came) == 512);
static_assert(std::is_trivially_copyable_v<BoardRowV2>);

}  // namespace weft::board_format
