#include "actors/job/running_jobs.hpp"

#include <cstdlib>
#include <mutex>

#include <weft/tensor/error.hpp>

namespace weft {
namespace {

constexpr int kJobsMax = 64;

std::mutex mutex;
int jobs = 0;   ///< guarded by mutex
int chips = 0;  ///< chips of all jobs; guarded by mutex

}  // namespace

RunningJob::RunningJob(int num_chips) : num_chips_(num_chips) {
  const std::lock_guard lock(mutex);
  if (jobs == kJobsMax) {
    fail(Errc::unavailable,
         "{} jobs run in this process already, which is the maximum: end one first", kJobsMax);
  }
  if (jobs > 0 && std::getenv("WEFT_LAUNCH_RESULT") != nullptr) {
    fail(Errc::invalid_argument,
         "another job of this program runs under `weft launch`, whose options and exit code "
         "apply to a single job: start the program without `weft launch`, or start its jobs "
         "one after the other");
  }
  ++jobs;
  chips += num_chips_;
  crowd_ = jobs > 1 ? chips : 0;
}

RunningJob::~RunningJob() {
  const std::lock_guard lock(mutex);
  --jobs;
  chips -= num_chips_;
}

}  // namespace weft
