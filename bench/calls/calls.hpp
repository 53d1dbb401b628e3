#pragma once
/// Shared code of the programs of bench_calls. Each measures one implementation of calls between
/// two processes of a host.
///
///   PROGRAM call BYTES MILLISECONDS     prints {"p50": us, "p99": us}
///   PROGRAM stream BYTES MILLISECONDS   prints {"per_s": messages}

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace weft::bench {

/// The client of a server in another process. Messages are words, which the client writes and the
/// server sums up.
class CallsClient {
 public:
  virtual ~CallsClient() = default;
  /// Sends words begin, begin + 1, ... and returns their sum, as the server has computed it.
  virtual std::uint64_t call(std::size_t words, std::uint64_t begin) = 0;
  /// Sends the message `count` times, and returns the sum of the last one once all have been read.
  virtual std::uint64_t stream(std::size_t words, int count) = 0;
};

/// Writes words begin, begin + 1, ...
void fill_words(std::span<std::uint64_t> words, std::uint64_t begin);
std::uint64_t sum_words(std::span<const std::uint64_t> words);

/// Runs main() of such a program. `start` starts the server, and returns a connected client.
int run_calls(int argc, char** argv, const std::function<CallsClient&()>& start);

/// Runs the server in a fork, which ends with this process.
void fork_server(const std::function<void()>& serve);

/// Waits a moment in a loop that polls: spins if this process may use more than one core, and else
/// yields.
void poll_again();

}  // namespace weft::bench
