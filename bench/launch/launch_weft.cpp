/// A job that reports when each of its loops is entered. An argument is the job's name; then worker
/// 0 also reads stdin to its end.

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include <weft/weft.hpp>

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const auto loop = [](weft::TrainContext& context, const weft::Config& config) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::printf("entered %lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
    std::fflush(stdout);
    const bool reads = config.at("name") != "" && context.world_rank() == 0;
    while (reads && std::getchar() != EOF) {
    }
  };
  weft::Trainer(
      loop, {.loop_config = {{"name", name}}, .scaling = {.num_workers = 4}, .run = {.name = name}})
      .fit();
}
