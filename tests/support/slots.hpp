#pragma once
/// Slots: the hosts of one job. Each is a process of this machine.

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/app_process.hpp"
#include "tests/support/net_machines.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::testing {

class Slots {
 public:
  /// The hosts run `words`, with `variables` ("NAME=value") in their environment. With `machines`,
  /// which must outlive the slots, host i starts on machine i.
  explicit Slots(std::vector<std::string> words, std::vector<std::string> variables = {},
                 const NetMachines* machines = nullptr);

  /// Starts host `index` of `count`, with `more` words.
  AppProcess& start(int index, int count = 2, const std::vector<std::string>& more = {});
  /// Starts host `index` of 2 on `machine` instead of machine number `index`.
  AppProcess& start_on(int machine, int index);
  /// Returns the process that was started as number `start`.
  AppProcess& host(std::size_t start) { return *hosts_.at(start); }
  /// Starts two hosts, and returns what finish() returns.
  nlohmann::json run();
  /// Expects that the processes of both hosts end well, and returns the result of host 0.
  nlohmann::json finish();
  /// Starts two hosts, and waits until they train.
  void train();
  std::uint16_t port() const { return static_cast<std::uint16_t>(port_); }
  const std::string& folder() const { return folder_.path(); }
  std::string secret() const { return folder_.path() + "/secret"; }

 private:
  AppProcess& start_at(int machine, int index, int count, const std::vector<std::string>& more);

  const TemporaryFolder folder_;
  const std::vector<std::string> words_;
  const std::vector<std::string> variables_;
  const NetMachines* const machines_;
  const int port_;
  std::vector<std::unique_ptr<AppProcess>> hosts_;
};

/// Expects that the output of a program has this text.
void expect_says(const AppProcess& app, const std::string& text);
/// Returns the result of the same program on one host, whose memory has all chips.
nlohmann::json in_one_memory(const std::vector<std::string>& words,
                             const std::vector<std::string>& variables);
/// Expects that two results have the same losses, parameters and accuracy, bit for bit.
void expect_same_training(const nlohmann::json& result, const nlohmann::json& expected);

}  // namespace weft::testing
