#pragma once
/// PageFeed: looks at a job again and again, for all who look at its page.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "inspect/page/document.hpp"
#include "inspect/snapshot/snapshot_reader.hpp"
#include "inspect/why/why.hpp"

namespace weft {

/// A message for those who follow a job.
struct FeedMessage {
  std::uint64_t number = 0;
  std::string json{};  ///< {"at", "sent_ms", "state"}; without the state where that is as before
};

/// Thread-safe. Its thread looks four times a second while anybody follows, and else not at all.
/// When the job has ended, it goes on with what the run folder has of it, or else with what was
/// seen last.
class PageFeed {
 public:
  /// Throws as SnapshotReader::read().
  explicit PageFeed(SnapshotReader reader);
  ~PageFeed();
  PageFeed(const PageFeed&) = delete;
  PageFeed& operator=(const PageFeed&) = delete;

  /// While it is there, the job is looked at.
  class Follower {
   public:
    explicit Follower(PageFeed& feed);
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    /// The next message, the first of which has the state; absent: none has come within 300 ms.
    std::optional<FeedMessage> next();

   private:
    PageFeed& feed_;
    std::uint64_t message_ = 0;
    std::uint64_t state_ = 0;
  };

  std::string timeline(std::int64_t after_ns);
  std::string curves();
  std::string metrics();
  /// The stack of an actor's thread: see stack_json(). Looks at the threads of its process.
  std::string stack(const std::string& actor);
  PageData all();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void look(bool events);
  void look_for_events();
  bool go_on_with_folder(const Snapshot& job);
  void keep_events(Snapshot& now);
  void explain_look(const Snapshot& before);
  void add_known_sights(const Snapshot& before);
  std::string known_stacks() const;

  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable changed_;
  SnapshotReader reader_;
  bool from_folder_ = false;
  Snapshot last_;
  Snapshot asked_;  // has the sights of stack(), by process
  Why why_;
  Clock::time_point events_at_{};
  Clock::time_point sights_at_{};
  Clock::time_point asked_at_{};
  std::string state_;
  std::uint64_t state_number_ = 0;
  std::uint64_t message_number_ = 0;
  std::int64_t sent_ms_ = 0;
  int followers_ = 0;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace weft
