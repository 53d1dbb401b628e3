#include <weft/train/state.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

#include "data/formats/safetensors.hpp"
#include "spmd/tensor/node.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/golden.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::state_test {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;
using testing::Tree;

struct Net : Module {
  Linear fc1{*this, "fc1", {.in_features = 6, .out_features = 10}};
  Linear fc2{*this, "fc2", {.in_features = 10, .out_features = 3}};
  Tensor operator()(const Tensor& x) const { return fc2(tanh(fc1(x))); }
};

std::vector<float> numbers(std::int64_t count, int first) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = 0.01F * static_cast<float>((static_cast<int>(i) * 37 + first) % 101);
  }
  return numbers;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return {bytes.begin(), bytes.end()};
}

/// Returns a tree with the parameters of a Net.
Tree net_tree() {
  Tree tree{{"fc1.weight", {DType::f32, {10, 6}}},
            {"fc1.bias", {DType::f32, {10}}},
            {"fc2.weight", {DType::f32, {3, 10}}},
            {"fc2.bias", {DType::f32, {3}}}};
  int first = 1;
  for (auto& tensor : tree) {
    tensor.elements = bytes_of(numbers(tensor.type.num_elements(), ++first));
  }
  return tree;
}

void write_safetensors(const std::string& path, const Tree& tree) {
  std::vector<NamedType> types;
  for (const auto& tensor : tree) types.push_back({tensor.name, tensor.type});
  const SafetensorsLayout layout = write_safetensors_header(types, {});
  std::vector<std::byte> file(layout.file_bytes);
  std::ranges::copy(layout.header, file.begin());
  for (std::size_t i = 0; i < tree.size(); ++i) {
    std::ranges::copy(tree[i].elements,
                      file.begin() + static_cast<std::ptrdiff_t>(layout.begins[i]));
  }
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
}

class Load : public ::testing::Test {
 protected:
  /// Runs a loop on a mesh of 2x2 chips. Fails the test if the loop fails.
  void run(const std::function<void(TrainContext&)>& loop) const {
    const Result result =
        Trainer([&](TrainContext& ctx) { loop(ctx); },
                {.scaling = {.num_workers = 0},
                 .backend = {.spmd = {.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}},
                 .run = {.name = "load", .storage_path = folder_.path() + "/runs"}})
            .fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
  }

  std::string save(const Tree& tree, const Mesh& mesh,
                   const std::vector<Sharding>& shardings) const {
    return testing::save_tree(posix_file_system(), folder_.path(), tree, mesh, shardings,
                              {.step = 12, .workers = mesh.size() % 2 == 0 ? 2 : 1});
  }
  std::string save(const Tree& tree) const {
    return save(tree, Mesh({1}, {"data"}), std::vector<Sharding>(tree.size()));
  }

  static void expect_loaded(const Net& net, const Tree& tree) {
    for (const Parameter& parameter : net.parameters()) {
      const auto is_it = [&](const auto& tensor) { return tensor.name == parameter.name(); };
      EXPECT_EQ(parameter.to_bytes(), std::ranges::find_if(tree, is_it)->elements)
          << parameter.name();
    }
  }

  static Tensor step(const Net& net) {
    const Tensor x = to_device(numbers(24, 5), {4, 6});
    const Tensor y = net(x);
    const Tensor loss = mean(y * y);
    sync();
    return loss;
  }

  TemporaryFolder folder_;
};

TEST_F(Load, TakesACheckpointOfAnyMesh) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    testing::Random random(seed);
    const Tree tree = net_tree();
    const Mesh saved_on = testing::random_mesh(random);
    const std::string path =
        save(tree, saved_on, testing::random_shardings(random, saved_on, tree));
    run([&](TrainContext& ctx) {
      Net net;
      if (seed % 3 == 0) mark_sharding(net.fc1.weight, *ctx.mesh(), {{"model"}, {"data"}});
      // The shards of this weight have padding.
      if (seed % 3 == 1) mark_sharding(net.fc2.weight, *ctx.mesh(), {{"data"}, {}});
      const LoadResult result = load(net, path);
      EXPECT_TRUE(result.missing.empty() && result.unexpected.empty());
      if (seed % 2 == 0) expect_loaded(net, tree);  // the file is read here, before any step
      (void)step(net);
      expect_loaded(net, tree);
    });
  }
}

TEST_F(Load, LaysTensorsOutAsTheyWereSavedOnTheSameMesh) {
  const Tree tree = net_tree();
  const Mesh mesh({2, 2}, {"data", "model"});
  std::vector<Sharding> shardings(4);
  shardings[0] = Sharding::from_spec(mesh, {{"model"}, {"data"}}, tree[0].type.shape, "w");
  const std::string path = save(tree, mesh, shardings);
  run([&](TrainContext& ctx) {
    Net net;
    load(net, path);
    Net marked;
    load(marked, path);
    mark_sharding(marked.fc1.weight, *ctx.mesh(), {{}, {"model"}});
    (void)step(net);
    EXPECT_TRUE(net.fc1.weight.node()->input_sharding().same_layout(shardings[0]));
    (void)step(marked);
    EXPECT_FALSE(marked.fc1.weight.node()->input_sharding().same_layout(shardings[0]));
    expect_loaded(marked, tree);
  });
}

TEST_F(Load, IntoParametersThatAreOnTheChipsCompilesNothingNew) {
  const std::string path = save(net_tree());
  run([&](TrainContext&) {
    Net net;
    const auto turn = [&] {
      const Tensor loss = step(net);
      return loss.item();
    };
    const double before = turn();
    const auto compiled = [] {
      const std::string report = metrics_report();
      const auto at = report.find("UncachedCompile");
      return report.substr(at, report.find("Counter", at + 20) - at);
    };
    (void)turn();
    const std::string programs = compiled();
    load(net, path);
    const double after = turn();
    EXPECT_NE(before, after);
    EXPECT_EQ(compiled(), programs);
    expect_loaded(net, net_tree());
  });
}

TEST_F(Load, FillsOptimizerState) {
  Tree tree = net_tree();
  const Tree only_net = tree;
  for (const auto& tensor : only_net) {
    for (const char* state : {".exp_avg", ".exp_avg_sq"}) {
      tree.push_back(
          {tensor.name + state, tensor.type,
           bytes_of(numbers(tensor.type.num_elements(), static_cast<int>(tree.size())))});
    }
  }
  const std::string with_state = save(tree);
  run([&](TrainContext&) {
    Net net;
    Adam adam(net.parameters(), {.lr = 1e-3});
    // This file has no bias correction, which Adam's state includes.
    const LoadResult result = load(state_dict(net, adam), with_state, {.partial = true});
    EXPECT_TRUE(result.unexpected.empty());
    EXPECT_FALSE(result.missing.empty());
    for (const std::string& name : result.missing) {
      EXPECT_NE(name.find("correction"), name.npos) << name;
    }
    for (const Parameter& state : adam.state()) {
      const auto is_it = [&](const auto& tensor) { return tensor.name == state.name(); };
      const auto found = std::ranges::find_if(tree, is_it);
      if (found != tree.end()) {
        EXPECT_EQ(state.to_bytes(), found->elements) << state.name();
      }
    }
  });
}

/// Runs the steps from `first` up to `last`, not including `last`; a step's data depend only on its
/// number.
void train(Net& net, Adam& adam, int first, int last) {
  for (int step = first; step < last; ++step) {
    const Tensor x = to_device(numbers(24, 5 + step), {4, 6});
    mark_sharding(x, *mesh(), {{"data"}, {}});
    const Tensor y = net(x);
    const Tensor loss = mean(y * y);
    adam.step(grad(loss, net.parameters()));
    sync();
  }
}

TEST_F(Load, GoesOnWithWhatWasSavedToTheBit) {
  const std::string path = folder_.path() + "/state.safetensors";
  std::map<std::string, std::vector<std::byte>> straight;
  std::map<std::string, std::vector<std::byte>> resumed;
  run([&](TrainContext& ctx) {
    Net net;
    fsdp(net, *ctx.mesh(), {.axis = "model"});
    Adam adam(net.parameters(), {.lr = 1e-2});
    train(net, adam, 0, 3);
    weft::save(state_dict(net, adam), path, {{"step", "3"}});
    train(net, adam, 3, 6);
    for (const Parameter& each : state_dict(net, adam)) straight[each.name()] = each.to_bytes();
  });
  run([&](TrainContext& ctx) {
    Net net;
    fsdp(net, *ctx.mesh(), {.axis = "model"});
    Adam adam(net.parameters(), {.lr = 1e-2});
    const LoadResult loaded = load(state_dict(net, adam), path);
    EXPECT_EQ(loaded.metadata.at("step"), "3");
    train(net, adam, 3, 6);
    for (const Parameter& each : state_dict(net, adam)) resumed[each.name()] = each.to_bytes();
  });
  EXPECT_GT(straight.size(), 12U);
  EXPECT_EQ(straight, resumed);
}

TEST_F(Load, SavingWhereNoFileCanBeIsAnError) {
  run([&](TrainContext&) {
    const Net net;
    expect_error(Errc::io, {"/absent/x.safetensors"},
                 [&] { weft::save(net, "/absent/x.safetensors"); });
    const std::vector<Parameter> twice{net.fc1.bias, net.fc1.bias};
    expect_error(Errc::invalid_argument, {"fc1.bias", "two tensors"},
                 [&] { weft::save(twice, folder_.path() + "/twice.safetensors"); });
  });
}

TEST_F(Load, SaysEverythingThatDoesNotFitAtOnce) {
  Tree tree = net_tree();
  tree[0].name = "fc1.wieght";
  tree[1].type = {DType::f32, {5, 2}};
  tree[2].type.dtype = DType::i32;
  tree.push_back({"head.weight", {DType::f32, {1}}, std::vector<std::byte>(4)});
  const std::string path = save(tree);
  run([&](TrainContext&) {
    Net net;
    expect_error(
        Errc::invalid_argument,
        {path, "state_test.cpp:", "'fc1.weight' is not in the file, which has \"fc1.wieght\"",
         "'fc1.bias' is f32[10], but in the file it is f32[5,2]",
         "'fc2.weight' is f32[3,10], but in the file it is i32[3,10]", "\"head.weight\"", "rename",
         "partial"},
        [&] { load(net, path); });
  });
}

TEST_F(Load, RenamesAndLeavesOutOnRequest) {
  Tree tree = net_tree();
  for (auto& tensor : tree) tensor.name = "model." + tensor.name;
  tree.push_back({"extra", {DType::f32, {}}, std::vector<std::byte>(4)});
  const std::string path = save(tree);
  run([&](TrainContext&) {
    Net net;
    const auto rename = [](std::string_view name) { return "model." + std::string(name); };
    expect_error(Errc::invalid_argument, {"\"extra\""},
                 [&] { load(net, path, {.rename = rename}); });
    const LoadResult result = load(net, path, {.partial = true, .rename = rename});
    EXPECT_EQ(result.unexpected, std::vector<std::string>{"extra"});
    expect_loaded(net, net_tree());
    expect_error(
        Errc::invalid_argument, {"'fc1.weight'", "'fc1.bias'", "both renamed to 'x'"},
        [&] { load(net, path, {.rename = [](std::string_view) { return std::string("x"); }}); });
  });
}

/// A module whose two layers share one weight, as a language model's head shares its embedding.
struct TiedNet : Module {
  Linear in{*this, "in", {.in_features = 3, .out_features = 2, .bias = false}};
  Linear out{*this, "out", {.in_features = 3, .out_features = 2, .bias = false}};
  TiedNet() { out.tie(out.weight, in.weight); }
};

const std::vector<std::byte> kSix = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6});
const std::vector<std::byte> kOtherSix = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 7});

TEST_F(Load, FindsATiedParameterUnderEachOfItsNames) {
  const std::string path = folder_.path() + "/tied.safetensors";
  const TensorType type{DType::f32, {2, 3}};
  const std::vector<Tree> files{{{"in.weight", type, kSix}},
                                {{"out.weight", type, kSix}},
                                {{"in.weight", type, kSix}, {"out.weight", type, kSix}}};
  run([&](TrainContext&) {
    for (const Tree& file : files) {
      write_safetensors(path, file);
      const TiedNet net;
      const LoadResult result = load(net, path);
      EXPECT_TRUE(result.missing.empty() && result.unexpected.empty());
      EXPECT_EQ(net.in.weight.to_bytes(), kSix) << file[0].name;
      const TiedNet renamed;
      write_safetensors(path, {{"lm.out.weight", type, kSix}});
      load(renamed, path,
           {.rename = [](std::string_view name) { return "lm." + std::string(name); }});
      EXPECT_EQ(renamed.out.weight.to_bytes(), kSix);
    }
  });
}

TEST_F(Load, RefusesOtherElementsForNamesThatAreTied) {
  const std::string path = folder_.path() + "/tied.safetensors";
  const TensorType type{DType::f32, {2, 3}};
  write_safetensors(path, {{"in.weight", type, kSix}, {"out.weight", type, kOtherSix}});
  run([&](TrainContext&) {
    const TiedNet net;
    expect_error(Errc::invalid_argument, {path, "'in.weight'", "'out.weight'", "don't tie"},
                 [&] { load(net, path); });
    write_safetensors(path, {{"head.weight", type, kSix}});
    expect_error(Errc::invalid_argument, {"'in.weight' is not in the file", "\"head.weight\""},
                 [&] { load(net, path); });
  });
}

TEST_F(Load, OfWhatWasSavedTiedHasItOnceAndTheOtherName) {
  const std::string path = folder_.path() + "/tied.safetensors";
  run([&](TrainContext&) {
    const TiedNet net;
    weft::save(net, path);
    EXPECT_EQ(StateFile::open(path)->tensors().size(), 1U);
    const TiedNet again;
    const LoadResult result = load(again, path);
    EXPECT_EQ(result.metadata.at("out.weight"), "in.weight");
    EXPECT_EQ(again.in.weight.to_bytes(), net.in.weight.to_bytes());
  });
}

TEST_F(Load, TakesAFileOfTorchSave) {
  run([&](TrainContext& ctx) {
    Module net;
    const Linear fc1(net, "fc1", {.in_features = 3, .out_features = 4});
    const Linear fc2(net, "fc2", {.in_features = 4, .out_features = 2});
    mark_sharding(fc1.weight, *ctx.mesh(), {{"data"}, {}});
    const std::string path = testing::golden_path("pytorch/training.pt");
    expect_error(Errc::invalid_argument, {"'fc1.weight'", "\"model.fc1.weight\"", "rename"},
                 [&] { load(net, path); });
    const LoadResult result =
        load(net, path, {.partial = true, .rename = [](std::string_view name) {
                           return "model." + std::string(name);
                         }});
    EXPECT_TRUE(result.missing.empty());
    EXPECT_EQ(std::ranges::count(result.unexpected, "optimizer.state.0.exp_avg"), 1);
    EXPECT_EQ(fc1.bias.to_vector(), (std::vector<float>{-0.5, 0, 0.5, 1}));
    EXPECT_EQ(fc1.weight.to_vector().back(), 5.0F);
    Module whole;
    const Linear same1(whole, "fc1", {.in_features = 3, .out_features = 4});
    const Linear same2(whole, "fc2", {.in_features = 4, .out_features = 2});
    load(whole, testing::golden_path("pytorch"));
    EXPECT_EQ(same2.bias.to_vector(), (std::vector<float>{-0.5, 0}));
  });
}

/// Tensors of an unknown dtype cause an error only if the program asks for them.
TEST_F(Load, LeavesTensorsAloneThatItCannotRead) {
  run([&](TrainContext&) {
    const std::string path = testing::golden_path("pytorch/kinds.pt");
    const std::vector<Parameter> known{make_buffer("f32", 0, {4, 2})};
    load(known, path, {.partial = true});
    EXPECT_EQ(known[0].to_vector()[2], 1.1F);
    const std::vector<Parameter> unknown{make_buffer("f8", 0, {4})};
    expect_error(Errc::invalid_argument, {"'f8' is f32[4], but in the file it is F8_E4M3[4]"},
                 [&] { load(unknown, path, {.partial = true, .cast = true}); });
  });
}

TEST_F(Load, RefusesAUrlAsSavingDoes) {
  run([&](TrainContext&) {
    const Net net;
    expect_error(Errc::unavailable, {"load: path = \"gs://b/x.safetensors\" is a URL"},
                 [&] { load(net, "gs://b/x.safetensors"); });
    expect_error(Errc::unavailable, {"save: path = \"gs://b/x.safetensors\" is a URL"},
                 [&] { weft::save(net, "gs://b/x.safetensors"); });
  });
  EXPECT_FALSE(std::filesystem::exists("gs:"));
}

TEST_F(Load, TakesSafetensorsAndConvertsOnRequest) {
  const Tree tree = net_tree();
  const std::string path = folder_.path() + "/net.safetensors";
  write_safetensors(path, tree);
  Tree doubles = tree;
  for (auto& tensor : doubles) {
    std::vector<float> elements(static_cast<std::size_t>(tensor.type.num_elements()));
    std::memcpy(elements.data(), tensor.elements.data(), tensor.elements.size());
    tensor.type.dtype = DType::f64;
    tensor.elements = bytes_of(std::vector<double>(elements.begin(), elements.end()));
  }
  const std::string wide = folder_.path() + "/wide.safetensors";
  write_safetensors(wide, doubles);
  run([&](TrainContext& ctx) {
    Net net;
    mark_sharding(net.fc1.weight, *ctx.mesh(), {{"data", "model"}, {}});
    load(net, path);
    (void)step(net);
    expect_loaded(net, tree);
    Net other;
    mark_sharding(other.fc2.weight, *ctx.mesh(), {{"data"}, {"model"}});
    expect_error(Errc::invalid_argument, {"f64[10,6]", "LoadOptions::cast"},
                 [&] { load(other, wide); });
    load(other, wide, {.cast = true});
    (void)step(other);
    expect_loaded(other, tree);
  });
}

TEST_F(Load, RefusesAnElementOfABoolThatIsNeither0Nor1) {
  const std::string path = folder_.path() + "/mask.safetensors";
  for (const int element : {1, 7}) {
    std::vector<std::byte> elements(6, std::byte{0});
    elements[4] = static_cast<std::byte>(element);
    write_safetensors(path, {{"mask", {DType::pred, {2, 3}}, elements}});
    const auto file = StateFile::open(path);
    std::vector<std::byte> memory(4 * 2, std::byte{9});  // memory for 4 rows; the file has 2
    const TensorSource::Target target{{{{0, 1}, {2, 1}}, {4, 2}}, memory.data()};
    const auto read = [&] { file->source(0, DType::pred)->read({&target, 1}); };
    if (element == 1) {
      read();
      EXPECT_EQ(memory[2], std::byte{1});
    } else {
      expect_error(Errc::corrupt, {path, "'mask'", "7", "0 or 1"}, read);
    }
  }
}

TEST(StateFile, WidensIntegersAsLoadOptionsSays) {
  for (const FileDType from : {FileDType::u8, FileDType::u16}) {
    for (const DType to : {DType::u32, DType::i32, DType::i64}) {
      EXPECT_TRUE(StateFile::can_cast(from, to));
    }
  }
  EXPECT_TRUE(StateFile::can_cast(FileDType::i16, DType::i32));
  EXPECT_TRUE(StateFile::can_cast(FileDType::u32, DType::i64));
  EXPECT_FALSE(StateFile::can_cast(FileDType::i8, DType::u32)) << "loses the sign";
  EXPECT_FALSE(StateFile::can_cast(FileDType::u32, DType::i32));
  EXPECT_FALSE(StateFile::can_cast(FileDType::i32, DType::u32));
}

TEST_F(Load, TakesAFolderOfSafetensorsWithAnIndex) {
  const Tree tree = net_tree();
  const std::string model = folder_.path() + "/model";
  std::filesystem::create_directory(model);
  write_safetensors(model + "/a.safetensors", {tree[0], tree[1]});
  write_safetensors(model + "/b.safetensors", {tree[2], tree[3]});
  const auto write_index = [&](const std::string& last) {
    std::ofstream(model + "/model.safetensors.index.json")
        << R"({"metadata": {"total_size": 412}, "weight_map": {"fc1.weight": "a.safetensors",)"
        << R"("fc1.bias": "a.safetensors", "fc2.weight": "b.safetensors", )" << last << "}}";
  };
  write_index(R"("fc2.bias": "b.safetensors")");
  run([&](TrainContext&) {
    Net net;
    load(net, model);
    expect_loaded(net, tree);
    write_index(R"("fc2.bias": "a.safetensors")");
    expect_error(Errc::corrupt, {"fc2.bias", "a.safetensors"}, [&] { load(net, model); });
  });
}

TEST_F(Load, ReadsTheFileThatWasThereThoughItIsReplacedBeforeTheFirstUse) {
  const Tree tree = net_tree();
  const std::string path = folder_.path() + "/net.safetensors";
  write_safetensors(path, tree);
  run([&](TrainContext&) {
    Net net;
    load(net, path);
    const Net fresh;
    weft::save(fresh, path);
    expect_loaded(net, tree);
    (void)step(net);
    expect_loaded(net, tree);
    std::filesystem::remove(path);
  });
}

TEST_F(Load, ChangesNothingWhereItFails) {
  const std::string path = save(net_tree());
  run([&](TrainContext&) {
    Net net;
    const std::vector<std::byte> before = net.fc1.weight.to_bytes();
    const Tensor used = net.fc2.bias * 2.0;
    expect_error(Errc::invalid_argument, {"'fc2.bias'", "recorded since the last sync"},
                 [&] { load(net, path); });
    EXPECT_EQ(net.fc1.weight.to_bytes(), before);
    sync();
    load(net, path);
    expect_loaded(net, net_tree());
  });
}

TEST_F(Load, NamesTheTensorWhoseBytesWereChanged) {
  const std::string path = save(net_tree());
  const std::string part = path + "/part-00000-of-00001.weft";
  run([&](TrainContext&) {
    Net net;
    load(net, path);
    std::fstream file(part, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
    file.close();
    const std::string message =
        expect_error(Errc::corrupt, {part, "changed"}, [&] { (void)step(net); });
    EXPECT_EQ(message.find("'fc"), 0U) << message;
  });
}

TEST_F(Load, SaysWhatIsNoFileOfTensors) {
  const std::string path = save(net_tree());
  run([&](TrainContext&) {
    Net net;
    expect_error(Errc::not_found, {"/absent", "expected"}, [&] { load(net, "/absent"); });
    expect_error(Errc::not_found, {folder_.path(), "checkpoint_000012"},
                 [&] { load(net, folder_.path()); });
    net.fc1.bias.assign(net.fc1.bias + 1.0);
    expect_error(Errc::invalid_argument, {"'fc1.bias'", "recorded since the last sync"},
                 [&] { load(net, path); });
  });
}

}  // namespace
}  // namespace weft::state_test
