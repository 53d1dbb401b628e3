#include "actors/commands/command_posts.hpp"

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

Error job_has_ended(const std::string& what) {
  return {Errc::unavailable, fmt::format("{} was refused: the job has ended", what)};
}

void require_name(const std::string& name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (!name.empty() && name.size() <= kCommandNameMax && std::ranges::all_of(name, is_allowed)) {
    return;
  }
  fail(Errc::invalid_argument,
       "command.name = {}: expected 1 to {} letters, digits, '_', '-' and '.', such as "
       "\"learning_rate\"",
       Metrics(name.substr(0, 2 * kCommandNameMax))
           .dump(-1, ' ', true, Metrics::error_handler_t::replace),
       kCommandNameMax);
}

}  // namespace

struct PostedCommand::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Outcome<std::uint64_t>> answer;
};

Outcome<std::uint64_t> PostedCommand::outcome() const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->answer.has_value(); });
  return *state_->answer;
}

bool PostedCommand::wait_for(std::chrono::nanoseconds time) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, time, [this] { return state_->answer.has_value(); });
}

void CommandPosts::post(const std::string& name, const Metrics& payload, Answered answered) {
  require_name(name);
  std::string text = payload.dump(-1, ' ', false, Metrics::error_handler_t::replace);
  if (text.size() > kCommandPayloadMax) {
    fail(Errc::invalid_argument,
         "command.payload of '{}' has {} bytes as JSON: expected at most {}; write large values to "
         "a file and post its path",
         name, text.size(), kCommandPayloadMax);
  }
  {
    const std::lock_guard lock(mutex_);
    if (send_) {
      waiting_.emplace(++last_, std::move(answered));
      // Sending while the mutex is locked lets posts arrive in the order of their numbers.
      send_({.post = last_, .name = name, .payload = std::move(text)});
      return;
    }
  }
  answered(job_has_ended(fmt::format("the command '{}'", name)));
}

PostedCommand CommandPosts::post(const Command& command) {
  auto state = std::make_shared<PostedCommand::State>();
  post(command.name, command.payload, [state](const Answer& answer) {
    {
      const std::lock_guard lock(state->mutex);
      state->answer = answer;
    }
    state->changed.notify_all();
  });
  return PostedCommand(std::move(state));
}

void CommandPosts::open(std::function<void(const CommandPost&)> send) {
  const std::lock_guard lock(mutex_);
  send_ = std::move(send);
}

void CommandPosts::answered(const CommandAnswer& answer) {
  Answered call;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = waiting_.find(answer.post);
    if (waiting == waiting_.end()) return;
    call = std::move(waiting->second);
    waiting_.erase(waiting);
  }
  call(answer.outcome);
}

void CommandPosts::close() {
  std::map<std::uint64_t, Answered> waiting;
  {
    const std::lock_guard lock(mutex_);
    send_ = nullptr;
    waiting.swap(waiting_);
  }
  for (const auto& [number, call] : waiting) call(job_has_ended("the command"));
}

}  // namespace weft
