#pragma once
/// The parts that the examples with an HTTP server share.

#include <csignal>
#include <string>

#include <httplib.h>

#include <weft/job.hpp>

namespace examples {

/// Sends a JSON text as the answer.
void answer(httplib::Response& response, int status, const weft::Config& json);

/// An HTTP server for this machine that runs until SIGTERM or SIGINT. Make it before the first
/// thread and the first job: it blocks these signals, so that only serve() receives them.
/// (Trainer::start() doesn't handle them.)
class Service {
 public:
  Service();
  httplib::Server& server() { return server_; }
  /// Serves at 127.0.0.1; port 0 stands for any free port. Prints the address. Returns false at
  /// once if the port is taken, and true after the signal.
  bool serve(int port);

 private:
  httplib::Server server_;
  sigset_t ends_{};
};

}  // namespace examples
