#pragma once
/// JobLoaders: owns the DeviceLoaders of a worker's loop during one generation, and stores their
/// positions.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <vector>

#include "actors/data/batch_source.hpp"
#include "actors/data/loader_progress.hpp"
#include "transport/format/stored_loader.hpp"

namespace weft {

/// Only the loop's thread may use it.
///
/// A loop that continues an interrupted loop runs from its first line again, but with the state of
/// the step at which it continues. Passes (`for` loops over a DeviceLoader) that had ended before
/// the interruption then get no batches, until the loop reaches the interrupted pass. But if the
/// loop has asked for the epoch, or for the step and the length of an epoch, it decides itself
/// which passes it makes, so all its passes get batches.
class JobLoaders : private LoopObserver {
 public:
  /// `seed` is the job's seed. `stored` are the loaders in the checkpoint from which the loop
  /// continues. If the chips have loaders with their state, those are used instead.
  JobLoaders(WorkerRuntime& runtime, const Recorder& recorder, std::uint64_t seed,
             std::vector<StoredLoader> stored);
  /// Closes the loaders that are open.
  ~JobLoaders() override;
  JobLoaders(const JobLoaders&) = delete;
  JobLoaders& operator=(const JobLoaders&) = delete;

  /// See DeviceLoader's constructor.
  std::shared_ptr<BatchSource> open(DatasetPtr dataset, DeviceLoaderOptions options,
                                    const std::source_location& where);
  /// Returns the loaders that this loop has made, with their positions at the start of this step.
  std::vector<StoredLoader> made() const;

  /// Returns whether the pass that begins now only repeats a pass that had ended before the loop
  /// was interrupted. A repeated pass gets no batches.
  bool is_repeated(LoaderProgress& progress, const std::source_location& where);
  void begin_pass(LoaderProgress& progress, bool is_nested, const std::source_location& where);
  /// Called when the loop has taken all batches of a pass that began at `where`.
  void was_whole(const LoaderProgress& progress, const std::source_location& where);
  /// Called when the loop has left a pass early without a question (see questions()) and without
  /// reading a value.
  void left_uncounted(const std::source_location& where);
  /// Throws invalid_argument if the loop continues an interrupted loop, but has left a pass by its
  /// own counter, which has started at 0 again (see left_uncounted()).
  void require_counted() const;
  /// Called when a pass has ended. Stores with the current step that it has ended, so that a loop
  /// that continues from this step doesn't continue the pass.
  void pass_ended();
  /// Called when the loop has asked for the step.
  void asked_step();
  /// Returns the number of the loop's questions. A question is a call whose result, such as the
  /// step, may make the loop leave a pass.
  const std::shared_ptr<std::uint64_t>& questions() const { return questions_; }
  /// Returns whether the loop still repeats passes that had ended before the interruption. The
  /// reports of these passes have already been made.
  bool is_repeating() const;

  /// Called when a pass has given back the batch that it took, because its body recorded nothing.
  /// If that happens repeatedly, logs a warning on every worker, because the workers' loops may
  /// differ.
  void gave_back(const std::source_location& where);
  /// Throws invalid_argument if batches were given back so often that the loop seems to be endless.
  void require_turns_end() const;
  /// Describes the pass that repeatedly gave back its batch; returns nothing if there is none.
  std::optional<std::string> turns_in_vain() const;

  int num_open = 0;     ///< number of open passes that end steps
  int num_in_body = 0;  ///< number of passes, of any kind, whose current batch the loop is using

 private:
  struct Made {
    StoredLoader line{};  // the stored position, which is a linear function of the step
    std::uint64_t taken_before = 0;
    std::shared_ptr<LoaderProgress> progress;
    std::weak_ptr<BatchSource> source;
  };
  std::optional<StoredLoader> claim(const StoredLoader& made);
  void compare(const StoredLoader& made, const StoredLoader& before,
               const std::source_location& where) const;
  void step_ended() override;
  void state_changes(const StateChange& change) override;
  bool knows_epoch(const LoaderProgress& progress) const;
  void ran(const Program& program, const RunSite& site) override;
  bool has_later_pass() const;
  void keep_lines();
  bool advance(Made& made, std::uint64_t step) const;

  WorkerRuntime& runtime_;
  const Recorder recorder_;
  const std::uint64_t seed_;
  std::vector<StoredLoader> stored_;  // stored loaders that no loader has claimed yet
  std::set<std::string> sites_;       // the source lines of all stored loaders
  const std::uint64_t resume_step_;
  std::vector<Made> made_;
  bool is_step_asked_ = false;
  bool is_caught_up_ = false;
  std::source_location repeated_at_{};
  bool has_warned_ = false;
  std::set<std::string> whole_at_;  // the source lines at which a pass took all batches of a loader
                                    // that the interrupted loop had used
  std::string uncounted_at_;
  /// The loop's progress when it leaves a pass. If two passes are left at equal progress, the loop
  /// has done nothing in between.
  struct Doings {
    std::uint64_t step = 0;
    std::uint64_t work = 0;
    std::uint64_t runs = 0;
    std::uint64_t reads = 0;

    friend bool operator==(const Doings&, const Doings&) = default;
  };
  std::string left_at_;  // where the last pass that gave back its batch began
  Doings done_;          // the loop's progress when that pass was left
  std::uint64_t turns_ = 0;
  std::set<std::string> updates_;  // parameters that runs of this step have updated without ending
                                   // the step, with the lines
  bool has_named_pass_ = false;
  bool has_named_update_ = false;
  std::string changed_;  // the first state that was changed between two passes, and where
  std::shared_ptr<std::uint64_t> questions_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace weft
