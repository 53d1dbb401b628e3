#pragma once
/// RawAnswer: what `weft inspect --raw` says about its host: copies of a job's memory, and the
/// state of the job's processes. Requests come on stdin and answers go to stdout:
///
///   request = a line of JSON: {"parts": {...}, "sights": [4712]}
///   answer  = a line of JSON, then the pieces of its files: {"schema": "weft.raw/1", "held": true,
///             "boottime_ns": ..., "monotonic_ns": ..., "files": [{"name": "board.bin",
///             "bytes": 8192, "pieces": [[0, 4096]]}]}, or {"schema": ..., "error": "..."}
///
/// A file has zeros between its pieces. The names are those of a record in a run folder
/// (transport/job/job_record.hpp), with processes.json as in the record of a hang.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspect/snapshot/snapshot_reader.hpp"

namespace weft {

struct RawRequest {
  SnapshotParts parts{};
  std::vector<int> sights{};  ///< processes whose stacks are wanted
};
inline constexpr std::size_t kRawRequestBytesMax = std::size_t{64} << 10;

/// Returns the request as a line, with its newline.
std::string to_line(const RawRequest& request);
/// Parses a request. Throws corrupt if the line isn't a request.
RawRequest parse_raw_request(std::string_view line);

/// Returns the bytes of the answer about the job whose segments have the id `memory_id`. An error
/// becomes an answer, too.
std::string raw_answer(const std::string& memory_id, const RawRequest& request);

/// The answer of another host.
struct RawAnswer {
  Snapshot job{};
  std::int64_t boottime_ns = 0;  ///< the host's clock when it answered
  std::int64_t monotonic_ns = 0;
};

/// Takes the first answer from `bytes`, which may arrive in parts. Returns nothing if the answer
/// isn't complete. Throws corrupt for bytes that no answer can have, and the error that the answer
/// contains.
std::optional<RawAnswer> take_raw_answer(std::string& bytes, const SnapshotParts& parts);

}  // namespace weft
