#include "bench/recovery/torch_job.hpp"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include <weft/tensor/error.hpp>

#include "bench/collectives/process.hpp"

namespace weft::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Debian's torch works only with Debian's Python.
constexpr const char* kPython = "/usr/bin/python3";
constexpr auto kPatience = 120s;
constexpr int kStepsMin = 15;
constexpr int kStepsMax = 60;

std::vector<std::string> command(const TorchJob& job) {
  std::vector<std::string> words{kPython, "-m", "torch.distributed.run"};
  words.insert(words.end(), {"--nnodes=1", "--standalone", "--log_dir=" + job.folder});
  words.push_back(fmt::format("--nproc_per_node={}", job.ranks));
  words.push_back(fmt::format("--max_restarts={}", job.kills + 1));
  // Replaces torchrun's default of 0, with which Debian's torchrun fails under Python 3.11. A value
  // for a rank that doesn't exist has the same effect as 0.
  words.insert(words.end(), {"--redirects=9:1", "--tee=9:1"});
  if (!job.interval.empty()) words.push_back("--monitor_interval=" + job.interval);
  const int steps = (job.kills + 1) * (kStepsMax + job.save_every + 10);
  words.insert(words.end(), {WEFT_SOURCE_DIR "/bench/recovery/torch_train.py", job.folder,
                             fmt::to_string(steps), fmt::to_string(job.save_every)});
  return words;
}

/// Reads the records that the ranks have written so far.
class Log {
 public:
  explicit Log(const std::string& path) : path_(path) {}

  struct Attempt {
    std::map<int, pid_t> pids;    ///< process ids by rank
    std::uint64_t first = 0;      ///< the step at which this attempt begins
    std::uint64_t last = 0;       ///< the last step that rank 0 has completed
    std::int64_t stepped_ns = 0;  ///< the time at which rank 0 completed its first step
  };
  const Attempt& attempt(int restarts) {
    read();
    return attempts_[restarts];
  }

 private:
  void read() {
    std::ifstream file(path_);
    file.seekg(static_cast<std::streamoff>(read_));
    for (std::string line; std::getline(file, line) && !file.eof();) {
      read_ += line.size() + 1;
      std::istringstream words(line);
      std::string what;
      int rank = 0;
      words >> what >> rank;
      if (what == "start") {
        pid_t pid = 0;
        words >> pid >> last_;
        attempts_[last_].pids[rank] = pid;
        words >> attempts_[last_].first;
      } else if (rank == 0) {
        Attempt& attempt = attempts_[last_];
        std::int64_t nanoseconds = 0;
        words >> attempt.last >> nanoseconds;
        if (attempt.stepped_ns == 0) attempt.stepped_ns = nanoseconds;
      }
    }
  }

  std::string path_;
  std::size_t read_ = 0;
  std::map<int, Attempt> attempts_;  // key: the number of earlier restarts
  int last_ = 0;
};

template <typename Condition>
void wait(Process& process, Condition condition, const char* what) {
  const auto deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (process.ended()) fail(Errc::io, "torchrun ended before it could {}", what);
    if (Clock::now() > deadline) fail(Errc::timeout, "torchrun didn't {} in time", what);
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

bool has_torch() {
  const std::string test =
      fmt::format("{} -c 'import torch.distributed.run' >/dev/null 2>&1", kPython);
  return std::system(test.c_str()) == 0;
}

std::vector<TorchLoss> lose_torch_ranks(const TorchJob& job) {
  std::mt19937_64 random(job.seed);
  const auto draw = [&](int least, int most) {
    return std::uniform_int_distribution(least, most)(random);
  };
  Process process(command(job), {{"OMP_NUM_THREADS", "1"}, {"LOGLEVEL", "ERROR"}});
  Log log(job.folder + "/log");
  std::vector<TorchLoss> losses;
  for (int kill = 0; kill < job.kills; ++kill) {
    const auto steps = static_cast<std::uint64_t>(draw(kStepsMin, kStepsMax));
    const auto runs = [&] {
      const Log::Attempt& attempt = log.attempt(kill);
      return std::ssize(attempt.pids) == job.ranks && attempt.last >= attempt.first + steps;
    };
    wait(process, runs, "run undisturbed");
    const auto begin = Clock::now().time_since_epoch();
    ::kill(log.attempt(kill).pids.at(draw(0, job.ranks - 1)), SIGKILL);
    wait(
        process, [&] { return log.attempt(kill + 1).stepped_ns != 0; }, "take a step");
    const Log::Attempt& next = log.attempt(kill + 1);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::nanoseconds(next.stepped_ns) - begin;
    const std::uint64_t last = log.attempt(kill).last;
    losses.push_back({took.count(), last - std::min(last, next.first)});
  }
  process.stop(kPatience);
  return losses;
}

}  // namespace weft::bench
