#include "spmd/tensor/loop_threads.hpp"

#include <algorithm>
#include <array>
#include <atomic>

#include <fmt/ranges.h>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr std::size_t kLoopsNamed = 64;

std::atomic<ThreadNumber> number_of_thread{nullptr};

/// The ids of the threads in a RuntimeScope; 0 marks a free entry.
std::array<std::atomic<int>, kLoopsNamed> loops{};

/// Replaces the first entry that equals `before`; does nothing if there is none.
void replace(int before, int after) {
  for (std::atomic<int>& loop : loops) {
    int expected = before;
    if (loop.compare_exchange_strong(expected, after)) return;
  }
}

}  // namespace

void set_thread_number(ThreadNumber function) { number_of_thread = function; }

int this_thread_number() {
  const ThreadNumber number = number_of_thread;
  return number != nullptr ? number() : 0;
}

void LoopThreads::add(int thread) { replace(0, thread); }

void LoopThreads::remove(int thread) {
  if (thread != 0) replace(thread, 0);
}

std::vector<int> LoopThreads::all() {
  std::vector<int> threads;
  for (const std::atomic<int>& loop : loops) {
    if (const int thread = loop; thread != 0) threads.push_back(thread);
  }
  std::ranges::sort(threads);
  threads.erase(std::ranges::unique(threads).begin(), threads.end());
  return threads;
}

void fail_off_thread(const std::source_location& loc) {
  const std::vector<int> all = LoopThreads::all();
  const int here = this_thread_number();
  // The calling thread is in the list but has no trace if it has Sessions but none is bound.
  if (all.empty() || std::ranges::find(all, here) != all.end()) {
    fail(Errc::not_found,
         "tensor ops work only in a training loop that Trainer::fit() runs, or after "
         "Session::bind() on the same thread, because the loop or Session has the chips and "
         "records the ops; move this call into the loop, or bind a Session first (at {})",
         file_line(loc));
  }
  fail(Errc::invalid_argument,
       "tensor ops, sync() and reads of tensors must run on the thread of their loop or Session, "
       "which is {}, but this is thread {} (at {})",
       fmt::join(all, ", "), here, file_line(loc));
}

void fail_lost(const TensorNode& node, const std::source_location& loc) {
  const int here = this_thread_number();
  const std::string made = node.recorded.line() == 0 ? "" : " at " + file_line(node.recorded);
  if (node.thread != 0 && node.thread != here) {
    fail(Errc::invalid_argument,
         "{} was recorded{} on thread {}, but this is thread {}: a thread can't use tensors that "
         "another thread records; each loop needs its own tensors (at {})",
         node.label(), made, node.thread, here, file_line(loc));
  }
  fail(
      Errc::invalid_argument,
      "{} was never computed: it was recorded{} in a loop that ended, or in a function that threw, "
      "before a sync (at {})",
      node.label(), made, file_line(loc));
}

}  // namespace weft
