#pragma once
/// Explores every interleaving of the threads of a small model.

#include <cstddef>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

namespace weft::testing {

/// A thread of a model. `step` appends each state to which the thread's next atomic step can lead;
/// it appends several if the thread has a choice, and none if it is blocked or has ended.
template <typename State>
struct ModelThread {
  std::string name;
  std::function<void(const State& state, std::vector<State>& next)> step;
};

struct Exploration {
  std::size_t state_count = 0;
  /// "" if all is well; otherwise the fault and the shortest schedule that leads to it.
  std::string failure;
};

/// Visits every state that the threads can reach together from `initial`, breadth first. `check`
/// gets each state and whether no thread can make a step in it; it returns a fault, or "". States
/// are ordered by <. Steps are sequentially consistent: effects of a weaker memory order must be
/// modeled as separate steps.
template <typename State>
Exploration explore(const State& initial, const std::vector<ModelThread<State>>& threads,
                    const std::function<std::string(const State& state, bool stuck)>& check) {
  struct Origin {
    const State* before;
    std::size_t thread;
  };
  std::map<State, Origin> visited;
  std::queue<const State*> open;
  const auto visit = [&](const State& state, Origin origin) {
    const auto [place, is_new] = visited.emplace(state, origin);
    if (is_new) open.push(&place->first);
  };
  const auto schedule_to = [&](const State* state) {
    std::vector<std::string_view> names;
    for (const Origin* at = &visited.at(*state); at->before; at = &visited.at(*at->before)) {
      names.push_back(threads[at->thread].name);
    }
    std::string schedule = "; schedule:";
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      schedule.append(" ").append(*name);
    }
    return schedule;
  };

  visit(initial, {nullptr, 0});
  std::vector<State> next;
  for (; !open.empty(); open.pop()) {
    const State* state = open.front();
    bool stuck = true;
    for (std::size_t thread = 0; thread < threads.size(); ++thread) {
      next.clear();
      threads[thread].step(*state, next);
      stuck = stuck && next.empty();
      for (const State& after : next) visit(after, {state, thread});
    }
    if (const std::string wrong = check(*state, stuck); !wrong.empty()) {
      return {visited.size(), wrong + schedule_to(state)};
    }
  }
  return {visited.size(), {}};
}

}  // namespace weft::testing
