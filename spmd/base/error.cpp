#include <weft/tensor/error.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace weft {
namespace {

std::atomic<CheckHook> check_hook{nullptr};

}  // namespace

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument: return "invalid_argument";
    case Errc::mesh_mismatch: return "mesh_mismatch";
    case Errc::program_divergence: return "program_divergence";
    case Errc::not_found: return "not_found";
    case Errc::io: return "io";
    case Errc::corrupt: return "corrupt";
    case Errc::version: return "version";
    case Errc::no_space: return "no_space";
    case Errc::timeout: return "timeout";
    case Errc::peer_lost: return "peer_lost";
    case Errc::cancelled: return "cancelled";
    case Errc::unavailable: return "unavailable";
    case Errc::loop_failed: return "loop_failed";
    case Errc::uneven_loops: return "uneven_loops";
    case Errc::overloaded: return "overloaded";
    case Errc::endpoint_failed: return "endpoint_failed";
    case Errc::actor_failed: return "actor_failed";
  }
  return "unknown";
}

Errc parse_errc(std::string_view name) {
  for (auto code = Errc::invalid_argument; code <= Errc::actor_failed;
       code = static_cast<Errc>(static_cast<int>(code) + 1)) {
    if (to_string(code) == name) return code;
  }
  fail(Errc::invalid_argument, "\"{}\" names no error code", name);
}

CheckHook set_check_hook(CheckHook hook) noexcept { return check_hook.exchange(hook); }

void check_failed(const char* file, int line, const char* condition, std::string values) noexcept {
  const std::string text = fmt::format("{}:{}: check failed: {}{}{}", file, line, condition,
                                       values.empty() ? "" : "; ", values);
  if (const CheckHook hook = check_hook.load()) hook(text);
  std::fputs((text + "\n").c_str(), stderr);
  std::abort();
}

}  // namespace weft
