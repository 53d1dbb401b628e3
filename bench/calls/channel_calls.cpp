/// Measures frames of weft's channel, which consists of nothing but shared memory.

#include <optional>

#include "bench/calls/calls.hpp"
#include "transport/channel/channel.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr int kSlotsOfLarge = 3;
constexpr int kSlotsOfSmall = 64;  ///< the slots of a channel for messages of up to 4 KiB

std::span<std::uint64_t> as_words(std::span<std::byte> bytes) {
  return {reinterpret_cast<std::uint64_t*>(bytes.data()), bytes.size() / 8};
}

/// The first word of a message says whether the server answers it; the others are the client's
/// words.
class ChannelClient final : public CallsClient {
 public:
  ChannelClient(Channel& there, Channel& back)
      : there_(there, WaitPolicy::for_threads(2, std::chrono::minutes(1))),
        back_(back, WaitPolicy::for_threads(2, std::chrono::minutes(1))) {}

  std::uint64_t call(std::size_t words, std::uint64_t begin) override {
    send(words, begin, true);
    return answer();
  }
  std::uint64_t stream(std::size_t words, int count) override {
    for (int i = 0; i < count; ++i) send(words, 0, i == count - 1);
    return answer();
  }

  static void serve(Channel& there, Channel& back) {
    const WaitPolicy policy = WaitPolicy::for_threads(2, std::chrono::minutes(1));
    ChannelReader reader(there, policy);
    ChannelWriter writer(back, policy);
    // Throws when the client has ended.
    while (const auto frame = reader.receive()) {
      const std::span words{reinterpret_cast<const std::uint64_t*>(frame->bytes().data()),
                            frame->bytes().size() / 8};
      const std::uint64_t sum = sum_words(words.subspan(1));
      if (words[0] == 0) continue;
      as_words(writer.loan(8))[0] = sum;
      writer.publish();
    }
  }

 private:
  void send(std::size_t words, std::uint64_t begin, bool is_answered) {
    const std::span<std::uint64_t> frame = as_words(there_.loan(8 * (words + 1)));
    frame[0] = is_answered ? 1 : 0;
    fill_words(frame.subspan(1), begin);
    there_.publish();
  }
  std::uint64_t answer() {
    const auto frame = back_.receive();
    return *reinterpret_cast<const std::uint64_t*>(frame->bytes().data());
  }

  ChannelWriter there_;
  ChannelReader back_;
};

}  // namespace

int main(int argc, char** argv) {
  std::optional<Channel> there;
  std::optional<Channel> back;
  std::optional<ChannelClient> client;
  return run_calls(argc, argv, [&]() -> CallsClient& {
    const std::size_t bytes = std::stoul(argv[2]);
    there.emplace(Channel::anonymous({.name = "there",
                                      .slot_count = bytes <= 4096 ? kSlotsOfSmall : kSlotsOfLarge,
                                      .slot_bytes = bytes + 64}));
    back.emplace(Channel::anonymous({.name = "back", .slot_bytes = 64}));
    fork_server([&] { ChannelClient::serve(*there, *back); });
    return client.emplace(*there, *back);
  });
}
