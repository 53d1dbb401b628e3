/// Measures calls of a CAF actor in another process, over TCP on this host, which is how CAF's
/// middleman connects processes.

#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <weft/tensor/error.hpp>

#include "bench/calls/calls.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

using Words = std::vector<std::uint64_t>;

class Config : public caf::actor_system_config {
 public:
  Config() {
    add_message_type<Words>("words");
    load<caf::io::middleman>();
    set("logger.verbosity", caf::atom("quiet"));
  }
};

caf::behavior summer() {
  return {[](const Words& words) { return sum_words(words); },
          [](caf::atom_value, const Words& words) {
            const std::uint64_t sum = sum_words(words);
            asm volatile("" : : "r"(sum));
          }};
}

class CafClient final : public CallsClient {
 public:
  explicit CafClient(std::uint16_t port) {
    auto server = system_.middleman().remote_actor("127.0.0.1", port);
    if (!server) fail(Errc::io, "CAF can't connect to the server");
    server_ = *server;
  }
  std::uint64_t call(std::size_t words, std::uint64_t begin) override {
    Words all(words);
    fill_words(all, begin);
    std::uint64_t sum = 0;
    self_->request(server_, caf::infinite, std::move(all))
        .receive(
            [&](std::uint64_t got) { sum = got; },
            [&](const caf::error& error) { fail(Errc::io, "CAF: {}", system_.render(error)); });
    return sum;
  }
  std::uint64_t stream(std::size_t words, int count) override {
    for (int i = 0; i < count - 1; ++i) {
      Words all(words);
      fill_words(all, 0);
      self_->send(server_, caf::atom("take"), std::move(all));
    }
    return call(words, 0);
  }

 private:
  Config config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  caf::actor server_;
};

}  // namespace

int main(int argc, char** argv) {
  std::optional<CafClient> client;
  const int code = run_calls(argc, argv, [&]() -> CallsClient& {
    int ends[2];
    if (::pipe(ends) != 0) fail(Errc::io, "pipe failed");
    fork_server([&] {
      Config config;
      caf::actor_system system(config);
      const auto port = system.middleman().publish(system.spawn(summer), 0, "127.0.0.1");
      if (!port || ::write(ends[1], &*port, sizeof *port) != sizeof *port) return;
      for (;;) ::pause();
    });
    std::uint16_t port = 0;
    if (::read(ends[0], &port, sizeof port) != sizeof port) fail(Errc::io, "no CAF server");
    return client.emplace(port);
  });
  ::_exit(code);  // without destructors, because CAF's actor system would wait for the connection
}
