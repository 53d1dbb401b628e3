/// Tests training on packed rows: outputs, losses and gradients equal those of each sequence alone.

#include <weft/data/packing.hpp>

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

namespace weft::packing_test {
namespace {

constexpr std::int64_t kMost = 9;
constexpr std::int64_t kVocabulary = 13;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kHeads = 4;
constexpr std::int64_t kRow = 16;

/// A block of a causal language model, with learned and rotary positions.
struct Net : Module {
  Embedding token{*this, "token", {.num_embeddings = kVocabulary, .embedding_dim = kWidth}};
  Embedding place{*this, "place", {.num_embeddings = kMost, .embedding_dim = kWidth}};
  Linear q{*this, "q", {.in_features = kWidth, .out_features = kWidth}};
  Linear k{*this, "k", {.in_features = kWidth, .out_features = kWidth}};
  Linear v{*this, "v", {.in_features = kWidth, .out_features = kWidth}};
  Linear head{*this, "head", {.in_features = kWidth, .out_features = kVocabulary}};

  /// Returns the logits of tokens [batch, length]. `ids` is undefined if each row is one sequence.
  Tensor operator()(const Tensor& tokens, const Tensor& positions, const Tensor& ids) const {
    const Tensor x = token(tokens) + place(positions);
    const Tensor seen = attention(rope(split_heads(q(x), kHeads), 100, positions),
                                  rope(split_heads(k(x), kHeads), 100, positions),
                                  split_heads(v(x), kHeads), {.causal = true, .segment_ids = ids});
    return head(merge_heads(seen));
  }
};

struct Sequence {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
  std::vector<float> weights;
};

std::vector<Sequence> draw(int count) {
  std::mt19937 random(3);
  std::vector<Sequence> sequences(static_cast<std::size_t>(count));
  for (Sequence& sequence : sequences) {
    const std::size_t length = 1 + random() % kMost;
    for (std::size_t i = 0; i < length; ++i) {
      sequence.tokens.push_back(static_cast<std::int32_t>(random() % kVocabulary));
      sequence.targets.push_back(static_cast<std::int32_t>(random() % kVocabulary));
      sequence.weights.push_back(static_cast<float>(random() % 4) * 0.5F);
    }
  }
  return sequences;
}

DatasetPtr dataset_of(const std::vector<Sequence>& sequences) {
  std::vector<std::int32_t> tokens, targets, lengths;
  std::vector<float> weights;
  for (const Sequence& sequence : sequences) {
    lengths.push_back(static_cast<std::int32_t>(sequence.tokens.size()));
    const std::size_t end = lengths.size() * kMost;
    const auto fill_up = [&](auto& all, const auto& own, auto other) {
      all.insert(all.end(), own.begin(), own.end());
      all.resize(end, other);
    };
    fill_up(tokens, sequence.tokens, 1);
    fill_up(targets, sequence.targets, 2);
    fill_up(weights, sequence.weights, 3.0F);
  }
  return tensors({{"tokens", std::move(tokens), {kMost}},
                  {"targets", std::move(targets), {kMost}},
                  {"weights", std::move(weights), {kMost}},
                  {"length", std::move(lengths)}});
}

using Values = std::vector<std::vector<float>>;

struct Computed {
  std::map<int, std::vector<float>> logits;  ///< logits of each sequence, by its index
  double loss = 0;
  Values gradients;
};

/// Returns the index of the first sequence with the tokens of `row` that isn't in `found`.
int find(const std::vector<Sequence>& sequences, std::span<const std::int32_t> row,
         const std::map<int, std::vector<float>>& found) {
  for (int i = 0; i < std::ssize(sequences); ++i) {
    const auto& tokens = sequences[static_cast<std::size_t>(i)].tokens;
    if (!found.contains(i) && std::ranges::equal(tokens, row)) return i;
  }
  ADD_FAILURE() << "a row has a sequence that isn't of the source";
  return -1;
}

class Packing : public ::testing::Test {
 protected:
  static void run(const std::vector<std::int64_t>& mesh, const std::function<void()>& body) {
    const Result result =
        Trainer([&](TrainContext&) { body(); },
                {.scaling = {.num_workers = 0},
                 .backend = {.spmd = {.mesh_shape = mesh, .axis_names = {"data", "model"}}},
                 .run = {.name = "packing", .seed = 5}})
            .fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
  }

  /// Computes all rows as one batch of a loader.
  static Computed packed(const std::vector<Sequence>& sequences,
                         const std::vector<std::int64_t>& mesh) {
    Computed computed;
    run(mesh, [&] {
      const Net net;
      for (const Linear* each : {&net.q, &net.k, &net.v}) {
        mark_sharding(each->weight, *weft::mesh(), {{"model"}, {}});
      }
      const DatasetPtr rows =
          pack_sequences(dataset_of(sequences), {.length = kRow, .length_field = "length"});
      const std::int64_t parts = mesh[0];
      const std::int64_t batch_size = (rows->size() + parts - 1) / parts * parts;
      DeviceLoader loader(rows, {.batch_size = batch_size, .pad_last = true});
      for (const Batch& batch : loader) {
        const Tensor ids = batch["segment_ids"];
        const Tensor logits = net(batch["tokens"], batch["positions"], ids);
        const Tensor loss =
            cross_entropy(logits, batch["targets"], {.sample_weight = batch["weights"]});
        for (const Tensor& each : grad(loss, net.parameters())) {
          computed.gradients.push_back(each.to_vector());
        }
        computed.loss = loss.item();
        take_apart(sequences, batch, logits.to_vector(), computed);
      }
      EXPECT_GT(metric_data("LoaderPadding").total, 0);
      EXPECT_LT(metric_data("LoaderPadding").total, 0.4);
    });
    return computed;
  }

  static void take_apart(const std::vector<Sequence>& sequences, const Batch& batch,
                         const std::vector<float>& logits, Computed& computed) {
    std::vector<float> ids = cast(batch["segment_ids"], DType::f32).to_vector();
    std::vector<float> read = cast(batch["tokens"], DType::f32).to_vector();
    const std::vector<std::int32_t> tokens(read.begin(), read.end());
    for (std::size_t begin = 0; begin < ids.size();) {
      std::size_t end = begin + 1;
      while (end < ids.size() && end % kRow != 0 && ids[end] == ids[begin]) ++end;
      if (ids[begin] != 0) {
        const int found =
            find(sequences, std::span(tokens).subspan(begin, end - begin), computed.logits);
        computed.logits[found] = {logits.begin() + static_cast<long>(begin * kVocabulary),
                                  logits.begin() + static_cast<long>(end * kVocabulary)};
      }
      begin = end;
    }
  }

  /// Computes each sequence alone, on one chip.
  static Computed alone(const std::vector<Sequence>& sequences) {
    Computed computed;
    run({1, 1}, [&] {
      const Net net;
      double weight = 0;
      for (const Sequence& each : sequences) {
        for (const float one : each.weights) weight += one;
      }
      for (int i = 0; i < std::ssize(sequences); ++i) {
        const Sequence& each = sequences[static_cast<std::size_t>(i)];
        const auto length = std::ssize(each.tokens);
        std::vector<std::int32_t> positions(each.tokens.size());
        std::iota(positions.begin(), positions.end(), 0);
        const Tensor logits =
            net(to_device(each.tokens, {1, length}), to_device(positions, {1, length}), {});
        const Tensor losses = cross_entropy(logits, to_device(each.targets, {1, length}),
                                            {.reduction = Reduction::none});
        const Tensor loss = sum(losses * to_device(each.weights, {1, length})) / weight;
        const std::vector<Tensor> gradients = grad(loss, net.parameters());
        computed.gradients.resize(gradients.size());
        for (std::size_t g = 0; g < gradients.size(); ++g) {
          const std::vector<float> part = gradients[g].to_vector();
          computed.gradients[g].resize(part.size());
          for (std::size_t e = 0; e < part.size(); ++e) computed.gradients[g][e] += part[e];
        }
        computed.loss += loss.item();
        computed.logits[i] = logits.to_vector();
        sync();
      }
    });
    return computed;
  }
};

TEST_F(Packing, ChangesNoOutputLossOrGradientOnAnyMesh) {
  const std::vector<Sequence> sequences = draw(23);
  const Computed expected = alone(sequences);
  for (const std::vector<std::int64_t>& mesh :
       std::vector<std::vector<std::int64_t>>{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {1, 3}}) {
    SCOPED_TRACE(fmt::format("mesh {}", fmt::join(mesh, "x")));
    const Computed found = packed(sequences, mesh);
    ASSERT_EQ(found.logits.size(), sequences.size());
    for (const auto& [sequence, logits] : expected.logits) {
      const std::vector<float>& others = found.logits.at(sequence);
      ASSERT_EQ(others.size(), logits.size());
      for (std::size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(others[i], logits[i], 2e-6);
    }
    EXPECT_NEAR(found.loss, expected.loss, 1e-6);
    ASSERT_EQ(found.gradients.size(), expected.gradients.size());
    for (std::size_t g = 0; g < found.gradients.size(); ++g) {
      for (std::size_t i = 0; i < found.gradients[g].size(); ++i) {
        EXPECT_NEAR(found.gradients[g][i], expected.gradients[g][i], 1e-6) << g << " " << i;
      }
    }
  }
}

/// A query's result doesn't depend on other segments, even if they contain a NaN.
TEST_F(Packing, KeepsSegmentsApartWhateverTheyHave) {
  run({1, 1}, [] {
    const auto ids = to_device(std::vector<std::int32_t>{1, 1, 2, 2, 2, 0}, {1, 6});
    std::vector<float> x(6 * 4);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    const auto of = [&](const std::vector<float>& values, std::int64_t begin, std::int64_t end,
                        const Tensor& segment_ids) {
      const std::vector<float> part(values.begin() + 4 * begin, values.begin() + 4 * end);
      const Tensor y = to_device(part, {1, 1, end - begin, 4});
      return attention(y, y, y, {.segment_ids = segment_ids}).to_vector();
    };
    std::vector<float> spoiled = x;
    for (std::size_t i = 0; i < 8; ++i) spoiled[i] = std::nanf("");
    for (std::size_t i = 20; i < 24; ++i) spoiled[i] = INFINITY;
    const std::vector<float> whole = of(spoiled, 0, 6, ids);
    EXPECT_EQ(std::vector<float>(whole.begin() + 8, whole.begin() + 20), of(x, 2, 5, {}));
    EXPECT_EQ(std::vector<float>(whole.begin() + 20, whole.end()), std::vector<float>(4, 0));
  });
}

TEST_F(Packing, IsTakenByTheLayers) {
  run({1, 1}, [] {
    struct Layers : Module {
      TransformerEncoder encoder{
          *this,
          "encoder",
          {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 8, .dropout = 0},
           .num_layers = 2}};
      TransformerDecoder decoder{
          *this,
          "decoder",
          {.layer = {.d_model = 8, .nhead = 2, .dim_feedforward = 8, .dropout = 0},
           .num_layers = 2}};
    };
    const Layers net;
    std::vector<float> numbers(8 * 7);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = std::sin(static_cast<float>(i * i % 31));
    }
    const Tensor x = to_device(numbers, {1, 7, 8});
    const auto ids = to_device(std::vector<std::int32_t>{1, 1, 1, 2, 2, 2, 2}, {1, 7});
    const auto compute = [&](const Tensor& in, const Tensor& segments) {
      const Tensor memory = net.encoder(in, {.segment_ids = segments});
      return net.decoder(
          in, memory,
          {.tgt_is_causal = true, .tgt_segment_ids = segments, .memory_segment_ids = segments});
    };
    const std::vector<float> whole = compute(x, ids).to_vector();
    const std::vector<float> first = compute(slice(x, 1, 0, 3), {}).to_vector();
    const std::vector<float> second = compute(slice(x, 1, 3, 7), {}).to_vector();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_NEAR(whole[i], i < first.size() ? first[i] : second[i - first.size()], 1e-5) << i;
    }
  });
}

}  // namespace
}  // namespace weft::packing_test
