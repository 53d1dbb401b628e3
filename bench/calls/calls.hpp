#pragma once
/// The code that the programs of bench_calls share. Each program measures one implementation of
/// calls between two processes of a host.
///
///   PROGRAM call BYTES MILLISECONDS     prints {"p50": us, "p99": us}
///   PROGRAM stream BYTES MILLISECONDS   prints {"per_s": messages}

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace weft::bench {

/// The client of a server in another process. A message consists of words; the client writes them,
/// and the server adds them up.
class CallsClient {
 public:
  virtual ~CallsClient() = default;
  /// Sends the words begin, begin + 1, ... and returns their sum as computed by the server.
  virtual std::uint64_t call(std::size_t words, std::uint64_t begin) = 0;
  /// Sends the same message `count` times. Once all are read, returns the sum of the last one.
  virtual std::uint64_t stream(std::size_t words, int count) = 0;
};

/// Fills `words` with begin, begin + 1, ...
void fill_words(std::span<std::uint64_t> words, std::uint64_t begin);
std::uint64_t sum_words(std::span<const std::uint64_t> words);

/// Runs the main() of a program. `start` starts the server, and returns a connected client.
int run_calls(int argc, char** argv, const std::function<CallsClient&()>& start);

/// Runs the server in a forked process, which ends when this process ends.
void fork_server(const std::function<void()>& serve);

/// Pauses in a loop that polls: spins if this process may use several cores, and otherwise yields.
void poll_again();

}  // namespace weft::bench
