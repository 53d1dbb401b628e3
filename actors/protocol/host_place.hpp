#pragma once
/// HostPlace: the place of this process among the hosts of its jobs. Each host has one process that
/// calls fit(). Host 0 runs the trainer, and the others run agents.

#include <functional>
#include <string>

namespace weft {

struct HostPlace {
  int index = 0;
  int count = 1;
  std::string trainer{};  ///< "address:port" at which host 0 listens; "" if there is one host
  std::string secret{};   ///< known to all hosts, and to nobody else

  bool is_agent() const { return index > 0; }
};

/// Reads WEFT_HOSTS, WEFT_HOST_INDEX, WEFT_TRAINER and WEFT_SECRET_FILE. Returns a place with one
/// host if WEFT_HOSTS isn't set or is 1. Throws invalid_argument for malformed or incomplete
/// variables, and io or invalid_argument for the file of the secret, which only its owner may read.
HostPlace host_place(const std::function<const char*(const char* name)>& variable);

}  // namespace weft
