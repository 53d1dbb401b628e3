/// The convolutional net, on images that the test draws.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/app_process.hpp"
#include "tests/support/small_shm.hpp"

namespace weft::mnist_cnn_test {
namespace {

using testing::AppProcess;

/// Digit d is a bar of 3 pixels at 2 d, upright for even ones and lying for odd ones.
class MnistCnn : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    write("train", 320);
    write("t10k", 128);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void put(std::ofstream& out, std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(number >> shift));
  }
  void write(const std::string& prefix, std::uint32_t count) const {
    std::ofstream images(folder_ / (prefix + "-images-idx3-ubyte"), std::ios::binary);
    std::ofstream labels(folder_ / (prefix + "-labels-idx1-ubyte"), std::ios::binary);
    for (const std::uint32_t word : {0x0803U, count, 24U, 24U}) put(images, word);
    for (const std::uint32_t word : {0x0801U, count}) put(labels, word);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t digit = (i * 7 + i / 10) % 10;
      labels.put(static_cast<char>(digit));
      for (std::uint32_t y = 0; y < 24; ++y) {
        for (std::uint32_t x = 0; x < 24; ++x) {
          const std::uint32_t across = digit % 2 == 0 ? x : y;
          const bool ink = across >= 2 * digit && across < 2 * digit + 3;
          images.put(static_cast<char>(ink ? 200 + (i + x + y) % 50 : (i * x + y) % 40));
        }
      }
    }
  }
  nlohmann::json train(std::vector<std::string> layout) const {
    std::vector<std::string> words{MNIST_CNN,  "--data", folder_.string(), "--batch", "32",
                                   "--epochs", "3",      "--seed",         "5",       "--json",
                                   "{json}"};
    words.insert(words.end(), layout.begin(), layout.end());
    AppProcess app(words);
    EXPECT_EQ(app.wait(), 0) << app.output();
    testing::expect_nothing_left(app.result().at("job"));
    return app.result();
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / fmt::format("weft-mnist-{}", ::getpid());
};

TEST_F(MnistCnn, LearnsTheSameOnEveryLayout) {
  const nlohmann::json one = train({"--workers", "1", "--chips", "1"});
  const nlohmann::json four = train({"--workers", "2", "--chips", "2"});
  EXPECT_EQ(one.at("steps"), 30);
  EXPECT_GE(four.at("test_accuracy").get<double>(), 0.9);
  const auto expected = one.at("loss_history").get<std::vector<double>>();
  const auto found = four.at("loss_history").get<std::vector<double>>();
  ASSERT_EQ(found.size(), expected.size());
  // Dropout, too, takes the same elements on every mesh.
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-3 * expected[i]) << "step " << i;
  }
}

TEST_F(MnistCnn, RefusesFilesThatArentIdx) {
  const auto expect_message = [&](const std::string& words) {
    AppProcess app({MNIST_CNN, "--workers", "0", "--data", folder_.string()});
    EXPECT_EQ(app.wait(), 1);
    EXPECT_NE(app.output().find(words), std::string::npos) << app.output();
  };
  const std::string images = (folder_ / "train-images-idx3-ubyte").string();
  std::filesystem::resize_file(images, 1000);
  expect_message(images + ": IDX: 984 bytes of data; of shape (320, 24, 24) it has 184320");
  std::ofstream(images) << "not an IDX file at all";
  expect_message(images + ": IDX: begins with 6e 6f 74");
  std::filesystem::remove(images);
  expect_message(images + ": No such file or directory; `tools/dev data mnist` fetches MNIST");
}

}  // namespace
}  // namespace weft::mnist_cnn_test
