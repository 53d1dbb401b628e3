#include "transport/state/commits.hpp"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include <weft/tensor/error.hpp>

#include "spmd/mesh/hybrid_mesh.hpp"
#include "transport/job/control_format.hpp"

namespace weft {

Commits::Commits(const JobMemory& memory, const Mesh& mesh, int position, const Recorder& recorder,
                 WaitPolicy policy)
    : memory_(&memory),
      chip_(chip_on_host(mesh, position)),
      device_(mesh.device_at(position)),
      recorder_(recorder),
      policy_(policy),
      crosses_hosts_(mesh.dcn_atoms() != 0) {
  for (int i = 1; i < mesh.size(); ++i) {
    const int peer = (position + i) % mesh.size();
    if (host_of(mesh, peer) == host_of(mesh, position)) {
      peers_.push_back({chip_on_host(mesh, peer), mesh.device_at(peer)});
    }
  }
  if (crosses_hosts_) peers_.push_back({chip_, device_});
}

void Commits::commit(std::uint64_t step) {
  CommitLine& line = memory_->commit_line(chip_);
  if (line.step.load(std::memory_order_relaxed) >= step) return;
  line.step.store(step, std::memory_order_release);
  light_fence();
  if (line.sleepers.load(std::memory_order_relaxed) == 0) return;
  line.woken.fetch_add(1, std::memory_order_seq_cst);
  wake_all(line.woken);
}

/// Returns whether a chip has committed `step`, and knows that its twins have committed it.
bool Commits::has_reached(int chip, std::uint64_t step) const {
  const CommitLine& line = memory_->commit_line(chip);
  return line.step.load(std::memory_order_acquire) >= step &&
         (!crosses_hosts_ || line.far.load(std::memory_order_acquire) >= step);
}

/// Returns whether all chips have committed `step`. Commits never decrease, so a chip that has
/// reached the step isn't checked again.
bool Commits::all_reached(std::uint64_t step) {
  if (target_ != step) {
    target_ = step;
    reached_ = 0;
  }
  while (reached_ < peers_.size() && has_reached(peers_[reached_].chip, step)) ++reached_;
  return reached_ == peers_.size();
}

/// Returns a text for error messages, such as "chip 1, or for the chips with its number on other
/// hosts,".
std::string Commits::awaited_text() const {
  const std::string chip = fmt::format("chip {}", peers_[reached_].device);
  return crosses_hosts_ ? chip + ", or for the chips with its number on other hosts," : chip;
}

bool Commits::reached(std::uint64_t step) {
  if (all_reached(step)) return true;
  if (memory_->aborted()) {
    fail(Errc::peer_lost, "{}; chip {} waited for {} to begin step {}", memory_->abort_reason(),
         device_, awaited_text(), step + 1);
  }
  return false;
}

void Commits::wait(std::uint64_t step, const std::function<void()>& check) {
  for (int i = 0; i < policy_.spins && !all_reached(step); ++i) pause_cpu();
  std::optional<Clock::time_point> since;
  int last = -1;
  while (!reached(step)) {
    if (check) check();
    const Clock::time_point now = Clock::now();
    if (!since) {
      since = now;
      recorder_.events.put(EventKind::commit, {.number = step, .peer = peers_[reached_].device});
    }
    recorder_.board.waiting_for(peers_[reached_].device);
    last = peers_[reached_].device;
    const Clock::duration waited = now - *since;
    if (waited >= policy_.deadline) {
      fail(Errc::timeout, "chip {} waited {:.3f} s for {} to begin step {}", device_,
           std::chrono::duration<double>(waited).count(), awaited_text(), step + 1);
    }
    if (waited < policy_.yield_for) {
      sched_yield();
    } else {
      sleep(step, policy_.deadline - waited);
    }
  }
  if (!since) return;
  recorder_.events.put(EventKind::commit, {.number = step, .peer = last, .flags = kEventEnds});
  recorder_.board.leave_collective();
}

/// Sleeps until the missing chip may have committed. The fences are those of invariant 6 in
/// shared_memory_tier.cpp.
void Commits::sleep(std::uint64_t step, Clock::duration longest) {
  CommitLine& line = memory_->commit_line(peers_[reached_].chip);
  line.sleepers.fetch_add(1, std::memory_order_seq_cst);
  const std::uint32_t woken = line.woken.load(std::memory_order_seq_cst);
  heavy_fence();
  if (!has_reached(peers_[reached_].chip, step)) {
    sleep_on(line.woken, woken, std::min<std::chrono::nanoseconds>(kSleepSlice, longest));
  }
  line.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

std::uint64_t common_step(const JobMemory& memory) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int chip = 0; chip < memory.num_chips(); ++chip) {
    least = std::min(least, memory.commit_line(chip).step.load(std::memory_order_acquire));
  }
  return least;
}

std::uint64_t far_step(const JobMemory& memory) {
  std::uint64_t least = common_step(memory);
  for (int chip = 0; chip < memory.num_chips(); ++chip) {
    least = std::min(least, memory.commit_line(chip).far.load(std::memory_order_acquire));
  }
  return least;
}

}  // namespace weft
