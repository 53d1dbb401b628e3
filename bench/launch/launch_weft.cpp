/// A job that says when each of its loops is entered. With `wait`, worker 0 then reads stdin to its
/// end, and the others wait for it.

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>

#include <weft/weft.hpp>

int main(int argc, char** argv) {
  const bool waits = argc > 1 && std::string_view(argv[1]) == "wait";
  const auto loop = [waits](weft::TrainContext& context) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::printf("entered %lld\n", static_cast<long long>(now.tv_sec) * 1'000'000'000 + now.tv_nsec);
    std::fflush(stdout);
    while (waits && context.world_rank() == 0 && std::getchar() != EOF) {
    }
  };
  weft::Trainer(loop, {.scaling = {.num_workers = 4}}).fit();
}
