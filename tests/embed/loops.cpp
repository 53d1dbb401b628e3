#include "tests/embed/loops.hpp"

#include <filesystem>

#include <fmt/format.h>

namespace weft::testing {
namespace {

template <int kAmount>
void add(TrainContext& ctx, const Config& config) {
  Parameter sum = make_parameter("sum", std::vector<float>{1}, {1});
  while (ctx.step() < config.value("steps", 20U)) {
    sum.assign(sum + static_cast<double>(kAmount));
    sync();
  }
  ctx.report({{"sum", sum.to_vector()[0]}, {"rank", ctx.world_rank()}, {"tag", config["tag"]}});
}

}  // namespace

Loop add_one{"test.add_one", add<1>};
Loop add_hundred{"test.add_hundred", add<100>};

Loop until_asked{"test.until_asked", [](TrainContext& ctx) {
                   Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                   while (!ctx.reached_preemption()) {
                     sum.assign(sum + 1.0);
                     sync();
                     if (ctx.step() == 3) ctx.report({{"runs", true}});
                   }
                   ctx.report({{"asked", true}});
                 }};

Loop never_asks{"test.never_asks", [](TrainContext& ctx) {
                  Parameter sum = make_parameter("sum", std::vector<float>{0}, {1});
                  for (;;) {
                    sum.assign(sum + 1.0);
                    sync();
                    if (ctx.step() == 3) ctx.report({{"runs", true}});
                  }
                }};

TrainerOptions options(const Config& config, int workers) {
  return {
      .loop_config = config,
      .scaling = {.num_workers = workers},
      .backend = {.timeout_s = 60},
      .run = {.name = "embed",
              .storage_path = (std::filesystem::temp_directory_path() / "weft-embed").string()}};
}

}  // namespace weft::testing
