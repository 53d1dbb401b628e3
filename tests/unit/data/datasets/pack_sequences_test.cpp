#include <weft/data/packing.hpp>

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include <weft/data/transforms.hpp>
#include <weft/tensor/error.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::pack_sequences_test {
namespace {

using testing::expect_error;
using Numbers = std::vector<std::int32_t>;
using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t kMost = 12;

/// A dataset of sequences. Sequence i has lengths[i] tokens 100 i, 100 i + 1, ..., the negative
/// tokens as targets, and a vector of two elements for each token. All other elements are 7777 and
/// must not appear in results. Tokens begin at index `shift`, where `mask` becomes true.
class Sequences : public Dataset {
 public:
  explicit Sequences(Lengths lengths, bool is_sequential = false, std::int64_t shift = 0)
      : lengths_(std::move(lengths)), is_sequential_(is_sequential), shift_(shift) {}

  std::string name() const override { return "sequences"; }
  std::int64_t size() const override { return std::ssize(lengths_); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool is_sequential() const override { return is_sequential_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    const std::int64_t length = lengths_[static_cast<std::size_t>(item.index)];
    const ItemWriter writer(fields_, out);
    std::ranges::fill(writer.get<std::int32_t>("tokens"), 7777);
    std::ranges::fill(writer.get<std::int64_t>("targets"), 7777);
    std::ranges::fill(writer.get<float>("vector"), 7777.0F);
    std::ranges::fill(writer.get<bool>("mask"), false);
    writer.get<std::int32_t>("count")[0] = static_cast<std::int32_t>(length);
    for (std::int64_t i = 0; i < std::min(length, kMost - shift_); ++i) {
      const auto place = static_cast<std::size_t>(i + shift_);
      const auto token = static_cast<std::int32_t>(100 * item.index + i);
      writer.get<std::int32_t>("tokens")[place] = token;
      writer.get<std::int64_t>("targets")[place] = -token;
      writer.get<float>("vector")[2 * place] = static_cast<float>(token);
      writer.get<float>("vector")[2 * place + 1] = static_cast<float>(item.epoch);
      writer.get<bool>("mask")[place] = true;
    }
  }

  const Lengths lengths_;
  const bool is_sequential_;
  const std::int64_t shift_;
  const std::vector<Field> fields_{{"tokens", {DType::i32, {kMost}}},
                                   {"targets", {DType::i64, {kMost}}},
                                   {"vector", {DType::f32, {kMost, 2}}},
                                   {"mask", {DType::pred, {kMost}}},
                                   {"count", {DType::i32, {}}}};
};

DatasetPtr sequences(const Lengths& lengths) { return std::make_shared<const Sequences>(lengths); }

/// A stream of a dataset's items that ends after one epoch.
class Items : public Stream {
 public:
  explicit Items(DatasetPtr dataset) : dataset_(std::move(dataset)) {}
  std::string name() const override { return dataset_->name(); }
  const std::vector<Field>& fields() const override { return dataset_->fields(); }

 private:
  bool next_item(ItemMemory out) override {
    if (index() == dataset_->size()) return false;
    dataset_->read({.index = index(), .epoch = epoch()}, out);
    return true;
  }
  bool skip_item() override { return index() < dataset_->size(); }
  void rewind_items() override {}

  const DatasetPtr dataset_;
};

PackOptions of_tokens(PackOptions options) {
  if (options.fields.empty()) options.fields = {"tokens", "targets", "vector"};
  return options;
}
DatasetPtr packed(const Lengths& lengths, PackOptions options) {
  return pack_sequences(sequences(lengths), of_tokens(std::move(options)));
}

/// Returns the elements of an i32 field of a row.
Numbers numbers(const ItemBuffer& row, const char* field) {
  const auto span = row.view().get<std::int32_t>(field);
  return {span.begin(), span.end()};
}

/// Returns for each row the numbers of its sequences, which it finds by their first tokens.
std::vector<Numbers> rows_of(const Dataset& dataset) {
  std::vector<Numbers> rows;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const ItemBuffer row = read_item(dataset, {.index = i});
    const Numbers positions = numbers(row, "positions");
    const Numbers ids = numbers(row, "segment_ids");
    Numbers& in_row = rows.emplace_back();
    for (std::size_t place = 0; place < ids.size(); ++place) {
      if (ids[place] == 0 || positions[place] != 0) continue;
      in_row.push_back(numbers(row, "tokens")[place] / 100);
      EXPECT_EQ(std::ssize(in_row), ids[place]);
    }
  }
  return rows;
}

TEST(PackSequences, PutThemSideBySide) {
  const DatasetPtr dataset =
      packed({3, 4, 2, 1}, {.length = 8, .fill = {{"targets", -100}, {"vector", 0.5}}});
  EXPECT_EQ(dataset->name(), "pack_sequences(sequences, 8)");
  ASSERT_EQ(dataset->size(), 2);
  EXPECT_EQ(dataset->fields(), (std::vector<Field>{{"tokens", {DType::i32, {8}}},
                                                   {"targets", {DType::i64, {8}}},
                                                   {"vector", {DType::f32, {8, 2}}},
                                                   {"segment_ids", {DType::i32, {8}}},
                                                   {"positions", {DType::i32, {8}}}}));
  // The third sequence doesn't fit into the first row, but the fourth fits and fills that row.
  const ItemBuffer first = read_item(*dataset, {.index = 0, .epoch = 5});
  EXPECT_EQ(numbers(first, "tokens"), (Numbers{0, 1, 2, 100, 101, 102, 103, 300}));
  EXPECT_EQ(numbers(first, "segment_ids"), (Numbers{1, 1, 1, 2, 2, 2, 2, 3}));
  EXPECT_EQ(numbers(first, "positions"), (Numbers{0, 1, 2, 0, 1, 2, 3, 0}));
  EXPECT_EQ(first.view().get<float>("vector")[7], 5) << "the epoch of the source's item";
  const ItemBuffer second = read_item(*dataset, {.index = 1});
  EXPECT_EQ(numbers(second, "tokens"), (Numbers{200, 201, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(second, "segment_ids"), (Numbers{1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(numbers(second, "positions"), (Numbers{0, 1, 0, 0, 0, 0, 0, 0}));
  const auto targets = second.view().get<std::int64_t>("targets");
  EXPECT_EQ(std::vector<std::int64_t>(targets.begin(), targets.end()),
            (std::vector<std::int64_t>{-200, -201, -100, -100, -100, -100, -100, -100}));
  EXPECT_EQ(second.view().get<float>("vector")[3], 0);
  EXPECT_EQ(second.view().get<float>("vector")[4], 0.5);
}

TEST(PackSequences, GoToTheFirstRowThatHasRoom) {
  EXPECT_EQ(rows_of(*packed({5, 6, 3, 2, 8, 1}, {.length = 8})),
            (std::vector<Numbers>{{0, 2}, {1, 3}, {4}, {5}}));
  // With only one open row, a sequence can't go into another row.
  EXPECT_EQ(rows_of(*packed({5, 6, 3, 2, 8, 1}, {.length = 8, .window = 1})),
            (std::vector<Numbers>{{0}, {1}, {4}, {2, 3, 5}}));
}

TEST(PackSequences, HaveEachTokenOnceHoweverTheyAreOrdered) {
  std::mt19937 random(7);
  Lengths lengths;
  for (int i = 0; i < 300; ++i) lengths.push_back(random() % (kMost + 1));
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  std::vector<std::vector<Numbers>> orders;
  for (const std::optional<std::uint64_t> seed :
       std::vector<std::optional<std::uint64_t>>{{}, 1, 2, 1}) {
    const DatasetPtr dataset = packed(lengths, {.length = 16, .shuffle_seed = seed});
    EXPECT_LE(dataset->size(), tokens / 16 + tokens / 100 + 1) << "little is padding";
    std::set<std::int32_t> seen;
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      const ItemBuffer row = read_item(*dataset, {.index = i});
      const Numbers ids = numbers(row, "segment_ids");
      const Numbers positions = numbers(row, "positions");
      const Numbers found = numbers(row, "tokens");
      for (std::size_t place = 0; place < ids.size(); ++place) {
        if (ids[place] == 0) continue;
        EXPECT_TRUE(seen.insert(found[place]).second) << found[place];
        EXPECT_EQ(found[place] % 100, positions[place]);
        EXPECT_EQ(row.view().get<std::int64_t>("targets")[place], -found[place]);
        EXPECT_EQ(row.view().get<float>("vector")[2 * place], static_cast<float>(found[place]));
      }
    }
    EXPECT_EQ(std::ssize(seen), tokens);
    orders.push_back(rows_of(*dataset));
  }
  EXPECT_NE(orders[0], orders[1]);
  EXPECT_NE(orders[1], orders[2]);
  EXPECT_EQ(orders[1], orders[3]);
}

TEST(PackSequences, OfAStreamAreThoseOfADataset) {
  const Lengths lengths{5, 6, 0, 3, 2, 8, 1, 7, 7, 4, 4, 2};
  for (const std::int64_t window : {1, 2, 3, 64}) {
    const DatasetPtr dataset = packed(lengths, {.length = 8, .window = window});
    const auto stream = [&] {
      return pack_sequences(std::make_unique<Items>(sequences(lengths)),
                            of_tokens({.length = 8, .window = window}));
    };
    const DatasetPtr rows = stream_items(stream(), dataset->size());
    EXPECT_EQ(rows->fields(), dataset->fields());
    // Reads epochs in order; in epoch 3 begins in the middle, like a loader that resumes.
    for (const std::uint64_t epoch : {0U, 1U, 3U, 0U}) {
      for (std::int64_t i = epoch == 3 ? dataset->size() / 2 : 0; i < dataset->size(); ++i) {
        const ItemBuffer of_stream = read_item(*rows, {.index = i, .epoch = epoch});
        const ItemBuffer expected = read_item(*dataset, {.index = i, .epoch = epoch});
        for (std::size_t field = 0; field < expected.memory().size(); ++field) {
          EXPECT_TRUE(std::ranges::equal(of_stream.memory()[field], expected.memory()[field]))
              << "window " << window << " epoch " << epoch << " row " << i << " field " << field;
        }
      }
    }
  }
}

TEST(PackSequences, KnowLengthsByAMaskOrANumberOrFromTheCaller) {
  const Lengths lengths{3, 4, 2, 1};
  const std::vector<Numbers> expected = rows_of(*packed(lengths, {.length = 8}));
  EXPECT_EQ(rows_of(*packed(lengths, {.length = 8, .length_field = "count"})), expected);
  EXPECT_EQ(rows_of(*packed(lengths, {.length = 8, .lengths = lengths})), expected);
  // Sequences may begin after padding, as from a tokenizer that pads on the left.
  const auto shifted = std::make_shared<const Sequences>(lengths, false, 5);
  EXPECT_EQ(rows_of(*pack_sequences(shifted, of_tokens({.length = 8}))), expected);
}

TEST(PackSequences, LongSequencesAreCutOrRefused) {
  const std::string advice = "it has 9 tokens: expected 0 to length = 8";
  expect_error(Errc::invalid_argument, {"item 1 of sequences", advice, "cut_long"}, [] {
    (void)packed({3, 9}, {.length = 8});
  });
  expect_error(Errc::invalid_argument, {"item 1 of sequences", advice}, [] {
    (void)packed({3, 9}, {.length = 8, .lengths = {3, 9}});
  });
  const DatasetPtr cut = packed({9, 3}, {.length = 8, .cut_long = true});
  EXPECT_EQ(numbers(read_item(*cut, {.index = 0}), "tokens"), (Numbers{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(rows_of(*cut), (std::vector<Numbers>{{0}, {1}}));
  const StreamPtr stream = pack_sequences(std::make_unique<Items>(sequences({3, 9})),
                                          of_tokens({.length = 8, .window = 1}));
  const ItemBuffer row(stream->fields());
  expect_error(Errc::invalid_argument,
               {"pack_sequences(sequences, 8, window 1): item 0", "item 1 of", advice},
               [&] { (void)stream->next(row.memory()); });
}

TEST(PackSequences, ThatAreOtherThanWhenRowsWereMadeAreCorrupt) {
  const DatasetPtr wrong = packed({3, 4}, {.length = 8, .lengths = {3, 3}});
  expect_error(Errc::corrupt, {"item 1 of sequences has 4 tokens, but 3 were expected"},
               [&] { (void)read_item(*wrong, {.index = 0}); });
  const auto torn = [](const ItemView& in, const ItemWriter& out, ItemRandom&) {
    std::ranges::copy(in.get<bool>("mask"), out.get<bool>("mask").begin());
    out.get<bool>("mask")[1] = false;
  };
  const DatasetPtr gap =
      map(sequences({2, 4}), {{"mask", {DType::pred, {kMost}}}}, torn, {.keep = {"tokens"}});
  expect_error(Errc::corrupt,
               {"item 1 of map(sequences)", "is true until position 1, and again at position 2"},
               [&] { (void)pack_sequences(gap, {.length = 8}); });
  expect_error(Errc::corrupt, {"item 0 of", "its length is 13: expected 0 to 12"},
               [&] { (void)packed({13}, {.length = 16, .length_field = "count"}); });
}

TEST(PackSequences, OptionsThatDoNotFitAreRefused) {
  const auto refused = [](PackOptions options, std::initializer_list<std::string_view> words) {
    expect_error(Errc::invalid_argument, words, [&] { (void)packed({3, 4}, std::move(options)); });
  };
  refused({}, {"pack_sequences(sequences, 0): length = 0"});
  refused({.length = 8, .window = 0}, {"window = 0"});
  refused({.length = 8, .length_field = "masks"}, {"length_field = 'masks'", "there are: tokens"});
  refused({.length = 8, .length_field = "tokens"}, {"'tokens' is i32[12]: expected pred[T]"});
  refused({.length = 8, .fields = {"token"}}, {"fields = 'token'"});
  refused({.length = 8, .fields = {"tokens", "count"}},
          {"field 'count' is i32[]: expected [12, ...]", "PackOptions::fields"});
  refused({.length = 8, .fields = {"tokens", "tokens"}}, {"two fields have the name 'tokens'"});
  refused({.length = 8, .fill = {{"target", 1}}}, {"fill = 'target'"});
  refused({.length = 8, .fill = {{"tokens", 0.5}}}, {"fill of 'tokens' = 0.5", "i32"});
  refused({.length = 8, .lengths = {3}}, {"lengths has 1 numbers; the source has 2 items"});
  expect_error(Errc::invalid_argument, {"none of 2 items has a token"}, [] {
    (void)packed({0, 0}, {.length = 8});
  });
  expect_error(Errc::invalid_argument, {"field 'count' is i32[]"},
               [] { (void)pack_sequences(sequences({3}), {.length = 8}); });
  expect_error(Errc::invalid_argument,
               {"the items of 'sequences' can be read only in one order",
                "stream_items(pack_sequences(stream"},
               [] {
                 (void)pack_sequences(std::make_shared<const Sequences>(Lengths{3}, true),
                                      of_tokens({.length = 8}));
               });
  for (const PackOptions& options :
       {PackOptions{.length = 8, .lengths = {3}}, PackOptions{.length = 8, .shuffle_seed = 1}}) {
    expect_error(Errc::invalid_argument, {"works only for a dataset", "shuffle_buffer()"}, [&] {
      (void)pack_sequences(std::make_unique<Items>(sequences({3})), of_tokens(options));
    });
  }
}

}  // namespace
}  // namespace weft::pack_sequences_test
