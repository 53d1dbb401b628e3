#pragma once
/// NetMachines: machines for tests over several hosts. Each is a set of namespaces of this machine
/// with its own network, processes, name and /dev/shm.

#include <string>
#include <vector>

namespace weft::testing {

/// Returns the words to put before a command so that it has its own name, process ids and empty
/// /dev/shm. All processes of the command end when the first one is killed.
std::vector<std::string> in_own_namespaces(const std::string& name);

/// The machines 0 to count - 1 are joined by a bridge. Making them needs root and `ip`, `nsenter`
/// and `unshare`. The destructor removes their networks; their processes must have ended by then.
class NetMachines {
 public:
  explicit NetMachines(int count);
  ~NetMachines();
  NetMachines(const NetMachines&) = delete;
  NetMachines& operator=(const NetMachines&) = delete;

  /// Returns "", or why this system permits no such machines.
  const std::string& why_not() const { return why_not_; }
  /// Returns the words to put before a command so that it runs on `machine`, in its own namespaces.
  std::vector<std::string> prefix(int machine) const;
  std::string address(int machine) const;
  void set_link(int machine, bool up);
  /// Limits what the machine sends, in megabits per second. Returns false if the kernel can't limit
  /// it.
  bool limit(int machine, int mbit);

 private:
  std::string space(int machine) const;

  const int count_;
  const std::string id_;
  std::string why_not_;
};

}  // namespace weft::testing
