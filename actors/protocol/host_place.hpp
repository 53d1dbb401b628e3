#pragma once
/// HostPlace: the place of this process among the hosts of its jobs. Each host has one process that
/// calls fit(). Host 0 runs the trainer, and the others run agents.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/wires/own_network.hpp"

namespace weft {

/// Returns the value of an environment variable; null if it isn't set.
using VariableLookup = std::function<const char*(const char* name)>;

struct HostPlace {
  int index = 0;
  int count = 1;
  /// "address:port" at which host 0 listens. It is "" if there is one host, or while an agent's
  /// host still looks for the rendezvous file.
  std::string trainer{};
  std::string secret{};  ///< known only to the job's hosts; "" in the same cases as `trainer`
  /// Names the file in which host 0 publishes `trainer` and `secret`; "": the hosts were given
  /// both.
  std::string meeting{};
  std::string meeting_folder{};  ///< the folder of that file; validate() replaces "" by
                                 ///< storage_path
  /// The numeric address at which this host's chips listen. "": the address by which it reaches
  /// host 0.
  std::string address{};
  PortRange ports{};      ///< the ports at which this host's processes may listen
  bool uses_ucx = false;  ///< chips of different hosts exchange data by UCX; otherwise by TLS
  /// On host 0: a socket that listens at `trainer`, for all jobs of the process.
  int listener = -1;

  bool is_agent() const { return index > 0; }
};

/// The variables that place a process. Those that aren't set are "" or absent.
struct HostVariables {
  std::optional<int> hosts;  ///< WEFT_HOSTS
  std::optional<int> index;  ///< WEFT_HOST_INDEX, less than `hosts` if that is set
  std::string trainer;       ///< WEFT_TRAINER
  std::string secret_file;   ///< WEFT_SECRET_FILE
};
/// Throws invalid_argument for a malformed variable.
HostVariables read_host_variables(const VariableLookup& variable);

/// Parses an integer from `least` to `most`. Throws invalid_argument, naming the variable.
int parse_variable(const char* name, const std::string& text, int least, int most);

/// Returns the secret in the file, without the white space at its end. Throws io if the file can't
/// be read, and invalid_argument if users other than its owner may read it or the secret is too
/// short.
std::string read_secret(const std::string& path);

/// Returns the place that the variables of worker_place_variables() describe, for a worker's
/// process. Throws invalid_argument and io.
HostPlace worker_place(const VariableLookup& variable);
/// Returns the variables for the workers of this host. `secret_file` is the file with the secret.
std::vector<std::string> worker_place_variables(const HostPlace& place,
                                                const std::string& secret_file);

}  // namespace weft
