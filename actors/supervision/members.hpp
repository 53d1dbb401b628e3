#pragma once
/// Members: knows the workers that have joined, and the link to each of them. Decides which workers
/// receive an action, and whether a sender is a member. It does no I/O: `Link` is any type whose
/// values can be compared.

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "actors/supervision/action.hpp"

namespace weft {

/// Returns whether the action is sent to this worker.
inline bool is_for(const Action& action, int worker) {
  return std::visit(Overloaded{
                        [&](const action::Asked& asked) { return worker != asked.worker; },
                        [&](const action::PeerEnded& ended) { return worker != ended.worker; },
                        [&](const action::JoinParts& parts) { return worker == parts.worker; },
                        [](const action::Prepare&) { return false; },
                        [](const action::Kill&) { return false; },
                        [](const action::Launch&) { return false; },
                        [](const action::Warn&) { return false; },
                        [](const action::GatherDeadline&) { return false; },
                        [](const action::Grace&) { return false; },
                        [](const action::Backoff&) { return false; },
                        [](const action::WireGrace&) { return false; },
                        [](const action::LinkGrace&) { return false; },
                        [](const auto&) { return true; },
                    },
                    action);
}

template <typename Link>
class Members {
 public:
  /// Adds the worker's link in place of its previous one.
  void add(int worker, Link link) { links_.insert_or_assign(worker, std::move(link)); }
  /// Returns the worker to which this link belongs; nothing if the link doesn't belong to a member.
  template <typename Other>
  std::optional<int> find(const Other& link) const {
    for (const auto& [worker, known] : links_) {
      if (known == link) return worker;
    }
    return {};
  }
  /// Returns whether the link belongs to a member. It doesn't if the process was refused, or if its
  /// worker was started again since.
  template <typename Other>
  bool has(const Other& link) const {
    return find(link).has_value();
  }
  /// Removes a link that has ended. Returns its worker; nothing if the link doesn't belong to a
  /// member.
  template <typename Other>
  std::optional<int> remove(const Other& link) {
    const std::optional<int> worker = find(link);
    if (worker) links_.erase(*worker);
    return worker;
  }
  /// Removes the worker and its link.
  void remove_worker(int worker) { links_.erase(worker); }
  /// Calls tell(worker, link) for every member that receives the action. A Launch first removes its
  /// worker, because a new process takes the worker's place.
  template <typename Tell>
  void tell(const Action& action, const Tell& tell) {
    if (const auto* launch = std::get_if<action::Launch>(&action)) links_.erase(launch->worker);
    for (const auto& [worker, link] : links_) {
      if (is_for(action, worker)) tell(worker, link);
    }
  }
  /// Calls use(worker, link) for every member.
  template <typename Use>
  void each(const Use& use) const {
    for (const auto& [worker, link] : links_) use(worker, link);
  }

 private:
  std::map<int, Link> links_;  ///< by worker
};

}  // namespace weft
