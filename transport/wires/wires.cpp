#include "transport/wires/wires.hpp"

#include <algorithm>

#include <weft/tensor/error.hpp>

#include "transport/memory/wait.hpp"

namespace weft {
namespace {

bool is_missing(const WireStatus& status) {
  return status.state == WireState::connecting || status.state == WireState::lost;
}

std::string missing_wires(const Wires& wires) {
  constexpr std::size_t kNamed = 8;  // limited, as one lost host is the peer of many wires
  std::string missing;
  std::size_t count = 0;
  for (std::size_t i = 0; i < wires.peers().size(); ++i) {
    const WireStatus& status = wires.status(static_cast<int>(i));
    if (!is_missing(status) || ++count > kNamed) continue;
    missing += fmt::format("{}{}{}", missing.empty() ? "" : "; ", to_string(wires.peers()[i].end),
                           status.why.empty() ? "" : ": " + status.why);
  }
  if (count > kNamed) missing += fmt::format("; and {} others", count - kNamed);
  return missing;
}

}  // namespace

std::string to_string(const WireEnd& end) {
  return fmt::format("chip {} of worker {} on host {}", end.chip, end.worker, end.host);
}

void await_wires(Wires& wires, std::chrono::milliseconds timeout,
                 const std::function<void()>& check) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::size_t done = 0;  ///< no wire before this one is missing
  for (;;) {
    wires.progress();
    while (done < wires.peers().size() && !is_missing(wires.status(static_cast<int>(done)))) ++done;
    if (done == wires.peers().size()) return;
    if (check) check();
    if (std::chrono::steady_clock::now() >= deadline) {
      fail(Errc::timeout, "no connection for {:.3f} s to {}",
           std::chrono::duration<double>(timeout).count(), missing_wires(wires));
    }
    wires.wait(kSleepSlice);
  }
}

}  // namespace weft
