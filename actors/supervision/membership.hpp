#pragma once
/// The workers and the hosts of a job, and the stage that each of them has reached.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/protocol/protocol.hpp"

namespace weft {

enum class MemberPlace : std::uint8_t {
  due,        ///< restart_due() starts its process
  starting,   ///< its process has been started or is about to be
  ready,      ///< it has joined or left its loop
  looping,    ///< it is in the loop of this generation or at its end
  unwinding,  ///< it is still in the loop of the previous generation
  dying,      ///< its process is being killed and will be started again
  left,       ///< its loop has ended well and its process has ended
};

struct WorkerMember {
  int pid = 0;
  bool is_started = false;  ///< the process `pid` hasn't been seen to end
  MemberPlace place = MemberPlace::starting;
  std::optional<LoopEnded> ended{};
  std::optional<std::uint64_t> paused{};  ///< the first step that it doesn't begin
  int in_vain = 0;  ///< how many processes in a row have ended before they joined
  bool is_linked = false, awaits_link_end = false;  ///< its link must end before it is launched
  std::uint64_t link_grace = 0;                     ///< the number of the last LinkGrace
};

/// The hosts of a job. Host 0 is the trainer's own; it is always there and prepared.
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
  void joined(int host, std::string machine) { at(host).machine = std::move(machine); }
  bool has_joined(int host) const { return host == 0 || !at(host).machine.empty(); }
  /// Returns a text for each host that hasn't joined.
  std::vector<std::string> missing() const;

  /// Begins to prepare all hosts. Returns the number of this preparation.
  std::uint64_t prepare();
  /// Called when a host has been prepared by the preparation of this number.
  void prepared(int host, std::uint64_t number);
  bool are_prepared() const;
  /// Returns the names of the hosts that aren't prepared.
  std::string unprepared() const;

 private:
  struct Host {
    std::string machine{};  ///< "": it hasn't joined
    bool is_prepared = true;
  };
  Host& at(int host) { return hosts_.at(static_cast<std::size_t>(host)); }
  const Host& at(int host) const { return hosts_.at(static_cast<std::size_t>(host)); }
  int count() const { return static_cast<int>(hosts_.size()); }

  int workers_per_host_;
  std::vector<Host> hosts_;
  std::uint64_t preparations_ = 0;
};

}  // namespace weft
