/// A program with weft and its own jobs that loads a plug-in with another copy of weft.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <weft/weft.hpp>

#include "tests/embed/hosts/line_filter.hpp"

static weft::Loop own_loop{"host.own", [](weft::TrainContext& ctx) {
                             weft::Parameter sum =
                                 weft::make_parameter("sum", std::vector<float>{0}, {1});
                             while (ctx.step() < 50) {
                               sum.assign(sum + 2.0);
                               weft::sync();
                             }
                             ctx.report({{"sum", sum.to_vector()[0]}});
                           }};

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto fit_line =
      library != nullptr ? reinterpret_cast<FitLine>(dlsym(library, "fit_line")) : nullptr;
  if (fit_line == nullptr) return 1;
  double of_plugin = 0;
  std::jthread plugin([&] { of_plugin = fit_line(7, 2); });
  const weft::Result own =
      weft::Trainer{own_loop,
                    {.scaling = {.num_workers = 2},
                     .run = {.name = "host", .storage_path = std::getenv("WEFT_TEST_STORAGE")}}}
          .fit();
  plugin.join();
  std::printf("results %g %g\n", own.ok() ? own.metrics["sum"].get<double>() : -1, of_plugin);
}
