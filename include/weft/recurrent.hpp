#pragma once
/// Recurrent layers, with torch.nn's options, initial values and parameter names. The input's part
/// of all gates is one matrix product; then each step of time is recorded, so the program grows
/// with the length of the sequences.

#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include <weft/module.hpp>

namespace weft {

struct RecurrentOptions {
  std::int64_t input_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< x and the output are [batch, time, ..], not [time, batch, ..]
  double dropout = 0;        ///< of what a layer gives the next one, in training mode
  bool bidirectional = false;
};

/// What RNN, GRU and LSTM have: for layer i weight_ih_li f32[G * hidden_size, features],
/// weight_hh_li f32[G * hidden_size, hidden_size], bias_ih_li and bias_hh_li, all uniform in
/// +-1/sqrt(hidden_size), where G is the number of gates; those of the other direction end in
/// "_reverse". The features of later layers are the D * hidden_size of the one before, D being 2 if
/// bidirectional, else 1.
class Recurrent : public Module {
 public:
  /// Of one layer and direction. The biases may be empty.
  struct Weights {
    Parameter ih, hh, bias_ih, bias_hh;
  };
  /// Layer i's are at i, or if bidirectional at 2 i and, for the way back, 2 i + 1.
  const std::vector<Weights>& weights() const { return weights_; }

 protected:
  /// Throws invalid_argument for sizes below 1 and a dropout outside 0 to 1.
  Recurrent(Module& parent, std::string name, const RecurrentOptions& options, const char* kind,
            std::int64_t num_gates);

  /// Tensors [batch, hidden_size] that go from step to step: h, for LSTM h and c.
  using Carry = std::vector<Tensor>;
  struct Outputs {
    Tensor all;                ///< of the last layer, for each time
    std::vector<Tensor> last;  ///< [D * num_layers, batch, hidden_size]: of each carried tensor
  };
  /// Runs all layers. `first[k]`: of carried tensor k [D * num_layers, batch, hidden_size], or
  /// empty for zeros.
  Outputs run(const Tensor& x, const std::vector<Tensor>& first,
              const std::source_location& loc) const;

 private:
  struct Walk {
    Tensor all;  // h of each time
    Carry carry;
  };
  Walk over_time(const Tensor& from_x, Carry carry, const Weights& weights, bool reverse) const;
  /// The next carry. `from_x`: the input's part of the gates [batch, G * hidden_size], with its
  /// bias.
  virtual Carry step(const Tensor& from_x, const Carry& carry, const Weights& weights) const = 0;
  Carry first_carry(const std::vector<Tensor>& first, std::int64_t place, const Tensor& x) const;

  RecurrentOptions options_;
  const char* kind_;
  std::vector<Weights> weights_;
};

struct RecurrentResult {
  Tensor output;  ///< [time, batch, D * hidden_size], of the last layer
  Tensor h_n;     ///< [D * num_layers, batch, hidden_size], after the last step
};

/// torch.nn.RNN (J. Elman, 1990): h = tanh(W x + b + U h + c).
class RNN : public Recurrent {
 public:
  using Options = RecurrentOptions;
  RNN(Module& parent, std::string name, const Options& options);
  /// x[time, batch, input_size]; h_0 as h_n, or empty for zeros.
  RecurrentResult operator()(const Tensor& x, const Tensor& h_0 = {},
                             std::source_location loc = std::source_location::current()) const;

 private:
  Carry step(const Tensor& from_x, const Carry& carry, const Weights& weights) const override;
};

/// torch.nn.GRU (K. Cho et al., 2014); gates in the order r, z, n.
class GRU : public Recurrent {
 public:
  using Options = RecurrentOptions;
  GRU(Module& parent, std::string name, const Options& options);
  RecurrentResult operator()(const Tensor& x, const Tensor& h_0 = {},
                             std::source_location loc = std::source_location::current()) const;

 private:
  Carry step(const Tensor& from_x, const Carry& carry, const Weights& weights) const override;
};

/// torch.nn.LSTM (S. Hochreiter, J. Schmidhuber, 1997); gates in the order i, f, g, o.
class LSTM : public Recurrent {
 public:
  using Options = RecurrentOptions;
  struct Result {
    Tensor output;
    Tensor h_n;
    Tensor c_n;  ///< the cells', as h_n
  };
  struct State {
    Tensor h_0{};
    Tensor c_0{};
  };
  LSTM(Module& parent, std::string name, const Options& options);
  Result operator()(const Tensor& x, const State& state,
                    std::source_location loc = std::source_location::current()) const;
  Result operator()(const Tensor& x,
                    std::source_location loc = std::source_location::current()) const {
    return (*this)(x, {}, loc);
  }

 private:
  Carry step(const Tensor& from_x, const Carry& carry, const Weights& weights) const override;
};

}  // namespace weft
