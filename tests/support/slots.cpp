#include "tests/support/slots.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include <fmt/format.h>

#include "tests/support/free_port.hpp"

namespace weft::testing {

Slots::Slots(std::vector<std::string> words, std::vector<std::string> variables,
             const NetMachines* machines)
    : words_(std::move(words)),
      variables_(std::move(variables)),
      machines_(machines),
      port_(free_port()) {
  std::ofstream(secret()) << "0123456789abcdef0123456789abcdef\n";
  ::chmod(secret().c_str(), 0600);
}

AppProcess& Slots::start(int index, int count, const std::vector<std::string>& more) {
  return start_at(index, index, count, more);
}

AppProcess& Slots::start_on(int machine, int index) { return start_at(machine, index, 2, {}); }

AppProcess& Slots::start_at(int machine, int index, int count,
                            const std::vector<std::string>& more) {
  std::vector<std::string> variables = variables_;
  variables.insert(
      variables.end(),
      {fmt::format("WEFT_HOSTS={}", count), fmt::format("WEFT_HOST_INDEX={}", index),
       fmt::format("WEFT_TRAINER={}:{}", machines_ ? machines_->address(0) : "127.0.0.1", port_),
       "WEFT_SECRET_FILE=" + secret()});
  std::vector<std::string> words;
  if (machines_ != nullptr) words = machines_->prefix(machine);
  words.insert(words.end(), words_.begin(), words_.end());
  words.insert(words.end(), more.begin(), more.end());
  hosts_.push_back(std::make_unique<AppProcess>(words, variables));
  return *hosts_.back();
}

nlohmann::json Slots::run() {
  start(0);
  start(1);
  return finish();
}

nlohmann::json Slots::finish() {
  EXPECT_EQ(host(0).wait(), 0) << host(0).output();
  EXPECT_EQ(host(1).wait(), 0) << host(1).output();
  return host(0).result();
}

void Slots::train() {
  start(0);
  start(1);
  EXPECT_NE(host(0).wait_for_line("epoch"), "") << host(0).output();
}

void expect_says(const AppProcess& app, const std::string& text) {
  EXPECT_NE(app.output().find(text), std::string::npos) << text << "\n" << app.output();
}

nlohmann::json in_one_memory(const std::vector<std::string>& words,
                             const std::vector<std::string>& variables) {
  AppProcess app(words, variables);
  EXPECT_EQ(app.wait(), 0) << app.output();
  return app.result();
}

void expect_same_training(const nlohmann::json& result, const nlohmann::json& expected) {
  ASSERT_FALSE(expected.is_null());
  ASSERT_FALSE(result.is_null());
  ASSERT_FALSE(expected.at("loss_history").empty());
  for (const char* what : {"loss_history", "params_digest", "test_accuracy", "steps"}) {
    EXPECT_EQ(result.at(what), expected.at(what)) << what;
  }
}

}  // namespace weft::testing
