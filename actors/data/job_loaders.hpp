#pragma once
/// JobLoaders: the DeviceLoaders of a worker's loop, in one generation, and their positions.

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

/// Used by the loop's thread.
///
/// A loop that continues an interrupted one is executed from its beginning, with the state of a
/// step. Until it is where the other one was, passes that had ended are begun again without
/// batches, unless the loop has asked for the epoch (by epoch(), or by the step and the length of
/// an epoch) and so knows where it is.
class JobLoaders : private LoopObserver {
 public:
  /// `seed`: the job's. `stored`: the loaders in the checkpoint that the loop continues; those that
  /// were kept on the chips go first.
  JobLoaders(WorkerRuntime& runtime, const Recorder& recorder, std::uint64_t seed,
             std::vector<StoredLoader> stored);
  /// Closes those that are open.
  ~JobLoaders() override;
  JobLoaders(const JobLoaders&) = delete;
  JobLoaders& operator=(const JobLoaders&) = delete;

  /// See DeviceLoader's constructor.
  std::shared_ptr<BatchSource> open(DatasetPtr dataset, DeviceLoaderOptions options,
                                    const std::source_location& where);
  /// Returns the loaders that this loop has made, with their positions at the start of this step.
  std::vector<StoredLoader> made() const;

  /// Whether a pass had ended before the loop was interrupted, so that it has no batches now.
  bool is_repeated(LoaderProgress& progress, const std::source_location& where);
  void begin_pass(LoaderProgress& progress, bool is_nested, const std::source_location& where);
  /// The loop has taken all batches of a pass that began at `where`.
  void was_whole(const LoaderProgress& progress, const std::source_location& where);
  /// The loop has left a pass early, and neither a question nor a value has led it.
  void left_uncounted(const std::source_location& where);
  /// Throws invalid_argument if the loop has counted batches of several passes itself, although it
  /// continues an interrupted one.
  void require_counted() const;
  /// A pass has ended. A loop that continues from this step doesn't do again what follows the pass.
  void pass_ended();
  /// The loop has asked for the step.
  void asked_step();
  /// How often the loop has asked something by which it may leave a pass.
  const std::shared_ptr<std::uint64_t>& questions() const { return questions_; }
  /// Whether the loop is led through passes that had ended before it was interrupted. Their reports
  /// have been made.
  bool is_repeating() const;

  /// A pass has given back the batch that it took, since nothing was recorded. Every worker warns
  /// of a loop that turns so, because one of them may be alone in it.
  void gave_back(const std::source_location& where);
  /// Throws invalid_argument, with the cause, after so many such turns that the loop has no end.
  void require_turns_end() const;
  /// The cause why there is no memory for a batch, if turns without a step have used it up.
  std::optional<std::string> turns_in_vain() const;

  int num_open = 0;     ///< passes that end steps and have not ended
  int num_in_body = 0;  ///< of all passes, those whose batch the loop has

 private:
  struct Made {
    StoredLoader line{};  // its position, from the step on in which it last changed
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
  std::vector<StoredLoader> stored_;  // those that are not claimed yet
  std::set<std::string> sites_;       // of all that were stored
  const std::uint64_t resume_step_;
  std::vector<Made> made_;
  bool is_step_asked_ = false;
  bool is_caught_up_ = false;
  std::source_location repeated_at_{};
  bool has_warned_ = false;
  std::set<std::string> whole_at_;  // where whole passes of loaders that are continued began
  std::string uncounted_at_;
  /// The state of the loop when it leaves a pass. A turn that finds it unchanged has done nothing.
  struct Doings {
    std::uint64_t step = 0;
    std::uint64_t work = 0;
    std::uint64_t runs = 0;
    std::uint64_t reads = 0;

    friend bool operator==(const Doings&, const Doings&) = default;
  };
  std::string left_at_;  // the place of the pass that gave back its batch last
  Doings done_;          // by then
  std::uint64_t turns_ = 0;
  std::set<std::string> updates_;  // of parameters in this step, by runs that don't end it
  bool has_named_pass_ = false;
  bool has_named_update_ = false;
  std::string changed_;  // the state that was first changed between two passes, and where
  std::shared_ptr<std::uint64_t> questions_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace weft
