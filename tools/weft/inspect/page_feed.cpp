#include "tools/weft/inspect/page_feed.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "inspect/page/curves.hpp"
#include "inspect/page/metrics.hpp"
#include "inspect/page/page_state.hpp"
#include "inspect/page/system_page.hpp"
#include "inspect/page/timeline.hpp"
#include "inspect/systems/system_reader.hpp"
#include "inspect/systems/system_why.hpp"
#include "inspect/why/explain.hpp"
#include "inspect/why/hang.hpp"
#include "inspect/why/wait_graph.hpp"
#include "tools/weft/inspect/job.hpp"
#include "tools/weft/inspect/systems.hpp"
#include "transport/job/job_record.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kBetweenPageLooks{250};
constexpr std::chrono::milliseconds kFollowerWaits{300};
constexpr std::chrono::milliseconds kFirstLooks{50};
/// The least interval between snapshots that include the events.
constexpr std::chrono::milliseconds kBetweenEvents{950};
/// The shortest interval between two stops of threads. A stop reads where the threads are.
constexpr std::chrono::seconds kBetweenSights{5};
/// The time for which a job must make no progress before its threads are stopped, so that a job
/// with long steps isn't stopped between them.
constexpr double kStillBeforeSights_s = 0.4;
/// The maximum number of bytes that are read of progress.csv: its end.
constexpr std::streamoff kProgressBytesMax = 16 << 20;

bool is_over(const Snapshot& job) { return job.over() || !job.live || !job.held; }

bool find_row(const SystemSnapshot& system, const std::string& actor) {
  for (std::uint32_t row = 0; row < system.actors.size(); ++row) {
    if (system.actor_name(row) == actor) return true;
  }
  return false;
}

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

PageFeed::PageFeed(JobReader reader) : reader_(std::move(reader)) {
  last_ = reader_->read({.metrics = true});
  if (!is_over(last_)) std::this_thread::sleep_for(kFirstLooks);
  start();
}

PageFeed::PageFeed(SystemSnapshot system) {
  last_.job = system.id;
  systems_.push_back(std::move(system));
  std::this_thread::sleep_for(kFirstLooks);
  start();
}

void PageFeed::start() {
  look(true);
  from_folder_ = reader_ && !last_.live;
  thread_ = std::thread([this] { run(); });
}

PageFeed::~PageFeed() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PageFeed::run() {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    if (followers_ == 0) {
      changed_.wait(lock, [&] { return stops_ || followers_ != 0; });
    } else {
      changed_.wait_for(lock, kBetweenPageLooks, [&] { return stops_; });
    }
    if (stops_) return;
    look(Clock::now() - events_at_ >= kBetweenEvents);
  }
}

/// Takes a snapshot of the job. If the job can't be read, the last snapshot remains.
void PageFeed::look(bool events) {
  std::optional<Snapshot> before;
  if (reader_ && !from_folder_) {
    try {
      Snapshot now = reader_->read({.events = events, .metrics = true});
      if (events) events_at_ = Clock::now();
      if (now.live && is_over(now) && go_on_with_folder(now))
        now = reader_->read({.events = true, .metrics = true});
      keep_events(now);
      before = std::exchange(last_, std::move(now));
      explain_look(*before);
    } catch (const std::exception&) {
    }
  }
  if (reader_) {
    look_at_systems_of_job();
  } else {
    look_at_system();
    if (events) events_at_ = Clock::now();
  }
  std::string state = reader_ ? page_state(last_, why_, before ? &*before : nullptr, systems_)
                              : system_page_state(systems_.front(), why_);
  if (state != state_) {
    state_ = std::move(state);
    ++state_number_;
  }
  ++message_number_;
  sent_ms_ = unix_ms();
  changed_.notify_all();
}

/// Takes a snapshot of the actor system. If the system has ended and its memory is removed, the
/// last snapshot remains, marked as dead.
void PageFeed::look_at_system() {
  SystemSnapshot& last = systems_.front();
  SystemSnapshot now = last;
  try {
    now = read_actor_system(last.id);
  } catch (const std::exception&) {
    now.is_held = false;
    for (SystemProcess& process : now.processes) process.process.state = 0;
  }
  why_ = explain_system(last, now);
  last_.at_ns = boottime_ns();
  last = std::move(now);
}

void PageFeed::look_at_systems_of_job() {
  systems_.clear();
  if (is_over(last_)) return;
  try {
    for (const std::string& id : actor_systems()) {
      SystemSnapshot system = read_actor_system(id);
      if (system.is_held && system.pid(0) == last_.header.trainer_pid) {
        systems_.push_back(std::move(system));
      }
    }
  } catch (const std::exception&) {
    // A system has just ended, or can't be read. The job's page continues without systems.
  }
}

/// Switches to the copies of the job's memory in its run folder. Returns false if there are none: a
/// job that has ended well leaves no copies, but its board is still mapped in this process.
bool PageFeed::go_on_with_folder(const Snapshot& job) {
  const std::string& run_dir = job.header.run_dir;
  std::error_code ignored;
  if (!fs::exists(incident_in(run_dir) + "/board.bin", ignored)) return false;
  JobReader folder = JobReader::of_folder(run_dir);
  if (folder.read({.processes = false}).job != job.job) return false;
  reader_ = std::move(folder);
  from_folder_ = true;
  return true;
}

void PageFeed::keep_events(Snapshot& now) {
  if (!now.rings.empty()) return;
  now.rings = std::move(last_.rings);
  now.waits = std::move(last_.waits);
  now.texts = std::move(last_.texts);
  now.unix_minus_monotonic_ns = last_.unix_minus_monotonic_ns;
  now.events_at_ns = last_.events_at_ns;
}

void PageFeed::explain_look(const Snapshot& before) {
  if (is_over(last_)) {
    why_ = explain_ended(last_);
    return;
  }
  if (!has_moved(before, last_) && idle_s(last_) >= kStillBeforeSights_s) add_known_sights(before);
  why_ = explain(before, last_);
  if (why_.verdict == Verdict::well) find_slow(why_, std::span(&last_, 1));
}

void PageFeed::add_known_sights(const Snapshot& before) {
  const std::vector<HostPid> worth = worth_a_sight(before, last_);
  std::vector<HostPid> known;
  for (const ProcessSight& sight : before.sights) known.push_back({sight.host, sight.pid});
  const bool is_known = std::ranges::is_permutation(worth, known);
  if (is_known && Clock::now() - sights_at_ < kBetweenSights) {
    last_.sights = before.sights;
    return;
  }
  reader_->add_sights(last_, worth);
  sights_at_ = Clock::now();
}

/// Reads the events for a request, since the feed's thread doesn't read them while nobody follows
/// the job.
void PageFeed::look_for_events() {
  if (Clock::now() - events_at_ >= kBetweenEvents) look(true);
}

std::string PageFeed::timeline(std::int64_t after_ns) {
  const std::lock_guard lock(mutex_);
  look_for_events();
  const std::int64_t now_ns = reader_ && is_over(last_) ? 0 : clock_ns(CLOCK_MONOTONIC);
  return timeline_json(last_, {.after_ns = after_ns, .now_ns = now_ns});
}

std::string PageFeed::curves() {
  const std::lock_guard lock(mutex_);
  look_for_events();
  return curves_json(last_,
                     head_and_tail(last_.header.run_dir + "/progress.csv", kProgressBytesMax));
}

std::string PageFeed::metrics() {
  const std::lock_guard lock(mutex_);
  look_for_events();
  const std::string systems = system_metrics_text(systems_);
  return reader_ ? metrics_text(last_) + systems : systems;
}

std::string PageFeed::stack(const std::string& actor) {
  const std::lock_guard lock(mutex_);
  const auto row = std::ranges::find_if(
      last_.rows, [&](const ActorRow& each) { return name_of_node(last_, each.index) == actor; });
  const bool is_living = row != last_.rows.end() && !is_over(last_);
  if (row == last_.rows.end()) {
    for (const SystemSnapshot& system : systems_) {
      if (find_row(system, actor)) return system_stack_json(system, actor);
    }
  }
  if (!is_living || last_.sight(last_.id_of(*row)) != nullptr)
    return stack_json(last_, why_, actor);
  if (Clock::now() - asked_at_ >= kBetweenSights) {
    asked_ = last_;
    asked_at_ = Clock::now();
  }
  reader_->add_sights(asked_, std::array{asked_.id_of(*row)});
  return stack_json(asked_, why_, actor);
}

/// Returns the known stacks of actors as JSON: an object whose keys are the actors' names.
std::string PageFeed::known_stacks() const {
  std::string text;
  for (const ActorRow& row : last_.rows) {
    const std::string name = name_of_node(last_, row.index);
    const auto is_it = [&](const Root& root) { return root.actor == name; };
    const bool is_known =
        last_.sight(last_.id_of(row)) != nullptr || std::ranges::any_of(why_.roots, is_it);
    if (!is_known) continue;
    text +=
        fmt::format(R"({}"{}": {})", text.empty() ? "" : ", ", name, stack_json(last_, why_, name));
  }
  return "{" + text + "}";
}

PageData PageFeed::all() {
  const std::string curve_data = curves();
  const std::string slices = timeline(0);
  const std::lock_guard lock(mutex_);
  return {.at_s = static_cast<double>(last_.at_ns) / 1e9,
          .at_unix_s = static_cast<double>(unix_ms()) / 1e3,
          .state = state_,
          .timeline = slices,
          .curves = curve_data,
          .stacks = known_stacks()};
}

PageFeed::Follower::Follower(PageFeed& feed) : feed_(feed) {
  const std::lock_guard lock(feed_.mutex_);
  ++feed_.followers_;
  feed_.changed_.notify_all();
}

PageFeed::Follower::~Follower() {
  const std::lock_guard lock(feed_.mutex_);
  --feed_.followers_;
}

std::optional<FeedMessage> PageFeed::Follower::next() {
  std::unique_lock lock(feed_.mutex_);
  const bool any = feed_.changed_.wait_for(
      lock, kFollowerWaits, [&] { return feed_.stops_ || feed_.message_number_ != message_; });
  if (!any || feed_.stops_) return {};
  message_ = feed_.message_number_;
  FeedMessage message{.number = message_};
  message.json = fmt::format(R"({{"at": {}, "sent_ms": {})",
                             static_cast<double>(feed_.last_.at_ns) / 1e9, feed_.sent_ms_);
  if (state_ != feed_.state_number_) {
    state_ = feed_.state_number_;
    message.json += fmt::format(R"(, "state": {})", feed_.state_);
  }
  message.json += '}';
  return message;
}

int with_feed(const std::string& asked, const std::function<int(PageFeed&)>& action) {
  if (!selects_system(asked)) {
    return with_job(asked, [&](JobReader& reader) {
      PageFeed feed(std::move(reader));
      return action(feed);
    });
  }
  int code = 0;
  std::optional<SystemSnapshot> system = read_asked_system(asked, code);
  if (!system) return code;
  PageFeed feed(std::move(*system));
  return action(feed);
}

}  // namespace weft
