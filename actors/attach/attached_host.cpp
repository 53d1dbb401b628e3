#include "actors/attach/attached_host.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/message/tensor_bytes.hpp"
#include "actors/message/translation.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/user/registry.hpp"
#include "transport/memory/life_lock.hpp"

namespace weft {
namespace {

/// The time between two checks of the system's life lock.
constexpr int kLookAtLockMs = 500;

/// A call that couldn't be sent.
class RefusedCall final : public detail::PendingCall {
 public:
  RefusedCall(std::shared_ptr<detail::ActorProcess> process, Error error)
      : process_(std::move(process)) {
    answer_.error = std::move(error);
  }
  bool wait_until(std::chrono::steady_clock::time_point) override { return true; }
  std::chrono::steady_clock::time_point now() const override { return process_->now(); }
  const detail::Answer& answer() const override { return answer_; }
  void when_done(std::function<void()> done) override { process_->post(std::move(done), true); }
  void cancel() override {}

 private:
  std::shared_ptr<detail::ActorProcess> process_;
  detail::Answer answer_;
};

/// A call of an attached program. When its answer is read, the result is translated. Actors and
/// pipes in the result refer to `host`, which the call keeps.
class AttachedCall final : public detail::PendingCall {
 public:
  /// `host` owns `match`.
  AttachedCall(std::shared_ptr<detail::PendingCall> call, std::shared_ptr<detail::ActorHost> host,
               const EndpointMatch& match)
      : call_(std::move(call)), host_(std::move(host)), match_(&match) {}

  bool wait_until(std::chrono::steady_clock::time_point time) override {
    return call_->wait_until(time);
  }
  std::chrono::steady_clock::time_point now() const override { return call_->now(); }
  const detail::Answer& answer() const override {
    std::call_once(is_made_, [this] { answer_ = made(); });
    return answer_;
  }
  void when_done(std::function<void()> done) override { call_->when_done(std::move(done)); }
  void cancel() override { call_->cancel(); }

 private:
  detail::Answer made() const {
    const detail::Answer& theirs = call_->answer();
    detail::Answer ours{.error = theirs.error, .process = host_.get()};
    if (theirs.error) return ours;
    if (match_->is_same) {
      ours.bytes = theirs.bytes;
      ours.payloads = theirs.payloads;
      return ours;
    }
    try {
      const MessageWriter result =
          translated_result(match_->their_schema, match_->our_schema,
                            MessageReader(theirs.bytes, theirs.payloads, theirs.process));
      ours.bytes.assign(result.bytes().begin(), result.bytes().end());
      ours.payloads = payloads_of(result);
    } catch (const Error& error) {
      ours.error = error;
    }
    return ours;
  }

  std::shared_ptr<detail::PendingCall> call_;
  std::shared_ptr<detail::ActorHost> host_;
  const EndpointMatch* match_;
  mutable std::once_flag is_made_;
  mutable detail::Answer answer_{};
};

}  // namespace

bool system_runs(const std::string& id) {
  try {
    return LifeLock::is_held(Segment::open(actor_table_name(id), true, 1), kActorTableLifeByte);
  } catch (const Error& error) {
    return error.code() != Errc::not_found;  // after other errors, the system may still run
  }
}

namespace {

EndpointMatch match_of(const detail::EndpointEntry& ours, const std::string& theirs) {
  EndpointMatch match{.is_same = ours.schema == theirs};
  match.our_schema.text = ours.schema;
  match.their_schema.text = theirs;
  if (match.is_same) return match;
  try {
    match.our_schema = parse_endpoint_schema(ours.schema);
    match.their_schema = parse_endpoint_schema(theirs);
    match.why_not = why_untranslatable(match.our_schema, match.their_schema);
  } catch (const Error& error) {
    match.why_not = error.what();
  }
  return match;
}

}  // namespace

std::vector<EndpointMatch> matched_endpoints(const detail::ActorClass& ours,
                                             const std::vector<std::string>& theirs) {
  const auto name_of = [](std::string_view schema) { return schema.substr(0, schema.find('(')); };
  std::vector<EndpointMatch> matches;
  for (const detail::EndpointEntry& entry : ours.parts().endpoints) {
    const auto found = std::ranges::find(theirs, name_of(entry.schema), name_of);
    if (found == theirs.end()) {
      matches.push_back({.why_not = "that program may be older or newer"});
      matches.back().our_schema.text = entry.schema;
      continue;
    }
    EndpointMatch match = match_of(entry, *found);
    match.theirs = {.index = static_cast<std::uint32_t>(found - theirs.begin()),
                    .is_const = entry.is_const && found->ends_with(" const")};
    matches.push_back(std::move(match));
  }
  return matches;
}

namespace detail {
namespace {

Error version_error(const std::string& actor, const EndpointMatch& match) {
  return {
      Errc::version,
      fmt::format("{}: this program declares the endpoint {}, and the actor system's program "
                  "has {}; {}",
                  actor, match.our_schema.text,
                  match.their_schema.text.empty() ? "none of this name" : match.their_schema.text,
                  match.why_not)};
}

}  // namespace

AttachedHost::AttachedHost(std::shared_ptr<ActorProcess> process, std::shared_ptr<WakeFd> end)
    : process_(std::move(process)),
      end_(std::move(end)),
      keeper_(process_->peers().pid(kKeeperSlot)),
      watch_(start_job_thread("weft.attached", [this] { watch(); })) {}

AttachedHost::~AttachedHost() { detach(); }

/// Waits for the end of the system, and then ends all calls.
void AttachedHost::watch() {
  std::array<pollfd, 2> waits{{{.fd = end_->fd(), .events = POLLIN, .revents = 0},
                               {.fd = keeper_.fd(), .events = POLLIN, .revents = 0}}};
  const std::string id = process_->peers().system();
  // The lock is checked too, because a system may end before its program, and there may be no
  // pidfd.
  while (waits[0].revents == 0 && waits[1].revents == 0) {
    if (::poll(waits.data(), waits.size(), kLookAtLockMs) == 0 && !system_runs(id)) break;
  }
  if (is_detached_.load()) return;
  has_ended_.store(true);
  const bool has_died = waits[1].revents != 0;
  process_->stop(has_died ? Error(Errc::peer_lost, "the program of the actor system has died")
                          : system_ended_error());
}

void AttachedHost::detach() {
  if (is_detached_.exchange(true)) return;
  end_->wake();
  watch_.join();
  if (!has_ended_.load()) process_->report_leaving();
  process_->stop();
}

/// Returns how an endpoint matches. Throws the error of calls to an actor whose mesh has ended.
const EndpointMatch& AttachedHost::match(std::uint32_t row, std::uint32_t endpoint) {
  const std::uint32_t mesh = process_->actors().row(row).mesh;
  const Matches* matches = matches_.at(mesh).load(std::memory_order_acquire);
  if (matches == nullptr || matches->turn != turn_of(row)) {
    const std::lock_guard lock(mutex_);
    auto made = std::make_unique<Matches>();
    made->turn = turn_of(row);
    made->endpoints = matched_endpoints(find_actor_class(process_->mesh_of(row).type),
                                        process_->actors().schemas(mesh));
    if (!process_->actors().has(row)) throw process_->ended_error(row);
    matches = owned_.emplace_back(std::move(made)).get();
    matches_[mesh].store(matches, std::memory_order_release);
  }
  return matches->endpoints.at(endpoint);
}

std::shared_ptr<PendingCall> AttachedHost::begin(std::uint32_t row, EndpointId endpoint,
                                                 MessageWriter arguments,
                                                 const CallOptions& options) {
  try {
    const EndpointMatch& match = this->match(row, endpoint.index);
    if (!match.why_not.empty()) throw version_error(name(row), match);
    if (!match.is_same) {
      arguments = translated_arguments(match.our_schema, match.their_schema, arguments);
    }
    auto call = process_->begin(row, match.theirs, std::move(arguments), options);
    return std::make_shared<AttachedCall>(std::move(call), shared_from_this(), match);
  } catch (const Error& error) {
    return std::make_shared<RefusedCall>(process_, error);
  }
}

void AttachedHost::tell(std::uint32_t row, EndpointId endpoint, const MessageWriter& body,
                        const CallOptions& options) {
  const EndpointMatch& match = this->match(row, endpoint.index);
  if (!match.why_not.empty()) throw version_error(name(row), match);
  if (match.is_same) return process_->tell(row, match.theirs, body, options);
  process_->tell(row, match.theirs,
                 translated_arguments(match.our_schema, match.their_schema, body), options);
}

}  // namespace detail
}  // namespace weft
