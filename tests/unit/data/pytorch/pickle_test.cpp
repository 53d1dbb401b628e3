/// Tests pickles that are made here. torch_file_test.cpp tests pickles of torch.save().

#include "data/pytorch/pickle.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/expect_error.hpp"

namespace weft::pickle_test {
namespace {

using testing::expect_error;
using namespace std::string_literals;

std::vector<PickledTensor> read(const std::string& pickle) {
  return read_torch_pickle(std::as_bytes(std::span(pickle)));
}

std::string text(const std::string& value) {
  return "\x8c" + std::string(1, static_cast<char>(value.size())) + value;
}
std::string number(int value) {
  return "J" + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string tuple(std::initializer_list<int> numbers) {
  std::string all = "(";
  for (const int value : numbers) all += number(value);
  return all + "t";
}
std::string storage(const std::string& kind, int count, const std::string& key = "0") {
  return "(" + text("storage") + global("torch", kind) + text(key) + text("cpu") + number(count) +
         "tQ";
}
std::string tensor(const std::string& of, int offset, const std::string& sizes,
                   const std::string& strides) {
  return global("torch._utils", "_rebuild_tensor_v2") + "(" + of + number(offset) + sizes +
         strides + "\x89" + global("collections", "OrderedDict") + ")RtR";
}
const std::string kTensor = tensor(storage("FloatStorage", 6), 0, tuple({2, 3}), tuple({3, 1}));

TEST(Pickle, HasTheTensorsOfItsContainersByDottedNames) {
  const std::string nested =
      "}(" + text("a") + kTensor + number(7) + "](" + kTensor + "N" + text("x") + "\x85" + "eu.";
  const auto tensors = read("\x80\x02" + nested);
  ASSERT_EQ(tensors.size(), 2U);
  EXPECT_EQ(tensors[0].name, "a");
  EXPECT_EQ(tensors[1].name, "7.0");
  EXPECT_EQ(tensors[0].dtype, "F32");
  EXPECT_EQ(tensors[0].sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(tensors[0].storage_bytes, 24U);
  EXPECT_EQ(tensors[0].bytes(), 24U);
}

TEST(Pickle, RefusesEveryOtherGlobalByName) {
  const std::pair<const char*, const char*> globals[] = {{"os", "system"},
                                                         {"builtins", "eval"},
                                                         {"posix", "system"},
                                                         {"subprocess", "Popen"},
                                                         {"__main__", "Net"},
                                                         {"torch", "load"},
                                                         {"torch.serialization", "load"},
                                                         {"torch", "_utils"},
                                                         {"argparse", "Namespace"},
                                                         {"numpy.core.multiarray", "scalar"},
                                                         {"collections", "OrderedDict2"},
                                                         {"", ""},
                                                         {"torch.hub", "load"},
                                                         {"torch", "FloatStorage.from_file"}};
  for (const auto& [module, name] : globals) {
    SCOPED_TRACE(std::string(module) + " " + name);
    expect_error(Errc::version, {name, module, "runs no code", "state_dict"},
                 [&] { read("\x80\x02" + global(module, name) + "(" + text("echo") + "tR."); });
    expect_error(Errc::version, {name},
                 [&] { read("\x80\x04" + text(module) + text(name) + "\x93" + ")R."); });
  }
}

TEST(Pickle, RefusesOpcodesThatTensorsDoNotNeed) {
  for (const char opcode : "ioPIFSVL\x81\x92\x82\x83\x84\x97\x98gp2"s) {
    expect_error(Errc::version, {"opcode", "byte 2"},
                 [&] { read("\x80\x02"s + opcode + "xx\nyy\n."); });
  }
  expect_error(Errc::version, {"protocol 9"}, [] { read("\x80\x09N."); });
}

TEST(Pickle, RefusesWhatLiesOutsideItsStorage) {
  const std::string floats = storage("FloatStorage", 6);
  const std::string outside[] = {tensor(floats, 0, tuple({7}), tuple({1})),
                                 tensor(floats, 1, tuple({2, 3}), tuple({3, 1})),
                                 tensor(floats, 6, tuple({}), tuple({})),
                                 tensor(floats, 0, tuple({2}), tuple({6})),
                                 tensor(floats, -1, tuple({1}), tuple({1})),
                                 tensor(floats, 0, tuple({2}), tuple({-1})),
                                 tensor(floats, 0, tuple({-2}), tuple({1})),
                                 tensor(floats, 0, tuple({2, 3}), tuple({1})),
                                 tensor(floats, 0, tuple({2147483647, 2147483647, 2147483647}),
                                        tuple({2147483647, 2147483647, 2147483647})),
                                 tensor(storage("FloatStorage", -1), 0, tuple({}), tuple({}))};
  for (const std::string& each : outside) {
    expect_error(Errc::corrupt, {"pickle"}, [&] { read("\x80\x02" + each + "."); });
  }
}

/// Each pickle has few bytes, but would make a naive reader use much memory or time.
TEST(Pickle, RefusesBombs) {
  const auto refused = [](const std::string& pickle) {
    expect_error(Errc::corrupt, {"pickle"}, [&] { read("\x80\x02" + pickle); });
  };
  refused("X\xff\xff\xff\xff.");                     // a text of 4 GB
  refused("\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.");  // an even longer text
  refused("Nr\xff\xff\xff\x7f.");                    // 2^31 entries in the memo
  refused(std::string((1 << 22) + 1, ']') + ".");    // too many values
  refused(std::string((1 << 22) + 1, '(') + ".");    // too many marks
  refused("]q\0h\0a."s);                             // a list that contains itself
  std::string doubling = "]q\0000"s;                 // 2^59 values by reference
  for (char i = 1; i < 60; ++i) {
    const std::string before(1, static_cast<char>(i - 1));
    doubling += "](h" + before + "h" + before + "eq" + std::string(1, i) + "0";
  }
  refused(doubling + "h" + std::string(1, 59) + ".");
  std::string deep = kTensor;
  for (int i = 0; i < 100; ++i) deep += "\x85";
  refused(deep + ".");
}

TEST(Pickle, RefusesEveryTruncationAndChange) {
  const std::string whole = "\x80\x02}(" + text("a") + kTensor + "u.";
  ASSERT_EQ(read(whole).size(), 1U);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    expect_error(Errc::corrupt, {"pickle"}, [&] { read(whole.substr(0, bytes)); });
  }
  expect_error(Errc::corrupt, {"after its end"}, [&] { read(whole + "N"); });
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    try {
      (void)read(changed);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == Errc::corrupt || error.code() == Errc::version) << error.what();
    }
  }
}

TEST(Pickle, RefusesTwoTensorsOfOneName) {
  expect_error(Errc::corrupt, {"two tensors are named \"a.b\""}, [] {
    read("\x80\x02}(" + text("a") + "}" + text("b") + kTensor + "s" + text("a.b") + kTensor + "u.");
  });
}

}  // namespace
}  // namespace weft::pickle_test
