/// A shared library that runs jobs in a host that knows nothing of weft.

#include <cstdio>
#include <cstdlib>

#include <weft/weft.hpp>

#include "tests/embed/hosts/line_filter.hpp"

#ifdef EMBED_OTHER_PLUGIN
extern "C" __attribute__((visibility("default"))) const int other_build = 1;
#endif

struct FitConfig {
  int steps = 10;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FitConfig, steps)

static weft::Loop fit_loop{"acme.filter.fit", [](weft::TrainContext& ctx, const FitConfig& config) {
                             weft::Parameter sum =
                                 weft::make_parameter("sum", std::vector<float>{0}, {1});
                             while (ctx.step() < static_cast<std::uint64_t>(config.steps)) {
                               sum.assign(sum + 1.0);
                               weft::sync();
                             }
                             ctx.report({{"sum", sum.to_vector()[0]}});
                           }};

extern "C" __attribute__((visibility("default"))) double fit_line(int steps, int workers) {
  try {
    const weft::Result result = weft::Trainer{
        fit_loop,
        {.loop_config = FitConfig{.steps = steps},
         .scaling = {.num_workers = workers, .worker_executable = weft::plugin_worker()},
         .backend = {.timeout_s = 30},
         .run = {.name = "plugin",
                 .storage_path = std::getenv("WEFT_TEST_STORAGE"),
                 .handle_signals =
                     false}}}.fit();
    if (result.ok()) return result.metrics.at("sum").get<double>();
    std::fprintf(stderr, "failed: %s\n", result.error->message.c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "threw: %s\n", e.what());
  }
  return -1;
}
