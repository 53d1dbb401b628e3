#include "examples/common/service.hpp"

#include <pthread.h>

#include <cstdio>
#include <thread>

#include <fmt/format.h>

namespace examples {

void answer(httplib::Response& response, int status, const weft::Config& json) {
  response.status = status;
  response.set_content(json.dump(-1, ' ', false, weft::Config::error_handler_t::replace) + "\n",
                       "application/json");
}

Service::Service() {
  sigemptyset(&ends_);
  sigaddset(&ends_, SIGTERM);
  sigaddset(&ends_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends_, nullptr);
}

bool Service::serve(int port) {
  port = port == 0 ? server_.bind_to_any_port("127.0.0.1")
                   : (server_.bind_to_port("127.0.0.1", port) ? port : -1);
  if (port < 0) {
    fmt::print(stderr, "can't listen at 127.0.0.1: is the port taken?\n");
    return false;
  }
  fmt::print("listening at http://127.0.0.1:{}\n", port);
  std::fflush(stdout);
  std::jthread([this] {
    int signal = 0;
    sigwait(&ends_, &signal);
    server_.stop();
  }).detach();
  server_.listen_after_bind();
  return true;
}

}  // namespace examples
