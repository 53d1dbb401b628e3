#pragma once
/// Members: the workers that have joined, and the link by which each is reached. Says which of them
/// an action is for, and whether a sender is one of them. Pure: `Link` is any value that can be
/// compared.

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "actors/supervision/action.hpp"

namespace weft {

/// Whether the action is told to this worker. Worker 0 joins the parts of checkpoints.
inline bool is_for(const Action& action, int worker) {
  return std::visit(Overloaded{
                        [&](const action::Asked& asked) { return worker != asked.worker; },
                        [&](const action::PeerEnded& ended) { return worker != ended.worker; },
                        [&](const action::JoinParts&) { return worker == 0; },
                        [](const action::Kill&) { return false; },
                        [](const action::Launch&) { return false; },
                        [](const action::Warn&) { return false; },
                        [](const action::GatherDeadline&) { return false; },
                        [](const action::Grace&) { return false; },
                        [](const action::Backoff&) { return false; },
                        [](const action::LinkGrace&) { return false; },
                        [](const auto&) { return true; },
                    },
                    action);
}

template <typename Link>
class Members {
 public:
  /// Replaces the link that the worker had before.
  void add(int worker, Link link) { links_.insert_or_assign(worker, std::move(link)); }
  /// The worker whose link this is.
  template <typename Other>
  std::optional<int> find(const Other& link) const {
    for (const auto& [worker, known] : links_) {
      if (known == link) return worker;
    }
    return {};
  }
  /// False for a process that was refused, and for one whose worker was started again.
  template <typename Other>
  bool has(const Other& link) const {
    return find(link).has_value();
  }
  /// The link is down. Returns its worker; nothing if it is not a member's link.
  template <typename Other>
  std::optional<int> remove(const Other& link) {
    const std::optional<int> worker = find(link);
    if (worker) links_.erase(*worker);
    return worker;
  }
  /// Calls tell(worker, link) for every member that the action is for. The worker of a Launch is no
  /// member any more.
  template <typename Tell>
  void tell(const Action& action, const Tell& tell) {
    if (const auto* launch = std::get_if<action::Launch>(&action)) links_.erase(launch->worker);
    for (const auto& [worker, link] : links_) {
      if (is_for(action, worker)) tell(worker, link);
    }
  }

 private:
  std::map<int, Link> links_;  ///< by worker
};

}  // namespace weft
