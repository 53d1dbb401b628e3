#include "actors/agent/host_news.hpp"

#include <ctime>
#include <string>
#include <utility>

#include "actors/protocol/whereabouts.hpp"
#include "transport/blackbox/box_clock.hpp"

namespace weft {
namespace {

void add_row(HostNews& news, const Board& board, int number) {
  std::string bytes = board.bytes_of_row(number);
  if (bytes.empty()) return;
  news.row_numbers.push_back(number);
  news.rows.push_back(std::move(bytes));
}

}  // namespace

HostNews news_of(const HostRun& host, std::uint64_t generation) {
  const JobSpec& spec = host.spec;
  HostNews news{.host = spec.place.index,
                .generation = generation,
                .committed = host.link.common_step(),
                .now_ns = clock_ns(CLOCK_BOOTTIME)};
  for (int i = 0; i < spec.workers_per_host(); ++i) {
    const int worker = spec.first_worker() + i;
    add_row(news, host.board, 1 + worker);
    for (int c = 0; c < spec.chips_per_worker; ++c) {
      add_row(news, host.board, 1 + spec.num_workers + worker * spec.chips_per_worker + c);
    }
    const int pid = host.board.read(1 + worker).pid;
    if (pid <= 0) continue;
    news.processes.push_back(
        {.worker = worker, .core_time = core_time(pid), .doing = describe_process(pid)});
  }
  return news;
}

}  // namespace weft
