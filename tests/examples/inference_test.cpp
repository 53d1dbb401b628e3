/// Tests the example inference with requests over HTTP, while its job trains and while its
/// processes are killed.

#include <gtest/gtest.h>

#include <signal.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/children.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::inference_test {
namespace {

/// The last images of the file, with which the job doesn't train.
struct Images {
  nlohmann::json images = nlohmann::json::array();
  std::vector<int> digits;
};

Images load_images(std::size_t count) {
  std::vector<std::string> lines;
  std::ifstream file(DIGITS_CSV);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  Images loaded;
  for (std::size_t i = lines.size() - count; i < lines.size(); ++i) {
    std::istringstream line(lines[i]);
    nlohmann::json image = nlohmann::json::array();
    for (std::string number; std::getline(line, number, ',');) image.push_back(std::stoi(number));
    loaded.digits.push_back(image.back());
    image.erase(image.size() - 1);
    loaded.images.push_back(std::move(image));
  }
  return loaded;
}

class Inference : public ::testing::Test {
 protected:
  struct Answer {
    int status = 0;
    std::uint64_t version = 0;
    double accuracy = 0;
  };

  Inference() {
    job_ = app_.job();
    const std::string line = app_.wait_for_line("listening at ");
    client_.emplace(line.substr(line.find("http://")));
    client_->set_read_timeout(120);
  }
  Answer ask() {
    const auto response = client_->Post("/digits", images_.images.dump(), "application/json");
    if (!response) return {};
    Answer answer{.status = response->status};
    const auto json = nlohmann::json::parse(response->body);
    if (answer.status != 200) {
      ADD_FAILURE() << response->body;
      return answer;
    }
    answer.version = json.at("version");
    const auto digits = json.at("digits").get<std::vector<int>>();
    EXPECT_EQ(digits.size(), images_.digits.size());
    std::size_t right = 0;
    for (std::size_t i = 0; i < digits.size(); ++i) right += digits[i] == images_.digits[i];
    answer.accuracy = static_cast<double>(right) / static_cast<double>(digits.size());
    return answer;
  }
  void expect_refused(const std::string& body, const std::string& words) {
    const auto response = client_->Post("/digits", body, "application/json");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 400);
    EXPECT_NE(response->body.find(words), std::string::npos) << response->body;
  }

  const testing::TemporaryFolder folder_;
  const Images images_ = load_images(200);
  testing::AppProcess app_{{INFERENCE, "--port", "0", "--storage", folder_.path()}};
  std::string job_;
  std::optional<httplib::Client> client_;
};

TEST_F(Inference, AnswersWhileItLearnsAndWhileProcessesAreKilled) {
  expect_refused("[]", "expected an array of 1 to 256 images");
  expect_refused("[[1, 2]]", "image 0: expected an array of 64 numbers");
  expect_refused("[", "parse error");
  Answer last = ask();
  const std::uint64_t first = last.version;
  while (last.status == 200 && last.accuracy < 0.9) last = ask();
  EXPECT_GT(last.version, first);
  const std::vector<pid_t> children = testing::children_of(app_.pid());
  EXPECT_GE(children.size(), 4U);  // two workers and two processes of actors
  for (const pid_t child : children) {
    if (kill(child, SIGKILL) != 0) continue;
    const std::uint64_t before = last.version;
    do {
      last = ask();
      ASSERT_EQ(last.status, 200);
    } while (last.version <= before + 20);
    EXPECT_GE(last.accuracy, 0.8);
  }
  const auto job = client_->Get("/job");
  ASSERT_TRUE(job);
  EXPECT_EQ(nlohmann::json::parse(job->body).at("job"), job_);
  ASSERT_EQ(kill(app_.pid(), SIGTERM), 0);
  EXPECT_EQ(app_.wait(), 0) << app_.output();
  EXPECT_NE(app_.output().find("the job has ended with "), std::string::npos) << app_.output();
  testing::expect_nothing_left(job_);
}

}  // namespace
}  // namespace weft::inference_test
