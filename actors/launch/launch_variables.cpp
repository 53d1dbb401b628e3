#include "actors/launch/launch_variables.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "actors/process/failure.hpp"

namespace weft {
namespace {

/// The seconds for which the state of a dead job is kept. The launcher saves it at once; if the
/// launcher is dead too, `weft rescue` can be called within this time.
constexpr double kLauncherKeepsS = 600;

void read_number(const char* name, int& value) {
  const char* text = std::getenv(name);
  if (text == nullptr) return;
  const std::string_view view(text);
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (error != std::errc{} || end != view.data() + view.size()) {
    fail(Errc::invalid_argument, "{} = \"{}\": expected a number", name, text);
  }
}

}  // namespace

void apply_launch_variables(ScalingConfig& scaling, RunConfig& run, int fit_number) {
  read_number("WEFT_LAUNCH_MAX_FAILURES", run.failure.max_failures);
  read_number("WEFT_LAUNCH_WORKERS", scaling.num_workers);
  if (std::getenv("WEFT_LAUNCH_CHIPS") != nullptr) {
    read_number("WEFT_LAUNCH_CHIPS", scaling.chips_per_worker);
    scaling.resources_per_worker.clear();
  }
  if (const char* topology = std::getenv("WEFT_LAUNCH_TOPOLOGY")) scaling.topology = topology;
  if (const char* resume = std::getenv("WEFT_LAUNCH_RESUME")) run.resume = resume;
  if (const char* go_on = std::getenv("WEFT_LAUNCH_GO_ON")) {
    const std::string mine = fmt::format("{}:", fit_number);
    if (std::string_view(go_on).starts_with(mine)) run.resume = go_on + mine.size();
  }
}

std::string note_of_launcher(int fit_number) {
  const char* const go_on = std::getenv("WEFT_LAUNCH_GO_ON");
  const char* const file = std::getenv("WEFT_LAUNCH_RESCUED");
  if (go_on == nullptr || file == nullptr) return {};
  return std::string_view(go_on).starts_with(fmt::format("{}:", fit_number)) ? file : "";
}

double launcher_keeps_s() {
  int max_failures = 0;
  read_number("WEFT_LAUNCH_MAX_FAILURES", max_failures);
  return std::getenv("WEFT_LAUNCH_RESULT") != nullptr && max_failures != 0 ? kLauncherKeepsS : 0;
}

void note_exit_code(const Result& result) {
  const char* file = std::getenv("WEFT_LAUNCH_RESULT");
  if (file == nullptr || result.ok()) return;
  const Failure& failure = *result.error;
  int code = 1;
  if (result.ended_by == EndedBy::signal && result.signal != 0) code = 128 + result.signal;
  if (failure.signal != 0) code = 128 + failure.signal;
  if (failure.exit_code != 0) code = failure.exit_code;
  std::string message = with_throw(failure.message, failure.thrown_at);
  std::ranges::replace(message, '\n', ' ');
  std::ofstream(file) << code << '\n' << result.path << '\n' << message << '\n';
}

}  // namespace weft
