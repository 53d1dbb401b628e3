/// Trains the convolutional net on images that the test draws.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/app_process.hpp"
#include "tests/support/drawn_digits.hpp"
#include "tests/support/small_shm.hpp"

namespace weft::mnist_cnn_test {
namespace {

using testing::AppProcess;

class MnistCnn : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    testing::draw_digits(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

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
  // Dropout chooses the same elements on every mesh, too.
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
  expect_message(images + ": IDX: has 984 bytes of data; shape (320, 24, 24) needs 184320");
  std::ofstream(images) << "not an IDX file at all";
  expect_message(images + ": IDX: begins with 6e 6f 74");
  std::filesystem::remove(images);
  expect_message(images +
                 ": No such file or directory; `tools/dev data fashion-mnist` puts Fashion-MNIST");
}

}  // namespace
}  // namespace weft::mnist_cnn_test
