/// Reads the fuzz input as the answers that `weft inspect --raw` gives from another host, and
/// builds views from them.

#include <string>

#include "inspect/hosts/merge.hpp"
#include "inspect/hosts/raw_answer.hpp"
#include "inspect/views/job_views.hpp"
#include "inspect/why/explain.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace weft {
namespace {

/// The greatest number of digits of a file's size. Larger files would be sparse, and would take the
/// fuzzer's time.
constexpr int kDigitsMax = 6;

bool has_long_number(std::string_view head) {
  int digits = 0;
  for (const char c : head) {
    digits = (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' ? digits + 1 : 0;
    if (digits > kDigitsMax) return true;
  }
  return false;
}

void look_at(Snapshot job) {
  Snapshot merged = job;
  merge_host(merged, std::move(job));
  to_text(explain(merged, merged));
  show_text(merged);
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (has_long_number(std::string_view(bytes).substr(0, bytes.find('\n')))) return 0;
  try {
    while (auto answer = take_raw_answer(bytes, {.events = true})) look_at(std::move(answer->job));
  } catch (const Error& error) {
    const Errc code = error.code();
    WEFT_CHECK(code == Errc::corrupt || code == Errc::version || code == Errc::unavailable ||
                   code == Errc::not_found,
               error.what());
  }
  return 0;
}
