#pragma once
/// Rendezvous: the file by which the hosts of a job find its trainer. Host 0 writes the addresses
/// and the port at which it listens and a secret that it has made for this run; the other hosts
/// wait for the file. Only its owner may read it, so the hosts' processes belong to one user.
///
/// A file of an earlier run of the same job may still be there. It misleads nobody: its secret is
/// known to the earlier trainer alone, so a host that can't reach that trainer reads the file again
/// until host 0 has replaced it.

#include <string>
#include <vector>

#include "actors/protocol/host_place.hpp"

namespace weft {

/// Makes the place of host 0 for a job whose hosts meet by a file: a new secret, and an address at
/// which it listens for all of `network` (own_addresses()).
void prepare_meeting(HostPlace& place, const std::string& network);

/// The file of a job, for host 0. It is removed when the object is destroyed.
class Rendezvous {
 public:
  /// Writes the file, at once as a whole. The trainer listens at the port of `trainer`,
  /// "tls://host:port". Throws io.
  Rendezvous(const HostPlace& place, const std::string& network, const std::string& trainer);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

 private:
  std::string path_;
  std::string text_;
};

/// Returns the name of a job's file, which is in place.meeting_folder.
inline std::string rendezvous_name(const HostPlace& place) { return "rendezvous-" + place.meeting; }

/// Returns the places of this host for each address of the file, in the order in which they are to
/// be tried; none if there is no file yet. Throws io if the folder can't be read or the file
/// belongs to another user or may be read by others, and invalid_argument if host 0 is another
/// machine and has told only addresses of loopback, naming them.
std::vector<HostPlace> read_rendezvous(const HostPlace& place);

}  // namespace weft
