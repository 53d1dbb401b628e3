/// Runs a rank of Boost.Interprocess message_queue, with one queue in each direction. A message is
/// copied into and out of the queue.

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/interprocess/ipc/message_queue.hpp>

#include "bench/collectives/rank.hpp"

namespace {

using namespace weft::bench;
namespace bip = boost::interprocess;

/// The queues between ranks 0 and 1, which rank 0 makes. Their names are removed once both ranks
/// have opened them.
class QueuePair {
 public:
  QueuePair(const std::string& name, int rank, std::size_t bytes) : rank_(rank) {
    for (int from = 0; from < 2; ++from) {
      names_[from] = name + "-" + std::to_string(from);
      if (rank == 0) {
        queues_[from].emplace(bip::create_only, names_[from].c_str(), kDepth, bytes);
      } else {
        open_when_made(from);
      }
    }
    std::vector<float> any(bytes / sizeof(float));
    if (rank == 1) {
      send(any);
    } else {
      receive(any);
      remove();
    }
  }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  /// Sends a message of the channel's size.
  void send(std::span<const float> message) {
    queues_[rank_]->send(message.data(), message.size_bytes(), 0);
  }
  void receive(std::span<float> message) {
    bip::message_queue::size_type size = 0;
    unsigned priority = 0;
    queues_[1 - rank_]->receive(message.data(), message.size_bytes(), size, priority);
  }

 private:
  static constexpr std::size_t kDepth = 4;

  void open_when_made(int from) {
    while (!queues_[from]) {
      try {
        queues_[from].emplace(bip::open_only, names_[from].c_str());
      } catch (const bip::interprocess_exception&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }
  void remove() const {
    for (const std::string& name : names_) bip::message_queue::remove(name.c_str());
  }

  int rank_;
  std::string names_[2];
  std::optional<bip::message_queue> queues_[2];
};

class MessageQueueRank : public Collectives {
 public:
  explicit MessageQueueRank(const Place& place) : rank_(place.rank), name_(place.folder) {
    std::ranges::replace(name_, '/', '-');
    barrier_.emplace(name_ + "-barrier", rank_, sizeof(float));
  }

  void barrier() override {
    float nothing = 0;
    barrier_->send({&nothing, 1});
    barrier_->receive({&nothing, 1});
  }

  void open_channel(std::size_t bytes) override {
    if (bytes == out_.size() * sizeof(float)) return;
    out_.assign(bytes / sizeof(float), 0);
    in_.assign(bytes / sizeof(float), 0);
    channel_.reset();
    channel_.emplace(name_ + "-channel", rank_, bytes);
  }
  std::span<float> loan() override { return out_; }
  void send() override { channel_->send(out_); }
  std::span<const float> receive() override {
    channel_->receive(in_);
    return in_;
  }
  void release() override {}

 private:
  int rank_;
  std::string name_;
  std::optional<QueuePair> barrier_;
  std::optional<QueuePair> channel_;
  std::vector<float> out_;
  std::vector<float> in_;
};

}  // namespace

int main() {
  return run_rank([] {
    const Place place = Place::from_environment();
    MessageQueueRank rank(place);
    pin(place.rank, place.ranks);
    serve(place.rank, place.ranks, rank);
  });
}
