#include "actors/data/job_loaders.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <weft/tensor/error.hpp>

#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

void expect_at_least(int value, int least, const char* option, const std::source_location& where) {
  if (value >= least) return;
  fail(Errc::invalid_argument, "DeviceLoader: {} = {}: expected {} or more (at {})", option, value,
       least, file_line(where));
}

void check_numbers(const DeviceLoaderOptions& options, const std::source_location& where) {
  expect_at_least(options.num_threads, 1, "num_threads", where);
  expect_at_least(options.loader_prefetch_size, 1, "loader_prefetch_size", where);
  expect_at_least(options.device_prefetch_size, 0, "device_prefetch_size", where);
  expect_at_least(options.batches_per_execution, 1, "batches_per_execution", where);
}

/// Throws invalid_argument if a stream is to be shuffled or read by several threads, because the
/// stream would then be read again from its beginning for nearly every item.
void check_order(const Dataset& dataset, const DeviceLoaderOptions& options,
                 const std::source_location& where) {
  if (!dataset.is_sequential() || (!options.shuffle && options.num_threads == 1)) return;
  fail(Errc::invalid_argument,
       "DeviceLoader: {} reads a stream, with shuffle = {} and num_threads = {}: expected false "
       "and 1, because a stream is read in its order; to shuffle, add a shuffle_buffer() to the "
       "stream (at {})",
       dataset.name(), options.shuffle, options.num_threads, file_line(where));
}

SamplerPtr sampler_of(const Dataset& dataset, const DeviceLoaderOptions& options,
                      std::uint64_t seed, const std::source_location& where) {
  if (options.sampler != nullptr) return options.sampler;
  const std::int64_t rows = options.batch_size;
  if (rows < 1) {
    fail(Errc::invalid_argument, "DeviceLoader: batch_size = {}: expected 1 or more (at {})", rows,
         file_line(where));
  }
  return std::make_shared<const DistributedSampler>(
      DistributedSamplerOptions{.size = dataset.size(),
                                .batch_size = rows,
                                .shuffle = options.shuffle,
                                .seed = options.seed.value_or(seed),
                                .drop_last = !options.pad_last && options.drop_last});
}

/// Returns the size of an epoch's last batch if it is smaller than the others, else 0.
std::int64_t last_rows(const Dataset& dataset, const DeviceLoaderOptions& options) {
  return options.pad_last || options.drop_last ? 0 : dataset.size() % options.batch_size;
}

/// Returns a hash of the items of the batch, in their order. The workers' hashes differ if one
/// worker's sampler has another seed or size.
std::uint64_t hash_of_batch(const Sampler& sampler, std::uint64_t batch) {
  const SampleOrderPtr order = sampler.order_at(batch);
  std::vector<std::uint64_t> words;
  for (std::int64_t row = 0; row < sampler.batch_size(); ++row) {
    const Item item = order->item(batch, row);
    words.insert(words.end(), {static_cast<std::uint64_t>(item.index), item.epoch, item.seed});
  }
  return xxh3(std::as_bytes(std::span(words)));
}

/// Describes everything about a loader on which the workers must agree. `batch` is its next batch.
std::string text_of(const StoredLoader& loader, std::size_t number, const BatchShapes& shapes,
                    const DeviceLoaderOptions& options, std::uint64_t batch, const Mesh& mesh) {
  std::string text = fmt::format(
      "DeviceLoader {} of {} items, seed {}, {} batches per step, shuffle {}, pad_last {}\n",
      number, loader.num_items, loader.seed, options.batches_per_execution, options.shuffle,
      options.pad_last);
  text += fmt::format("items of batch {} {:016x}\n", batch, hash_of_batch(*options.sampler, batch));
  for (const BatchLayout& layout : shapes.layouts()) {
    for (std::size_t f = 0; f < layout.types.size(); ++f) {
      text += fmt::format("field {} {}\n", layout.types[f].to_string(),
                          layout.shardings[f].to_string(mesh, layout.types[f].shape.size()));
    }
  }
  return text;
}

}  // namespace

JobLoaders::JobLoaders(WorkerRuntime& runtime, const Recorder& recorder, std::uint64_t seed,
                       std::vector<StoredLoader> stored)
    : runtime_(runtime),
      recorder_(recorder),
      seed_(seed),
      stored_(std::move(stored)),
      resume_step_(runtime.step()) {
  if (runtime.state() != nullptr && !runtime.state()->loaders().empty()) {
    stored_ = runtime.state()->loaders();
  }
  for (const StoredLoader& each : stored_) sites_.insert(each.site);
  runtime.observers().push_back(this);
}

JobLoaders::~JobLoaders() {
  std::erase(runtime_.observers(), static_cast<LoopObserver*>(this));
  for (const Made& made : made_) {
    if (const auto open = made.source.lock()) open->close();
  }
}

std::shared_ptr<BatchSource> JobLoaders::open(DatasetPtr dataset, DeviceLoaderOptions options,
                                              const std::source_location& where) {
  runtime_.require_loop_thread("DeviceLoader", where);
  if (dataset == nullptr) {
    fail(Errc::invalid_argument, "DeviceLoader: the dataset is null (at {})", file_line(where));
  }
  check_numbers(options, where);
  check_order(*dataset, options, where);
  const bool has_own_order = options.sampler == nullptr;
  options.sampler = sampler_of(*dataset, options, seed_, where);
  const Mesh& mesh = runtime_.program_mesh();
  BatchShapes shapes(*dataset, options, has_own_order ? last_rows(*dataset, options) : 0, mesh,
                     where);
  const std::uint64_t batches = options.sampler->steps_per_epoch();
  StoredLoader made{.dataset = dataset->name(),
                    .num_items = dataset->size(),
                    .batch_size = options.sampler->batch_size(),
                    .batches_per_step = options.batches_per_execution,
                    .seed = options.seed.value_or(seed_),
                    .site = file_line(where),
                    .origin = runtime_.step(),
                    .order_xxh3 = hash_of_batch(*options.sampler, 0),
                    .step = runtime_.step()};
  const auto progress = std::make_shared<LoaderProgress>(batches);
  if (const auto before = claim(made)) {
    compare(made, *before, where);
    progress->restore(*before, made.batch_size, resume_step_);
    made.origin = before->origin;
    made.passes = progress->passes();
    made.taken = progress->taken();
    made.is_over = progress->is_over();
    made.is_beside = progress->is_beside();
  }
  if (runtime_.mesh() != nullptr) {
    const std::uint64_t pass = std::max<std::uint64_t>(made.passes, 1) - 1;
    const std::string text =
        text_of(made, made_.size(), shapes, options, pass * batches + made.taken, mesh);
    runtime_.agree(text, {.low = xxh3(std::as_bytes(std::span(text))), .high = 0},
                   {.function = "DeviceLoader", .loc = where});
  }
  auto source = std::make_shared<BatchSource>(runtime_, *this, recorder_, std::move(dataset),
                                              std::move(options), std::move(shapes), progress,
                                              file_line(where));
  made_.push_back(
      {.line = made, .taken_before = made.taken, .progress = progress, .source = source});
  return source;
}

/// Removes from stored_ the loader that corresponds to the new loader `made`, and returns it;
/// returns nothing if there is none. The best match has the same dataset, source line and order of
/// items. Weaker matches are accepted too, because a changed program may have moved its loaders to
/// other lines, ordered the items differently or renamed the dataset. A loop makes its loaders in
/// the same order each time, so the first of several equal matches is the right one.
std::optional<StoredLoader> JobLoaders::claim(const StoredLoader& made) {
  const auto find = [&](bool by_site, bool by_order) {
    return std::ranges::find_if(stored_, [&](const StoredLoader& each) {
      return each.dataset == made.dataset && (!by_site || each.site == made.site) &&
             (!by_order || each.order_xxh3 == made.order_xxh3);
    });
  };
  auto found = find(true, true);
  if (found == stored_.end() && !sites_.contains(made.site)) found = find(false, true);
  if (found == stored_.end()) found = find(true, false);
  if (found == stored_.end() && !sites_.contains(made.site)) found = find(false, false);
  if (found == stored_.end()) {
    const auto is_of_line = [&](const StoredLoader& each) { return each.site == made.site; };
    const bool is_alone = std::ranges::count_if(stored_, is_of_line) == 1;
    found = std::ranges::find_if(stored_, [&](const StoredLoader& each) {
      return is_of_line(each) && (is_alone || each.num_items == made.num_items);
    });
  }
  if (found == stored_.end()) return {};
  StoredLoader claimed = std::move(*found);
  stored_.erase(found);
  return claimed;
}

void JobLoaders::compare(const StoredLoader& made, const StoredLoader& before,
                         const std::source_location& where) const {
  const bool has_order = !before.site.empty();
  if (made.dataset == before.dataset && made.batch_size == before.batch_size &&
      made.num_items == before.num_items && made.batches_per_step == before.batches_per_step &&
      made.seed == before.seed && (!has_order || made.order_xxh3 == before.order_xxh3)) {
    return;
  }
  const bool is_reordered = has_order && made.batch_size == before.batch_size &&
                            made.num_items == before.num_items && made.seed == before.seed &&
                            made.order_xxh3 != before.order_xxh3;
  const auto described = [](const StoredLoader& loader) {
    return fmt::format("{} items of '{}' in batches of {}, {} per step, with seed {}",
                       loader.num_items, loader.dataset, loader.batch_size, loader.batches_per_step,
                       loader.seed);
  };
  runtime_.warn(fmt::format(
      "the DeviceLoader at {} reads {}; when the checkpoint was saved, it read {}{}. The "
      "loader continues after the same number of items in its new order, so items may be "
      "repeated or skipped in this epoch",
      file_line(where), described(made), described(before),
      is_reordered ? ", in another order (shuffle, or another sampler)" : ""));
}

void JobLoaders::asked_step() {
  is_step_asked_ = true;
  ++*questions_;
}

bool JobLoaders::is_repeating() const {
  return !is_caught_up_ &&
         std::ranges::any_of(made_, [](const Made& made) { return made.progress->is_repeating(); });
}

bool JobLoaders::knows_epoch(const LoaderProgress& progress) const {
  return progress.is_asked() || (is_step_asked_ && progress.is_length_asked());
}

bool JobLoaders::is_repeated(LoaderProgress& progress, const std::source_location& where) {
  if (is_caught_up_ || knows_epoch(progress) || !progress.has_finished_pass()) return false;
  progress.repeat();
  repeated_at_ = where;
  return true;
}

void JobLoaders::begin_pass(LoaderProgress& progress, bool is_nested,
                            const std::source_location& where) {
  if (!knows_epoch(progress) && !is_nested && progress.begun() > 0 && !changed_.empty() &&
      num_open == 0) {
    runtime_.warn(fmt::format(
        "the pass at {} isn't the first over its DeviceLoader, and {} between passes: a loop "
        "with its own counter of passes can't be continued after a worker is lost, because "
        "that state would be changed again; write `while (loader.epoch() < n)` instead",
        file_line(where), std::exchange(changed_, "")));
    has_warned_ = true;
  }
  is_caught_up_ = true;
  // The loop begins a pass over this loader, whose last pass was not interrupted. So the loop has
  // decided not to continue the interrupted pass over another loader, unless both passes were open
  // at the same time.
  if (!progress.is_pending() && !progress.was_open() && !is_nested) {
    for (Made& made : made_) {
      if (!made.progress->is_beside()) made.progress->forget_pending();
    }
  }
  progress.begin();
}

void JobLoaders::was_whole(const LoaderProgress& progress, const std::source_location& where) {
  if (progress.is_continued()) whole_at_.insert(file_line(where));
}

void JobLoaders::left_uncounted(const std::source_location& where) {
  const auto is_asked = [](const Made& made) { return made.progress->is_asked(); };
  if (is_step_asked_ || std::ranges::any_of(made_, is_asked)) return;
  if (whole_at_.contains(file_line(where))) uncounted_at_ = file_line(where);
}

void JobLoaders::require_counted() const {
  if (uncounted_at_.empty()) return;
  fail(Errc::invalid_argument,
       "a pass that began at {} ended early, although earlier passes that began there were "
       "complete, and the loop had not asked for its position. The loop continues an "
       "interrupted run, in which its own counter has started at 0 again, so it takes more "
       "batches than without the interruption; write `while (ctx.step() < n)`, or use "
       "batch.index() to decide when the pass ends",
       uncounted_at_);
}

std::vector<StoredLoader> JobLoaders::made() const {
  const std::uint64_t step = runtime_.step();
  std::vector<StoredLoader> stored;
  for (const Made& made : made_) {
    StoredLoader& at = stored.emplace_back(made.line);
    at.taken = at.taken_at(step);
    at.step = step;
    at.per_step = 0;
  }
  return stored;
}

/// Records the loaders' positions after the step. Throws invalid_argument if the loop still repeats
/// finished passes, because then it isn't known whether this step is a repetition too.
void JobLoaders::step_ended() {
  updates_.clear();
  turns_ = 0;
  const RunSite& site = runtime_.last_site();
  if (is_repeating()) {
    fail(Errc::invalid_argument,
         "{} ends a step, but the loop continues an interrupted run and repeats passes that "
         "have already ended (the last one at {}). The loop counts its passes itself, so weft "
         "can't know whether this step is a new one; use epoch() of the loader, or ctx.step(), "
         "to decide what the loop does",
         to_string(site), file_line(repeated_at_));
  }
  require_counted();
  const std::uint64_t step = runtime_.step();
  const auto is_open = [](const Made& made) { return made.progress->is_open(); };
  if (std::ranges::count_if(made_, is_open) > 1) {
    for (Made& made : made_) {
      if (is_open(made)) made.progress->set_beside();
    }
  }
  bool has_changed = false;
  for (Made& made : made_) has_changed = advance(made, step) || has_changed;
  if (has_changed) keep_lines();
}

/// Stores with the current step that passes have ended. State that the host sets after a pass is
/// stored with the same step (decision 0061). So a loop that continues gets both or neither.
void JobLoaders::pass_ended() {
  const std::uint64_t step = runtime_.step();
  bool has_changed = false;
  for (auto& [line, before, progress, source] : made_) {
    const bool is_at_end = progress->is_over() && line.passes == progress->passes() &&
                           line.taken_at(step) == progress->taken();
    if (!is_at_end || line.is_over) continue;
    line.taken = progress->taken();
    line.step = step;
    line.per_step = 0;
    line.is_over = has_changed = true;
  }
  if (has_changed) keep_lines();
}

void JobLoaders::keep_lines() {
  if (runtime_.state() == nullptr) return;
  std::vector<StoredLoader> lines;
  for (const Made& made : made_) lines.push_back(made.line);
  runtime_.state()->set_loaders(std::move(lines));
}

/// Throws invalid_argument if a loop that repeats finished passes changes state between them,
/// because the stored state already has that change. After the last of these passes, only a change
/// by the host (`is_immediate`) is an error, because only such a change was stored before the
/// interruption. A change by a program was lost with the interrupted step, so it must be made
/// again.
void JobLoaders::state_changes(const StateChange& change) {
  if (num_open > 0) return;
  if (is_repeating() && (change.is_immediate || has_later_pass())) {
    fail(Errc::invalid_argument,
         "{} is changed at {}, but the loop continues an interrupted run and repeats passes "
         "that have already ended (the last one at {}). The loop counts its passes itself, so "
         "the change would be made twice; use epoch() of the loader, or ctx.step(), to decide "
         "what the loop does",
         change.name, file_line(change.loc), file_line(repeated_at_));
  }
  if (has_warned_ || !changed_.empty()) return;
  const auto has_begun = [](const Made& made) { return made.progress->begun() > 0; };
  if (!std::ranges::any_of(made_, has_begun)) return;
  changed_ = fmt::format("{} is changed at {}", change.name, file_line(change.loc));
}

/// Returns whether the interrupted loop had begun a pass that this loop hasn't begun yet.
bool JobLoaders::has_later_pass() const {
  const auto has_later = [](const Made& made) {
    return made.progress->has_finished_pass() || made.progress->is_pending();
  };
  return std::ranges::any_of(made_, has_later) ||
         std::ranges::any_of(stored_, [](const StoredLoader& each) { return each.passes > 0; });
}

/// Updates the loader's stored position, which is a linear function of the step. Returns false if
/// that function already gave the right position at `step`.
bool JobLoaders::advance(Made& made, std::uint64_t step) const {
  LoaderProgress& progress = *made.progress;
  progress.step_ended();
  StoredLoader& line = made.line;
  const bool is_over = progress.is_over();
  const bool is_same_pass = line.passes == progress.passes() && line.is_over == is_over;
  const std::uint64_t before = std::exchange(made.taken_before, progress.taken());
  if (is_same_pass && line.is_beside == progress.is_beside() &&
      line.taken_at(step) == progress.taken()) {
    return false;
  }
  line.per_step = is_over        ? 0
                  : is_same_pass ? progress.taken() - std::min(before, progress.taken())
                                 : static_cast<std::uint64_t>(line.batches_per_step);
  line.passes = progress.passes();
  line.taken = progress.taken();
  line.is_over = is_over;
  line.is_beside = progress.is_beside();
  line.step = step;
  return true;
}

}  // namespace weft
