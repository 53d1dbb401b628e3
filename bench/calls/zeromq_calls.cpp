/// Measures a pair of ZeroMQ sockets over a Unix socket.

#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include <zmq.hpp>

#include "bench/calls/calls.hpp"

namespace {

using namespace weft::bench;

/// The first word of a message says whether the server answers it.
class ZeromqClient final : public CallsClient {
 public:
  explicit ZeromqClient(const std::string& address) { socket_.bind(address); }

  std::uint64_t call(std::size_t words, std::uint64_t begin) override {
    send(words, begin, true);
    return answer();
  }
  std::uint64_t stream(std::size_t words, int count) override {
    for (int i = 0; i < count; ++i) send(words, 0, i == count - 1);
    return answer();
  }

  static void serve(const std::string& address) {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::pair);
    socket.connect(address);
    for (;;) {
      zmq::message_t message;
      (void)socket.recv(message);
      const std::span words{message.data<std::uint64_t>(), message.size() / 8};
      const std::uint64_t sum = sum_words(words.subspan(1));
      if (words[0] != 0) socket.send(zmq::buffer(&sum, sizeof sum));
    }
  }

 private:
  void send(std::size_t words, std::uint64_t begin, bool is_answered) {
    zmq::message_t message(8 * (words + 1));
    const std::span all{message.data<std::uint64_t>(), words + 1};
    all[0] = is_answered ? 1 : 0;
    fill_words(all.subspan(1), begin);
    socket_.send(message, zmq::send_flags::none);
  }
  std::uint64_t answer() {
    zmq::message_t message;
    (void)socket_.recv(message);
    return *message.data<std::uint64_t>();
  }

  zmq::context_t context_;
  zmq::socket_t socket_{context_, zmq::socket_type::pair};
};

}  // namespace

int main(int argc, char** argv) {
  std::optional<ZeromqClient> client;
  return run_calls(argc, argv, [&]() -> CallsClient& {
    const std::string address = "ipc://@weft-bench-" + std::to_string(::getpid());
    fork_server([&] { ZeromqClient::serve(address); });
    return client.emplace(address);
  });
}
