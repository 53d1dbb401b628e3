#pragma once
/// PageFeed: reads a job, or an actor system, repeatedly, for all browsers that show its page.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "inspect/hosts/job_reader.hpp"
#include "inspect/page/document.hpp"
#include "inspect/systems/system_snapshot.hpp"
#include "inspect/why/why.hpp"

namespace weft {

/// One message to the followers of a job.
struct FeedMessage {
  std::uint64_t number = 0;
  std::string json{};  ///< {"at", "sent_ms", "state"}; an unchanged state is omitted
};

/// Reads a job for its page. Thread-safe. While there is a follower, the feed's thread reads the
/// job four times a second; otherwise it reads nothing. When the job has ended, the feed continues
/// with the contents of the run folder, or else with the last snapshot.
class PageFeed {
 public:
  /// Makes a feed of a job. Throws the errors of JobReader::read().
  explicit PageFeed(JobReader reader);
  /// Makes a feed of an actor system. `system` is its first snapshot.
  explicit PageFeed(SystemSnapshot system);
  ~PageFeed();
  PageFeed(const PageFeed&) = delete;
  PageFeed& operator=(const PageFeed&) = delete;

  /// Follows the job: the feed's thread reads it while a Follower exists.
  class Follower {
   public:
    explicit Follower(PageFeed& feed);
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    /// Returns the next message; the first message has the state. Returns nothing if no message
    /// comes within 300 ms.
    std::optional<FeedMessage> next();

   private:
    PageFeed& feed_;
    std::uint64_t message_ = 0;
    std::uint64_t state_ = 0;
  };

  std::string timeline(std::int64_t after_ns);
  std::string curves();
  std::string metrics();
  /// Returns the stack of an actor's thread; see stack_json(). Reads the stacks of all threads of
  /// the actor's process if needed.
  std::string stack(const std::string& actor);
  PageData all();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void start();
  void look(bool events);
  void look_at_system();
  void look_at_systems_of_job();
  void look_for_events();
  bool go_on_with_folder(const Snapshot& job);
  void keep_events(Snapshot& now);
  void explain_look(const Snapshot& before);
  void add_known_sights(const Snapshot& before);
  std::string known_stacks() const;

  std::mutex mutex_;  // guards all members below except the thread
  std::condition_variable changed_;
  std::optional<JobReader> reader_;      // absent if the page shows an actor system
  std::vector<SystemSnapshot> systems_;  // the shown system, or the systems of the job's program
  bool from_folder_ = false;
  Snapshot last_;
  Snapshot asked_;  // has the results of stack(), by process
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

/// Calls `action` with a feed of the job or actor system that `asked` selects as kJobOrSystemHelp
/// says, and returns the result of `action`. If there is no such job or system, prints the reason
/// and returns the exit code.
int with_feed(const std::string& asked, const std::function<int(PageFeed&)>& action);

}  // namespace weft
