#include "actors/job/fit_on_hosts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/job/nameless_fit.hpp"
#include "actors/launch/worker_entry.hpp"
#include "actors/link/rendezvous.hpp"
#include "actors/link/tls_sockets.hpp"
#include "transport/memory/parent_only.hpp"

namespace weft {
namespace {

std::atomic<bool> are_taken = false;

/// Listens on host 0, and sets the address in spec.place. All jobs of the process have the same
/// address and secret, and the socket stays open, because the other hosts connect to it between
/// jobs and so wait for the next job.
void take_listener(JobSpec& spec) {
  static std::optional<HostPlace> first;
  static std::string first_network;
  HostPlace& place = spec.place;
  if (first && (spec.network != first_network || place.ports != first->ports)) {
    fail(Errc::invalid_argument,
         "backend.network = \"{}\" or backend.ports differ from those of this program's first job "
         "on several hosts (network \"{}\"), at whose address the other hosts wait: expected the "
         "same in all jobs",
         spec.network, first_network);
  }
  if (!first) {
    first_network = spec.network;
    if (!place.meeting.empty()) prepare_meeting(place, spec.network);
    const TlsAddress address = parse_tls_address(place.trainer, "WEFT_TRAINER");
    const TlsListener listener = listen_tls(address, place.ports, "WEFT_TRAINER");
    place.trainer = to_string(TlsAddress{.host = address.host, .port = listener.port});
    place.listener = listener.fd;
    // A child that outlives this process must not keep the agents' connections.
    static const ParentOnly own(listener.fd);
    first = place;
  }
  place.trainer = first->trainer;
  place.secret = first->secret;
  place.listener = first->listener;
}

/// Drops what main() prints to stdout between two jobs, on a host other than host 0.
class BetweenJobs {
 public:
  /// Warns if main() has returned although host 0 has begun another job.
  ~BetweenJobs() {
    if (stdout_ < 0) return;
    fmt::print(
        stderr,
        "weft: host {} ends after fit() #{}, but host 0 has begun another fit(), which waits "
        "for this host: all hosts must make the same calls in the same order\n",
        host_, fit_number_);
  }

  void begin(const AgentJob& job) {
    host_ = job.spec.place.index;
    fit_number_ = job.fit_number;
    std::cout.flush();
    std::fflush(stdout);
    stdout_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (stdout_ >= 0) replace_stdout(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  }
  void end() {
    if (stdout_ < 0) return;
    std::cout.flush();
    std::fflush(stdout);
    replace_stdout(std::exchange(stdout_, -1));
  }

 private:
  static void replace_stdout(int fd) {
    ::dup2(fd, STDOUT_FILENO);
    ::close(fd);
  }

  int stdout_ = -1;  ///< a copy of the program's stdout; -1 while a job runs
  int host_ = 0;
  int fit_number_ = 0;
};

BetweenJobs& between_jobs() {
  static BetweenJobs between_jobs;
  return between_jobs;
}

}  // namespace

HostsTaken::HostsTaken(JobSpec& spec, const std::string& site) : takes_(spec.place.count > 1) {
  if (!takes_) return;
  if (are_taken.exchange(true)) {
    fail(Errc::unavailable,
         "fit() at {} is the second job of this program on {} hosts, and the first one may still "
         "run: the hosts take part in one job after the other; call fit(), not start(), for each "
         "job, and begin it when the job before has ended",
         site, spec.place.count);
  }
  try {
    take_listener(spec);
  } catch (...) {
    are_taken = false;
    throw;
  }
}

HostsTaken::~HostsTaken() {
  if (takes_) are_taken = false;
}

void end_between_jobs() { between_jobs().end(); }

Result fit_as_agent(const AgentJob& job, const std::string& site) {
  end_between_jobs();
  const AgentEnd end = run_agent(job);
  if (!end.outcome) end_worker_process(end.code);
  const bool has_thrown = end.outcome->starts_with('!');
  std::optional<Result> result;
  try {
    if (!has_thrown) result = result_of(*end.outcome);
  } catch (const Error& error) {
    fail(error.code(),
         "fit() at {}: host {} can't read how this job has ended on host 0: {}; a second fit() "
         "over hosts needs a run.storage_path that they share",
         site, job.spec.place.index, error.what());
  }
  between_jobs().begin(job);
  return has_thrown ? result_of(*end.outcome) : std::move(*result);
}

}  // namespace weft
