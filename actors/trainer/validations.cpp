#include "actors/trainer/validations.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include <weft/tensor/error.hpp>

#include "actors/data/run_folder.hpp"
#include "actors/process/failure.hpp"
#include "actors/process/job_thread.hpp"
#include "actors/process/log.hpp"

namespace weft {
namespace {

namespace fs = std::filesystem;

/// Keeps a checkpoint available by hard links even if the job removes the original. A checkpoint in
/// an object store, or on another file system than the run folder, is used in place.
class HeldCheckpoint {
 public:
  HeldCheckpoint(const Checkpoint& checkpoint, const std::string& folder) : held_(checkpoint) {
    std::error_code error;
    if (!fs::is_directory(checkpoint.path, error)) return;
    folder_ = fs::path(folder) / fs::path(checkpoint.path).filename();
    fs::create_directories(folder_, error);
    if (error) return;
    fs::copy(checkpoint.path, folder_,
             fs::copy_options::recursive | fs::copy_options::create_hard_links, error);
    if (!error) held_.path = folder_;
  }
  ~HeldCheckpoint() {
    std::error_code ignored;
    if (folder_.empty()) return;
    fs::remove_all(folder_, ignored);
    fs::remove(folder_.parent_path(), ignored);
  }
  HeldCheckpoint(const HeldCheckpoint&) = delete;
  HeldCheckpoint& operator=(const HeldCheckpoint&) = delete;

  const Checkpoint& get() const { return held_; }

 private:
  Checkpoint held_;
  fs::path folder_;
};

}  // namespace

Validations::Validations(ValidationConfig config, std::string run_dir)
    : config_(std::move(config)), run_dir_(std::move(run_dir)) {}

Validations::~Validations() {
  drop_waiting();
  stop_.request_stop();
}

void Validations::add(const Checkpoint& checkpoint, std::uint64_t step) {
  if (!config_.function) return;
  const std::lock_guard lock(mutex_);
  if (waiting_) skip(*waiting_);
  waiting_ = all_.size();
  all_.push_back({.step = step, .checkpoint = checkpoint, .state = "waiting"});
  if (!thread_.joinable()) thread_ = start_job_thread("validation", [this] { work(); });
  write();
  changed_.notify_all();
}

void Validations::drop_waiting() {
  const std::lock_guard lock(mutex_);
  if (!waiting_) return;
  skip(*std::exchange(waiting_, {}));
  write();
}

bool Validations::over() const {
  const std::lock_guard lock(mutex_);
  return !runs_ && !waiting_;
}

std::vector<Validation> Validations::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

void Validations::work() {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop_.get_token(), [this] { return waiting_.has_value(); })) {
    const std::size_t number = *std::exchange(waiting_, {});
    runs_ = true;
    all_[number].state = "running";
    write();
    Validation validation = all_[number];
    lock.unlock();
    run(validation);
    lock.lock();
    all_[number] = std::move(validation);
    end(number);
    runs_ = false;
  }
}

void Validations::run(Validation& validation) const {
  const auto begin = std::chrono::steady_clock::now();
  try {
    const HeldCheckpoint held(validation.checkpoint, run_dir_ + "/validation");
    Metrics metrics = config_.function(held.get(), validation.step);
    if (!metrics.is_object() && !metrics.is_null()) {
      fail(Errc::invalid_argument, "the validation returned {}: expected a JSON object",
           metrics.dump(-1, ' ', false, Metrics::error_handler_t::replace));
    }
    validation.metrics = std::move(metrics);
    validation.state = "succeeded";
  } catch (...) {
    validation.error = describe(std::current_exception()).message;
    validation.state = "failed";
    logger("weft.trainer")
        ->warn("the validation of step {} failed: {}", validation.step, validation.error);
  }
  validation.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Validations::skip(std::size_t number) {
  all_[number].state = "skipped";
  end(number);
}

void Validations::end(std::size_t number) {
  write();
  ended_.push(all_[number]);
}

/// Writes all validations to RUN/validation.json. If the write fails, the Result still has them.
void Validations::write() const {
  const std::string file = run_dir_ + "/validation.json";
  const std::string text = to_json(all_).dump(1, ' ', false, Metrics::error_handler_t::replace);
  if (!(std::ofstream(file + ".new") << text << "\n")) return;
  std::error_code ignored;
  fs::rename(file + ".new", file, ignored);
}

}  // namespace weft
