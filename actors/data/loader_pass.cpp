#include "actors/data/loader_pass.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include <weft/ops/elementwise.hpp>
#include <weft/tensor/error.hpp>

#include "spmd/tensor/node.hpp"
#include "spmd/tensor/runtime.hpp"

namespace weft {
namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

}  // namespace

LoaderPass::LoaderPass(DeviceLoader loader, PassKind kind, std::uint64_t epoch, std::uint64_t count,
                       const std::source_location& where)
    : loader_(std::move(loader)),
      kind_(kind),
      is_limited_(count < loader_.source_->batches_per_epoch()),
      where_(where),
      exceptions_(std::uncaught_exceptions()),
      count_(count) {
  if (kind_ == PassKind::evaluation) {
    next_ = base_ = epoch * source().batches_per_epoch();
    end_ = base_ + count_;
    is_open_ = true;
    return;
  }
  is_repeated_ = source().loaders().is_repeated(progress(), where);
  if (!is_repeated_) open();
}

void LoaderPass::open() {
  JobLoaders& loaders = source().loaders();
  loaders.begin_pass(progress(), kind_ == PassKind::nested, where_);
  is_open_ = true;
  begun_ = progress().begun();
  base_ = (progress().passes() - 1) * source().batches_per_epoch();
  next_ = base_ + progress().taken();
  end_ = std::max(base_ + count_, next_);
  if (kind_ == PassKind::training) ++loaders.num_open;
  if (is_done()) close();
}

/// Returns whether a later pass over the same loader has begun.
bool LoaderPass::is_superseded() const {
  return kind_ != PassKind::evaluation && is_open_ && !progress().is_last(begun_);
}

void LoaderPass::require_last() const {
  if (!is_superseded()) return;
  fail(Errc::invalid_argument,
       "the pass over {} that began at {} is used after another pass over the same "
       "DeviceLoader has begun: a loader has only one position; make a second DeviceLoader, or "
       "use all() for an evaluation",
       source().dataset()->name(), file_line(where_));
}

const Batch& LoaderPass::batch() {
  if (has_batch_) return batch_;
  // The loop takes a batch without asking is_done() first, which a repeated pass would answer with
  // true. So this pass isn't a repetition, and begins as a new one.
  if (std::exchange(is_repeated_, false)) open();
  require_last();
  if (next_ == end_) {
    fail(Errc::invalid_argument, "the pass over {} that began at {} has no more batches",
         source().dataset()->name(), file_line(where_));
  }
  JobLoaders& loaders = source().loaders();
  const WorkerRuntime& runtime = source().runtime();
  if (batch_of_step_ == 0) {
    step_ = runtime.step();
    work_ = recorded_work();
  }
  const bool reads_on = kind_ == PassKind::training && !is_limited_;
  loaders.require_turns_end();
  try {
    batch_ = loader_.fetch(next_, reads_on ? kNoEnd : end_, next_ - base_);
  } catch (const Error& error) {
    const auto turns = loaders.turns_in_vain();
    if (error.code() != Errc::no_space || !turns) throw;
    fail(Errc::invalid_argument, "{}; the unused batches have filled the memory for batches",
         *turns);
  }
  ++next_;
  has_batch_ = true;
  ++loaders.num_in_body;
  if (kind_ != PassKind::evaluation) progress().take();
  questions_ = *loaders.questions();
  reads_ = runtime.reads();
  return batch_;
}

/// Drops the batch, so that its tensors no longer exist when the step ends.
void LoaderPass::release() {
  if (!std::exchange(has_batch_, false)) return;
  batch_ = {};
  --source().loaders().num_in_body;
}

void LoaderPass::advance() {
  require_last();
  if (!has_batch_) (void)batch();  // the loop has skipped this batch
  release();
  if (kind_ == PassKind::training) end_step();
  if (!is_done() || !is_open_) return;
  source().loaders().was_whole(progress(), where_);
  close();
}

/// Called each time the pass's body has ended. Ends the step if this was the last batch of the
/// step. If other passes are open too, ends the step only if ops were recorded in it.
void LoaderPass::end_step() {
  const auto batches = static_cast<std::uint64_t>(source().options().batches_per_execution);
  const std::uint64_t ended = source().runtime().step() - step_;
  const bool is_last = ++batch_of_step_ == batches || is_done();
  if (ended > (is_last ? 1U : 0U)) {
    fail(Errc::invalid_argument,
         "{} steps ended in {} of the {} batches of step {}: a job can be continued only "
         "between two steps, so one step must end for {}. Call sync() or a compiled function "
         "once in the body, or not at all: then the step ends after the body (at {})",
         ended, batch_of_step_, batches, step_,
         batches == 1 ? "each batch" : fmt::format("every {} batches", batches), file_line(where_));
  }
  if (!is_last) return;
  batch_of_step_ = 0;
  if (ended > 0) return;
  if (source().loaders().num_open == 1 || recorded_work() != work_) sync(where_);
}

void LoaderPass::close() {
  is_open_ = false;
  if (kind_ == PassKind::evaluation) return;
  progress().end();
  JobLoaders& loaders = source().loaders();
  loaders.pass_ended();
  if (kind_ != PassKind::training) return;
  // This pass's end may make the loop leave the other pass too, so the end counts as a question
  // (JobLoaders::questions()).
  if (--loaders.num_open > 0) ++*loaders.questions();
}

bool LoaderPass::has_unended_work() const {
  return (has_batch_ || batch_of_step_ > 0) && source().runtime().step() == step_ &&
         recorded_work() != work_;
}

void LoaderPass::leave() {
  if (!is_open_ || source().is_closed()) return;
  if (is_superseded()) {
    release();
    is_open_ = false;
    if (kind_ == PassKind::training) --source().loaders().num_open;
    return;
  }
  const bool is_thrown = std::uncaught_exceptions() > exceptions_;
  const bool ends_step = kind_ == PassKind::training && !is_thrown && has_unended_work();
  const bool is_unused = has_batch_ && source().runtime().step() == step_ && !has_unended_work();
  release();
  if (kind_ != PassKind::evaluation && !is_thrown) require_asked();
  if (ends_step) {
    progress().take_rest();  // a loop that continues after this step doesn't continue this pass
    sync(where_);
  } else if (kind_ != PassKind::evaluation && is_unused) {
    progress().give_back();
    if (kind_ == PassKind::training && !is_thrown) source().loaders().gave_back(where_);
  }
  close();
}

/// Throws invalid_argument if the loop has continued an interrupted pass and now leaves it by its
/// own counter. The counter has started at 0 again, so the loop leaves the pass too late. Only
/// warns if the loop has read a value, because that may be why it leaves the pass. For a counter
/// that spans several passes, JobLoaders::require_counted() throws the error later.
void LoaderPass::require_asked() const {
  JobLoaders& loaders = source().loaders();
  if (is_limited_ || *loaders.questions() != questions_) return;
  const bool reads = source().runtime().reads() != reads_;
  if (kind_ == PassKind::nested || progress().continued_at() == 0) {
    if (!reads) loaders.left_uncounted(where_);
    return;
  }
  const std::uint64_t had = next_ - base_ - progress().continued_at();
  const std::string text = fmt::format(
      "the pass over {} at {} was continued at its batch {} and ended early after {} more "
      "batches, but the loop had not asked for its position. The loop's own counter has "
      "started at 0 again, so the pass takes other batches than without the interruption; use "
      "batch.index() or ctx.step() to decide when the pass ends, or write `for (... : "
      "loader.first(n))`",
      source().dataset()->name(), file_line(where_), progress().continued_at(), had);
  if (!reads) fail(Errc::invalid_argument, "{}", text);
  source().runtime().warn(text +
                          "; ignore this warning if the loop decides by a value that it has read");
}

}  // namespace weft
