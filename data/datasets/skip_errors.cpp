#include <atomic>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "data/items/fields.hpp"
#include "data/items/words.hpp"

namespace weft {
namespace {

bool is_of_the_item(Errc code) {
  return code == Errc::corrupt || code == Errc::version || code == Errc::loop_failed;
}

void say_on_stderr(const std::string& error, std::int64_t count) {
  constexpr std::int64_t kAllUpTo = 100;
  constexpr std::int64_t kEach = 1000;
  if (count > kAllUpTo && count % kEach != 0) return;
  fmt::print(stderr, "weft: skips an item ({} so far): {}\n", count, error);
}

class SkipErrors : public Dataset {
 public:
  SkipErrors(DatasetPtr source, SkipOptions options)
      : source_(std::move(source)), options_(std::move(options)) {
    if (options_.tries_max < 1) {
      fail(Errc::invalid_argument, "skip_errors: tries_max = {}: expected 1 or more",
           options_.tries_max);
    }
    if (!options_.on_skip) options_.on_skip = say_on_stderr;
  }

  std::string name() const override { return name_of_parts("skip_errors", {&source_, 1}); }
  std::int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  std::string item_path(std::int64_t index) const override { return source_->item_path(index); }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    // This number makes the random numbers that choose a replacement differ from those that the
    // source draws.
    constexpr std::uint64_t kSeedNumber = 0x736b6970;
    ItemRandom random({item.index, item.epoch, inner_seed(item.seed, kSeedNumber)});
    Item tried = item;
    for (int i = 1;; ++i) {
      try {
        return source_->read(tried, out);
      } catch (const Error& error) {
        if (!is_of_the_item(error.code())) throw;
        if (i == options_.tries_max) {
          fail(error.code(), "{} items in a row can't be read; the last error: {}", i,
               error.what());
        }
        options_.on_skip(error.what(), ++count_);
      }
      tried.index = random.below(size());
    }
  }

  const DatasetPtr source_;
  SkipOptions options_;
  mutable std::atomic<std::int64_t> count_{0};
};

}  // namespace

DatasetPtr skip_errors(DatasetPtr source, SkipOptions options) {
  check_parts("skip_errors", {&source, 1});
  check_any_order("skip_errors", {&source, 1},
                  "no other item can replace a corrupt one; use files whose items can be read in "
                  "any order (tar_files() of archives that aren't compressed), or write the "
                  "archives again without corrupt samples");
  return std::make_shared<const SkipErrors>(std::move(source), std::move(options));
}

}  // namespace weft
