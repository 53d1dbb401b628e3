#pragma once
/// The workers and the hosts of a job, and the stage that each of them has reached.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/protocol.hpp"

namespace weft {

enum class MemberPlace : std::uint8_t {
  away,       ///< the worker's host has not joined, so the worker has no process
  due,        ///< its process is started when restart_due() is called
  starting,   ///< its process has been started or is about to be
  ready,      ///< it has joined or left its loop
  looping,    ///< it is in the loop of this generation or at its end
  unwinding,  ///< it is still in the loop of the previous generation
  dying,      ///< its process is being killed and will be started again
  left,       ///< its loop has ended well and its process has ended
};

struct WorkerMember {
  int pid = 0;
  bool is_started = false;  ///< the process `pid` isn't known to have ended
  MemberPlace place = MemberPlace::starting;
  std::optional<LoopEnded> ended{};
  std::optional<std::uint64_t> paused{};  ///< the first step that a paused loop doesn't begin
  int in_vain = 0;  ///< how many processes in a row have ended before they joined
  bool is_linked = false, awaits_link_end = false;  ///< its next process waits for the end of this
                                                    ///< link
  std::uint64_t link_grace = 0;                     ///< the number of the last LinkGrace
};

/// A host that joins, or joins again.
struct HostArrival {
  int host = -1;
  std::string memory_id{};  ///< identifies the memory that the host's chips use
  std::string machine{};    ///< its host name in the network
  bool was_here = false;    ///< it took part in the job before, and still has its memory
};

/// The hosts of a job. Host 0 is the trainer's own; it is always there and prepared, and has the
/// job's state. A host that joins in place of a lost host is empty: before the loops continue, a
/// donor gives it the state.
class JobHosts {
 public:
  JobHosts(int num_hosts, int num_workers)
      : workers_per_host_(num_workers / num_hosts), hosts_(static_cast<std::size_t>(num_hosts)) {}

  int of(int worker) const { return worker / workers_per_host_; }
  int first_worker(int host) const { return host * workers_per_host_; }
  /// Returns a text such as "host 1 (node7, workers 2 to 3)".
  std::string name(int host) const;

  /// Returns why this host may not join. If it returns nothing, joined() must follow.
  std::optional<std::string> refuse(int host, int num_hosts) const;
  void joined(const HostArrival& arrival);
  bool has_joined(int host) const { return host == 0 || !at(host).machine.empty(); }
  /// Returns whether the host takes part and has this memory.
  bool holds(int host, const std::string& memory_id) const;
  /// Called when a host is lost. `is_copied` is true if each other host has the whole state.
  void lost(int host, bool is_copied);
  bool is_empty(int host) const { return at(host).is_empty; }
  /// Returns a text for each host that hasn't joined.
  std::vector<std::string> missing() const;

  /// Begins to prepare all hosts. Returns the number of this preparation.
  std::uint64_t prepare();
  /// Called when a host has carried out the preparation with this number.
  void prepared(int host, std::uint64_t number);
  bool are_prepared() const;
  /// Returns the names of the hosts that aren't prepared.
  std::string unprepared() const;
  /// Returns whether the hosts, or donors for those that are empty, have the whole state.
  bool have_state() const { return is_copied_ || !some_are_empty(); }
  /// Called when every chip has made a step of the generation, so that no host is empty.
  void all_have_state();
  /// Returns for each host its donor, which is the host that gives it the state; -1 for a host that
  /// has the state. Returns nothing if all hosts have the state.
  std::vector<std::int32_t> donors() const;

 private:
  struct Host {
    std::string machine{};    ///< "": it hasn't joined
    std::string memory_id{};  ///< memory id of the last process that joined as this host
    bool is_prepared = true;
    bool is_empty = false;
    bool had_state = true;  ///< whether it had state when it was lost
  };
  bool some_are_empty() const { return std::ranges::any_of(hosts_, &Host::is_empty); }
  Host& at(int host) { return hosts_.at(static_cast<std::size_t>(host)); }
  const Host& at(int host) const { return hosts_.at(static_cast<std::size_t>(host)); }
  int count() const { return static_cast<int>(hosts_.size()); }

  int workers_per_host_;
  std::vector<Host> hosts_;
  std::uint64_t preparations_ = 0;
  bool is_copied_ = true;  ///< each host that isn't empty has the whole state
};

/// For each host except host 0, the last step that all its chips have committed, as workers and
/// agents have told. The steps are exact once no worker runs anything, because every worker tells
/// its host's step when it joins and when it has left its loop.
class HostCommits {
 public:
  explicit HostCommits(int num_hosts) : steps_(static_cast<std::size_t>(num_hosts), 0) {}

  /// Records a step that a host has told. Within a generation steps only grow. While no loop runs,
  /// told steps are ignored: all hosts have the step of prepare(), but a worker that joins may have
  /// read an earlier one.
  void told(int host, std::uint64_t step) {
    if (loops_run_) at(host) = std::max(at(host), step);
  }
  void lost(int host) { at(host) = kNoState; }
  void returned(int host, std::uint64_t step) { at(host) = step; }
  void prepare(std::uint64_t step) {
    std::ranges::fill(steps_, step);
    loops_run_ = false;
  }
  void start() { loops_run_ = true; }
  /// Returns the lowest step of the hosts that have state; `own` is the step of host 0.
  std::uint64_t least(std::uint64_t own) const {
    return std::accumulate(steps_.begin() + 1, steps_.end(), own,
                           [](std::uint64_t a, std::uint64_t b) { return std::min(a, b); });
  }

 private:
  static constexpr std::uint64_t kNoState = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t& at(int host) { return steps_.at(static_cast<std::size_t>(host)); }

  std::vector<std::uint64_t> steps_;  ///< by host; host 0 isn't used
  bool loops_run_ = false;            ///< whether loops run, or have run since prepare()
};

}  // namespace weft
