/// Measures iceoryx, with a publisher and a subscriber in each direction; both sides poll.
/// bench_calls starts iox-roudi.

#include <optional>

#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>

#include <weft/tensor/error.hpp>

#include "bench/calls/calls.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr std::uint64_t kQueue = 64;
constexpr std::uint32_t kAlignment = 64;

iox::popo::PublisherOptions publisher_options() {
  iox::popo::PublisherOptions options;
  options.subscriberTooSlowPolicy = iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER;
  return options;
}
iox::popo::SubscriberOptions subscriber_options() {
  iox::popo::SubscriberOptions options;
  options.queueCapacity = kQueue;
  options.queueFullPolicy = iox::popo::QueueFullPolicy::BLOCK_PRODUCER;
  return options;
}

/// One side of the connection. A message has the number of its words, whether it is answered (0 or
/// 1), and the words.
class IceoryxEnd {
 public:
  IceoryxEnd(const char* out, const char* in)
      : publisher_({"weft", "calls", iox::capro::IdString_t(iox::cxx::TruncateToCapacity, out)},
                   publisher_options()),
        subscriber_({"weft", "calls", iox::capro::IdString_t(iox::cxx::TruncateToCapacity, in)},
                    subscriber_options()) {
    while (!publisher_.hasSubscribers() ||
           subscriber_.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) {
      poll_again();
    }
  }

  template <typename Fill>
  void send(std::size_t words, bool is_answered, Fill fill) {
    auto loan = publisher_.loan(static_cast<std::uint32_t>(8 * (words + 2)), kAlignment);
    if (loan.has_error()) fail(Errc::no_space, "iceoryx: no chunk for {} words", words);
    auto* const all = static_cast<std::uint64_t*>(loan.value());
    all[0] = words;
    all[1] = is_answered ? 1 : 0;
    fill(std::span(all + 2, words));
    publisher_.publish(loan.value());
  }
  /// Calls use(words, is_answered) for the next message.
  template <typename Use>
  void receive(Use use) {
    for (;;) {
      auto taken = subscriber_.take();
      if (taken.has_error()) {
        poll_again();
        continue;
      }
      const auto* const all = static_cast<const std::uint64_t*>(taken.value());
      use(std::span(all + 2, all[0]), all[1] != 0);
      return subscriber_.release(taken.value());
    }
  }

 private:
  iox::popo::UntypedPublisher publisher_;
  iox::popo::UntypedSubscriber subscriber_;
};

class IceoryxClient final : public CallsClient {
 public:
  std::uint64_t call(std::size_t words, std::uint64_t begin) override {
    end_.send(words, true, [&](auto all) { fill_words(all, begin); });
    return answer();
  }
  std::uint64_t stream(std::size_t words, int count) override {
    for (int i = 0; i < count; ++i) {
      end_.send(words, i == count - 1, [](auto all) { fill_words(all, 0); });
    }
    return answer();
  }
  static void serve() {
    IceoryxEnd end("back", "there");
    for (;;) {
      std::optional<std::uint64_t> sum;
      end.receive([&](auto words, bool is_answered) {
        const std::uint64_t all = sum_words(words);
        if (is_answered) sum = all;
        asm volatile("" : : "r"(all));
      });
      if (sum) end.send(1, false, [&](auto words) { words[0] = *sum; });
    }
  }

 private:
  std::uint64_t answer() {
    std::uint64_t sum = 0;
    end_.receive([&](auto words, bool) { sum = words[0]; });
    return sum;
  }

  IceoryxEnd end_{"there", "back"};
};

void join(const std::string& name) {
  iox::log::LogManager::GetLogManager().SetDefaultLogLevel(iox::log::LogLevel::kError);
  iox::runtime::PoshRuntime::initRuntime({iox::cxx::TruncateToCapacity, name});
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<IceoryxClient> client;
  return run_calls(argc, argv, [&]() -> CallsClient& {
    fork_server([] {
      join("weft-calls-server");
      IceoryxClient::serve();
    });
    join("weft-calls-client");
    return client.emplace();
  });
}
