#pragma once
/// What bench_collectives and its rank processes say to each other: a JSON object a line, over a
/// Unix socket that each rank connects to.
///
///   rank:  Hello                            once
///   bench: Request      rank: Reply         until the bench closes the socket
///
/// A rank sleeps in read() while others are measured.

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
  channel,  ///< messages from rank 0 to rank 1, filled in place and read
  probe,    ///< a cache line from rank 0 to rank 1 and back
};
std::string_view to_string(Op op) noexcept;
/// Throws invalid_argument.
Op parse_op(std::string_view name);
/// The op cuts its tensor into a part per rank.
bool has_parts(Op op) noexcept;

/// The limit of a loop of less than that is the exchange of a cache line.
inline constexpr std::size_t kExchangeBytes = 4096;

/// loop: calls back to back. cycle: every rank writes all of its tensor, calls, reads all of the
/// result; and the same with a barrier in place of the call. A channel's loop is a stream, its
/// cycle a message there and one back.
enum class Metric : std::uint8_t { loop, cycle };

/// Environment of a rank process. What has its own way to number ranks (MPI) ignores kRankVariable.
inline constexpr char kSocketVariable[] = "WEFT_BENCH_SOCKET";
inline constexpr char kRankVariable[] = "WEFT_BENCH_RANK";
inline constexpr char kRanksVariable[] = "WEFT_BENCH_RANKS";
inline constexpr char kJobVariable[] = "WEFT_BENCH_JOB";        ///< the team's JobMemory
inline constexpr char kFolderVariable[] = "WEFT_BENCH_FOLDER";  ///< of the team, for its own files

struct Hello {
  int rank = 0;
};

struct Request {
  Op op = Op::barrier;
  /// Of the larger of a rank's source and destination; a multiple of 4, of 4 * ranks where the op
  /// has parts.
  std::size_t bytes = 0;
  Metric metric = Metric::loop;
  std::int64_t repetitions = 1;
  /// The repetitions are timed in so many parts, of which the median counts: one that was
  /// interrupted says nothing. 1: their mean counts, where ranks take turns on a core anyway.
  int parts = 1;
  int round = 0;
};

struct Reply {
  double call_seconds = 0;            ///< of one repetition
  double baseline_seconds = 0;        ///< cycle: the same with only a barrier
  std::optional<bool> verified = {};  ///< absent: there is no result to look at
  std::string error = {};             ///< why there is none of the above
};

void to_json(nlohmann::json& json, const Hello& hello);
void from_json(const nlohmann::json& json, Hello& hello);
void to_json(nlohmann::json& json, const Request& request);
void from_json(const nlohmann::json& json, Request& request);
void to_json(nlohmann::json& json, const Reply& reply);
void from_json(const nlohmann::json& json, Reply& reply);

/// One end of the socket.
class Connection {
 public:
  /// Owns the descriptor.
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  /// Throws io.
  static Connection open(const std::string& path);
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&&) = delete;
  ~Connection();

  void send(const nlohmann::json& message);
  /// The next message; none: the other end is closed. Throws io; timeout; cancelled after a
  /// signal that was caught.
  std::optional<nlohmann::json> receive();

 private:
  int descriptor_;
  std::string received_;  ///< behind the last message
};

}  // namespace weft::bench
