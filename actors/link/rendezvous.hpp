#pragma once
/// Rendezvous: the file by which the hosts of a job find its trainer. Host 0 writes its addresses,
/// its port, and a secret that it has made for this run; the other hosts wait for the file. Only
/// the file's owner may read it, so all hosts' processes must belong to one user.
///
/// A file of an earlier run of the same job may still exist. It does no harm: only the trainer of
/// that run knows its secret, so other trainers refuse the host, which then reads the file again
/// until host 0 has replaced it.

#include <string>
#include <vector>

#include "actors/protocol/host_place.hpp"

namespace weft {

/// Makes the place of host 0 for a job whose hosts find each other by a file: a new secret, and an
/// address to listen at. Other hosts reach it through `network` (own_addresses()).
void prepare_meeting(HostPlace& place, const std::string& network);

/// The file of a job, made by host 0. The destructor removes the file.
class Rendezvous {
 public:
  /// Writes the file atomically. The trainer listens at the port of `trainer`, "tls://host:port".
  /// Throws io.
  Rendezvous(const HostPlace& place, const std::string& network, const std::string& trainer);
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

 private:
  std::string path_;
  std::string text_;
};

/// Returns the name of a job's file in place.meeting_folder.
inline std::string rendezvous_name(const HostPlace& place) { return "rendezvous-" + place.meeting; }

/// Reads the file. Returns a place of this host for each address in it, in the order in which to
/// try them; none if the file doesn't exist yet. Throws io if the folder can't be read, or if the
/// file belongs to another user or others may read it. Throws invalid_argument if host 0 is another
/// machine and has only loopback addresses, naming them.
std::vector<HostPlace> read_rendezvous(const HostPlace& place);

}  // namespace weft
