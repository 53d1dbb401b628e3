#include "inspect/why/why.hpp"

namespace weft {

std::string_view to_string(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::well: return "well";
    case Verdict::waits: return "waits";
    case Verdict::slow: return "slow";
    case Verdict::hung: return "hung";
    case Verdict::failed: return "failed";
    case Verdict::held: return "held";
    case Verdict::unknown: return "unknown";
  }
  return "unknown";
}

int exit_code(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::well:
    case Verdict::waits: return 0;
    case Verdict::hung:
    case Verdict::failed: return 10;
    case Verdict::slow: return 11;
    case Verdict::held: return 12;
    case Verdict::unknown: return 13;
  }
  return 13;
}

std::string_view to_string(Cause cause) noexcept {
  switch (cause) {
    case Cause::killed: return "KILLED";
    case Cause::crashed: return "CRASHED";
    case Cause::lost: return "LOST";
    case Cause::failed: return "FAILED";
    case Cause::no_space: return "NO SPACE";
    case Cause::uneven: return "UNEVEN";
    case Cause::diverged: return "DIVERGED";
    case Cause::stopped: return "STOPPED";
    case Cause::frozen: return "FROZEN";
    case Cause::held: return "HELD";
    case Cause::device: return "DEVICE";
    case Cause::deadlock: return "DEADLOCK";
    case Cause::blocked: return "BLOCKED";
    case Cause::busy: return "BUSY";
    case Cause::compiling: return "COMPILING";
    case Cause::loading: return "LOADING";
    case Cause::slow: return "SLOW";
  }
  return "UNKNOWN";
}

}  // namespace weft
