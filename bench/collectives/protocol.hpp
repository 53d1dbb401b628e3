#pragma once
/// The protocol between bench_collectives and its rank processes: JSON objects, one per line, over
/// a Unix socket to which each rank connects.
///
///   rank:  Hello                            once
///   bench: Request      rank: Reply         until the bench closes the socket
///
/// A rank sleeps in read() while other implementations are measured.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace weft::bench {

enum class Op : std::uint8_t {
  barrier,
  all_reduce,  ///< f32 sum, in place
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  channel,  ///< messages from rank 0 to rank 1, filled in place and read in place
  probe,    ///< a cache line that goes from rank 0 to rank 1 and back
};
std::string_view to_string(Op op) noexcept;
/// Returns the op of this name. Throws invalid_argument for an unknown name.
Op parse_op(std::string_view name);
/// Returns whether the op divides its tensor into parts, one for each rank.
bool has_parts(Op op) noexcept;

/// In a loop, the limit of an op with fewer bytes than this is the exchange of a cache line.
inline constexpr std::size_t kExchangeBytes = 4096;

/// loop: successive calls without a pause. cycle: every rank writes its whole tensor, calls the op,
/// and reads the whole result; the baseline has a barrier instead of the op. For a channel, a loop
/// is a stream of messages, and a cycle is a message to the other rank and a message in return.
enum class Metric : std::uint8_t { loop, cycle };

/// Environment variables of a rank process. MPI numbers its ranks itself and ignores kRankVariable.
inline constexpr char kSocketVariable[] = "WEFT_BENCH_SOCKET";
inline constexpr char kRankVariable[] = "WEFT_BENCH_RANK";
inline constexpr char kRanksVariable[] = "WEFT_BENCH_RANKS";
inline constexpr char kJobVariable[] = "WEFT_BENCH_JOB";        ///< the id of the team's JobMemory
inline constexpr char kFolderVariable[] = "WEFT_BENCH_FOLDER";  ///< for the team's own files

struct Hello {
  int rank = 0;
};

struct Request {
  Op op = Op::barrier;
  /// The size in bytes of the larger one of a rank's source and destination. It is a multiple of 4,
  /// or of 4 * ranks if the op has parts.
  std::size_t bytes = 0;
  Metric metric = Metric::loop;
  std::int64_t repetitions = 1;
  /// The number of parts of the repetitions. Each part is timed. The result is the median of the
  /// parts, so that interrupted parts don't count. If ranks share a core, there is 1 part, so the
  /// result is the mean over all repetitions.
  int parts = 1;
  int round = 0;
};

struct Reply {
  double call_seconds = 0;            ///< the time of one repetition
  double baseline_seconds = 0;        ///< for a cycle: the time of a cycle with only a barrier
  std::optional<bool> verified = {};  ///< std::nullopt if there is no result to verify
  std::string error = {};             ///< why the fields above are missing
};

void to_json(nlohmann::json& json, const Hello& hello);
void from_json(const nlohmann::json& json, Hello& hello);
void to_json(nlohmann::json& json, const Request& request);
void from_json(const nlohmann::json& json, Request& request);
void to_json(nlohmann::json& json, const Reply& reply);
void from_json(const nlohmann::json& json, Reply& reply);

/// One end of the socket between the bench and a rank.
class Connection {
 public:
  /// Takes ownership of the descriptor.
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  /// Connects to the socket at `path`. Throws io.
  static Connection open(const std::string& path);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  void send(const nlohmann::json& message);
  /// Returns the next message, or nothing if the other end is closed. Throws io; timeout; and
  /// cancelled if a signal was caught.
  std::optional<nlohmann::json> receive();

 private:
  int descriptor_;
  std::string received_;  ///< the bytes after the last message
};

}  // namespace weft::bench
