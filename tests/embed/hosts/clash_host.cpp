/// A program that is linked with libweft.so and with a library that has names of CAF.

#include <cstdio>
#include <cstdlib>

#include <weft/weft.hpp>

#include "tests/embed/hosts/clashing_caf.hpp"

static weft::Loop own_loop{
    "clash.own", [](weft::TrainContext& ctx) {
      weft::Parameter sum = weft::make_parameter("sum", std::vector<float>{0}, {1});
      while (ctx.step() < 50) {
        sum.assign(sum + 2.0);
        weft::sync();
      }
      ctx.report({{"sum", sum.to_vector()[0]}, {"systems", clash_systems()}});
    }};

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  const int before = clash_answer();
  const weft::Result own =
      weft::Trainer{own_loop,
                    {.scaling = {.num_workers = 2},
                     .run = {.name = "clash", .storage_path = std::getenv("WEFT_TEST_STORAGE")}}}
          .fit();
  if (!own.ok()) {
    std::printf("error %s\n", own.error->message.c_str());
    return 1;
  }
  // This process has made two systems of the clashing library, one per clash_answer(). The worker
  // that reports has made none.
  const int after = clash_answer();
  std::printf("sum %g answers %d %d systems %d %d\n", own.metrics["sum"].get<double>(), before,
              after, clash_systems(), own.metrics["systems"].get<int>());
}
