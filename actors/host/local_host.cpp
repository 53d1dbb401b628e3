#include "actors/host/local_host.hpp"

#include <algorithm>

#include "actors/protocol/whereabouts.hpp"
#include "transport/blackbox/box_clock.hpp"
#include "transport/state/commits.hpp"
#include "transport/state/state_directory.hpp"

namespace weft {
namespace {

/// The largest number of attempts to read the table of a version.
constexpr int kReadsMax = 100;

}  // namespace

std::uint64_t LocalHost::common_step() const { return ::weft::common_step(memory_); }

bool LocalHost::has_whole_state() const {
  if (!spec_.mesh) return true;
  const Mesh& mesh = *spec_.mesh;
  const auto is_divided = [&](const StateEntry& tensor) {
    return ((tensor.sharding.used() | tensor.sharding.unreduced) & mesh.dcn_atoms()) != 0;
  };
  // Workers may still run. The table is right only if the common step is still the same after the
  // read, because a worker may overwrite the table's slot at a later step.
  for (int i = 0; i < kReadsMax; ++i) {
    const std::uint64_t step = common_step();
    try {
      const auto table = StateDirectory(memory_, mesh, 0).read(step);
      if (common_step() != step) continue;
      // Without a table, the step is the job's first, or its state is in a checkpoint.
      return !table || std::ranges::none_of(table->tensors, is_divided);
    } catch (const Error&) {  // a worker was writing the table
    }
  }
  return false;
}

Whereabouts LocalHost::locate(int worker) const { return ::weft::locate(board_, worker); }

std::string LocalHost::describe_process(const ProcessId& process) const {
  return ::weft::describe_process(process.pid);
}

std::uint64_t LocalHost::core_time(const ProcessId& process) const {
  return ::weft::core_time(process.pid);
}

void LocalHost::copy_rows(const HostNews& news) {
  const std::int64_t shift_ns = clock_ns(CLOCK_BOOTTIME) - news.now_ns;
  for (std::size_t i = 0; i < std::min(news.rows.size(), news.row_numbers.size()); ++i) {
    board_.copy_row(news.row_numbers[i], news.rows[i], shift_ns);
  }
}

void LocalHost::mark_lost(int worker, std::string_view why) {
  ::weft::mark_lost(board_, worker, why);
}

}  // namespace weft
