/// Runs a rank of iceoryx: a publisher and a subscriber of untyped messages, which are filled and
/// read in place.

#include <sched.h>

#include <string>

#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>

#include <weft/tensor/error.hpp>

#include "bench/collectives/rank.hpp"
#include "transport/memory/wait.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr std::uint64_t kQueueCapacity = 4;
constexpr std::uint32_t kAlignment = 64;

iox::RuntimeName_t runtime_name(int rank) {
  return {iox::cxx::TruncateToCapacity, "weft-bench-" + std::to_string(rank)};
}

/// Returns the topic under which a rank sends.
iox::capro::ServiceDescription topic(int rank) {
  return {"weft", "bench", {iox::cxx::TruncateToCapacity, std::to_string(rank)}};
}

class IceoryxRank : public Collectives {
 public:
  explicit IceoryxRank(const Place& place)
      : spins_(core_each(place.ranks)),
        publisher_(topic(place.rank), publisher_options()),
        subscriber_(topic(1 - place.rank), subscriber_options()) {
    while (!publisher_.hasSubscribers() ||
           subscriber_.getSubscriptionState() != iox::SubscribeState::SUBSCRIBED) {
      relax();
    }
  }

  void barrier() override {
    bytes_ = sizeof(float);
    loan();
    send();
    receive();
    release();
    bytes_ = message_bytes_;
  }

  void open_channel(std::size_t bytes) override { message_bytes_ = bytes_ = bytes; }

  std::span<float> loan() override {
    const auto loaned = publisher_.loan(static_cast<std::uint32_t>(bytes_), kAlignment);
    if (loaned.has_error()) fail(Errc::no_space, "iceoryx: no chunk of {} bytes", bytes_);
    out_ = loaned.value();
    return {static_cast<float*>(out_), bytes_ / sizeof(float)};
  }
  void send() override { publisher_.publish(out_); }
  std::span<const float> receive() override {
    for (;;) {
      auto taken = subscriber_.take();
      if (!taken.has_error()) {
        in_ = taken.value();
        return {static_cast<const float*>(in_), bytes_ / sizeof(float)};
      }
      relax();
    }
  }
  void release() override { subscriber_.release(in_); }

 private:
  static iox::popo::PublisherOptions publisher_options() {
    iox::popo::PublisherOptions options;
    options.subscriberTooSlowPolicy = iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER;
    return options;
  }
  static iox::popo::SubscriberOptions subscriber_options() {
    iox::popo::SubscriberOptions options;
    options.queueCapacity = kQueueCapacity;
    options.queueFullPolicy = iox::popo::QueueFullPolicy::BLOCK_PRODUCER;
    return options;
  }

  void relax() const { spins_ ? pause_cpu() : static_cast<void>(sched_yield()); }

  bool spins_;
  iox::popo::UntypedPublisher publisher_;
  iox::popo::UntypedSubscriber subscriber_;
  std::size_t message_bytes_ = sizeof(float);
  std::size_t bytes_ = sizeof(float);
  void* out_ = nullptr;
  const void* in_ = nullptr;
};

}  // namespace

int main() {
  return run_rank([] {
    const Place place = Place::from_environment();
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(iox::log::LogLevel::kError);
    iox::runtime::PoshRuntime::initRuntime(runtime_name(place.rank));
    IceoryxRank rank(place);
    pin(place.rank, place.ranks);
    serve(place.rank, place.ranks, rank);
  });
}
