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
  /// "address:port" at which host 0 listens; "" if there is one host, and on an agent's host while
  /// it looks for the rendezvous file.
  std::string trainer{};
  std::string secret{};  ///< known to all hosts, and to nobody else; "" as for `trainer`
  /// Names the file in which host 0 tells trainer and secret; "": all hosts have been given them.
  std::string meeting{};
  std::string meeting_folder{};  ///< has that file; validate() sets it to storage_path if it is ""
  /// The numeric address at which this host's chips listen; "": the one by which it reaches host 0.
  std::string address{};
  PortRange ports{};      ///< at which this host's processes listen
  bool uses_ucx = false;  ///< between chips; otherwise TLS

  bool is_agent() const { return index > 0; }
};

/// The variables that place a process. Text of a variable that isn't set is "".
struct HostVariables {
  std::optional<int> hosts;  ///< WEFT_HOSTS
  std::optional<int> index;  ///< WEFT_HOST_INDEX, less than `hosts` if that is set
  std::string trainer;       ///< WEFT_TRAINER
  std::string secret_file;   ///< WEFT_SECRET_FILE
};
/// Throws invalid_argument for a malformed variable.
HostVariables read_host_variables(const VariableLookup& variable);

/// Parses a whole number between two limits, both included. Throws invalid_argument, naming the
/// variable.
int parse_variable(const char* name, const std::string& text, int least, int most);

/// Returns the secret in the file, without the white space at its end. Throws io if it can't be
/// read, and invalid_argument if others than its owner may read it or it is too short.
std::string read_secret(const std::string& path);

/// Returns the place of a worker's process, from the variables that worker_place_variables() makes.
/// Throws invalid_argument and io.
HostPlace worker_place(const VariableLookup& variable);
/// Returns the variables for the workers of this host. The secret is in `secret_file`.
std::vector<std::string> worker_place_variables(const HostPlace& place,
                                                const std::string& secret_file);

}  // namespace weft
