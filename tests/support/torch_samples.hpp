#pragma once
/// Small inputs of ops with the results of torch (tests/golden/torch/samples.py, edges.py).

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::testing {

using Json = nlohmann::json;

/// Reads a file of tests/golden/torch, which has one sample in each line, or all files of a folder.
std::vector<Json> torch_samples(const std::string& name);

/// Runs a sample in the calling thread's RuntimeScope. Returns what differs from torch in value or
/// gradients, or weft's error; "" if all agrees.
std::string disagreement(const Json& sample);

}  // namespace weft::testing
