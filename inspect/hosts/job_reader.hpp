#pragma once
/// JobReader: reads a job on all of its hosts. Reads the parts on this machine directly, and the
/// others through `weft inspect --raw` on their machines.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "inspect/hosts/host_list.hpp"
#include "inspect/hosts/host_pipe.hpp"
#include "inspect/snapshot/snapshot_reader.hpp"

namespace weft {

/// Movable. Only one thread at a time may use it.
class JobReader {
 public:
  /// Returns a reader for the job whose segments on this machine have the id `memory_id`. Throws
  /// not_found, version or corrupt.
  static JobReader of_job(const std::string& memory_id);
  /// Returns a reader for the job of a run folder. If the folder has hosts.json but no result yet,
  /// reads the job on its hosts. Throws the errors of SnapshotReader::of_folder() and
  /// HostList::read().
  static JobReader of_folder(const std::string& run_dir);

  /// Returns the record of a hang, with the parts of all hosts that the folder has; nothing if host
  /// 0 has kept no record. Throws version, corrupt or io.
  static std::optional<Snapshot> read_hang(const std::string& run_dir);
  /// Returns whether the folder has files that of_folder() reads.
  static bool is_run_folder(const std::string& path);

  /// Reads the job now. A host that doesn't answer in time is marked in Snapshot::hosts, and its
  /// rows are the last that host 0 knows. Throws corrupt or io, and unavailable if no host answers.
  Snapshot read(const SnapshotParts& parts = {});
  /// Adds sights of processes on any host; see weft::add_sights().
  void add_sights(Snapshot& snapshot, std::span<const HostPid> processes);

 private:
  using Clock = std::chrono::steady_clock;
  struct Host {
    HostEntry entry{};
    std::optional<SnapshotReader> local{};
    std::unique_ptr<HostPipe> remote{};
    std::string silence{};
    Clock::time_point retry_at{};
    Snapshot events{};  ///< events and waits of the last answer that had any
    Clock::time_point events_at{};
  };
  using Answers = std::map<int, Snapshot>;

  JobReader(std::optional<SnapshotReader> own, std::string run_dir)
      : own_(std::move(own)), run_dir_(std::move(run_dir)) {}
  void find_hosts();
  void reach(Host& host);
  void read_local(const SnapshotParts& parts, Answers& answers);
  Answers ask(const RawRequest& request, std::span<const int> hosts);
  static void keep_events(Host& host, Snapshot& answer);
  void take(int number, Answers& answers);
  void give_up(Host& host, const std::string& why);
  Snapshot merged(Answers answers, const SnapshotParts& parts);
  void add_host_sights(Snapshot& job, const Answers& answers) const;

  std::optional<SnapshotReader> own_;  ///< absent if this machine has no known part of the job
  std::string run_dir_;
  std::optional<int> own_host_;
  bool has_list_ = false;          ///< whether hosts.json was found
  std::map<int, Host> hosts_;      ///< all hosts except own_host_
  std::map<int, Snapshot> local_;  ///< the last snapshots of the parts on this machine
};

}  // namespace weft
