#include "tests/unit/chips/cpu/kernels/kernel_case.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "chips/cpu/loops/aligned_buffer.hpp"
#include "spmd/program/element.hpp"

namespace weft::kernels {
namespace {

void write(const TensorType& type, const Elements& elements, std::byte* bytes) {
  for (const double element : elements) {
    store_element(type.dtype, element, bytes);
    bytes += byte_size(type.dtype);
  }
}

Elements read(const TensorType& type, const std::byte* bytes) {
  Elements elements(static_cast<std::size_t>(type.num_elements()));
  for (double& element : elements) {
    element = load_element(type.dtype, bytes);
    bytes += byte_size(type.dtype);
  }
  return elements;
}

constexpr std::size_t kTailBytes = 256;

/// Returns memory of `bytes` bytes and a tail that no kernel may write to. All bytes are 0xff, so
/// an element that is read before it is written is NaN or -1.
AlignedBuffer unwritten(std::size_t bytes) {
  AlignedBuffer buffer(bytes + kTailBytes);
  std::fill_n(buffer.data(), buffer.size(), std::byte{0xff});
  return buffer;
}

void expect_unwritten_tail(AlignedBuffer& buffer, std::size_t bytes) {
  const std::span<const std::byte> tail(buffer.data() + bytes, buffer.data() + buffer.size());
  EXPECT_TRUE(std::ranges::all_of(tail, [](std::byte byte) { return byte == std::byte{0xff}; }))
      << "a kernel writes past the end of " << bytes << " bytes";
}

/// The actual and the expected result of a case's only output.
struct Results {
  Elements actual;
  Elements expected;
};

Results run_both(const KernelCase& test) {
  Results results{run_kernels(test).at(0), interpret(test.program, test.inputs).at(0)};
  EXPECT_EQ(results.actual.size(), results.expected.size());
  return results;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

ValueId KernelCase::input(const TensorType& type, std::span<const double> elements) {
  Elements rounded;
  for (const double element : elements) {
    std::array<std::byte, 8> bytes{};
    store_element(type.dtype, element, bytes.data());
    rounded.push_back(load_element(type.dtype, bytes.data()));
  }
  inputs.push_back(std::move(rounded));
  return program.add_input(type, InputKind::data, "x", {});
}

ValueId KernelCase::input(const TensorType& type, std::mt19937& random, double low, double high,
                          bool whole) {
  std::uniform_real_distribution<double> any(low, high);
  Elements elements(static_cast<std::size_t>(type.num_elements()));
  for (double& element : elements) {
    element = any(random);
    if (whole || !is_floating(type.dtype)) element = std::round(element);
  }
  return input(type, elements);
}

void KernelCase::output(ValueId value) { program.add_output(value, "y", {}); }

std::vector<Elements> run_kernels(const Program& program, std::span<const Elements> inputs,
                                  const Mesh& mesh, int position) {
  const ChipContext chip{mesh, position, make_matmul_stream()};
  std::vector<AlignedBuffer> values(program.num_values());
  for (ValueId value = 0; value < program.num_values(); ++value) {
    values[value] = unwritten(static_cast<std::size_t>(program.type(value).bytes()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId value = program.inputs[i].value;
    write(program.type(value), inputs[i], values[value].data());
  }
  for (OpId op = 0; op < program.num_ops(); ++op) {
    const Kernel kernel = prepare(program, op, chip);
    AlignedBuffer scratch = unwritten(kernel.scratch_bytes);
    KernelArgs args{
        .operands = {}, .result = values[program.result(op)].data(), .scratch = scratch.data()};
    const auto operands = program.op_operands(op);
    std::ranges::transform(operands, args.operands.begin(),
                           [&](ValueId value) { return values[value].data(); });
    kernel.run(args);
    expect_unwritten_tail(scratch, kernel.scratch_bytes);
  }
  for (ValueId value = 0; value < program.num_values(); ++value) {
    expect_unwritten_tail(values[value], static_cast<std::size_t>(program.type(value).bytes()));
  }
  std::vector<Elements> outputs;
  for (const ProgramOutput& output : program.outputs) {
    outputs.push_back(read(program.type(output.value), values[output.value].data()));
  }
  return outputs;
}

std::vector<Elements> run_kernels(const KernelCase& test) {
  return run_kernels(test.program, test.inputs, Mesh({1}, {"data"}), 0);
}

void expect_exact(const KernelCase& test) {
  const auto [actual, expected] = run_both(test);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(same(actual[i], expected[i]))
        << "element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

void expect_near(const KernelCase& test, double relative, double scale) {
  const auto [actual, expected] = run_both(test);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double bound = relative * std::max(std::abs(expected[i]), scale);
    ASSERT_TRUE(same(actual[i], expected[i]) || std::abs(actual[i] - expected[i]) <= bound)
        << "element " << i << " is " << actual[i] << ", expected " << expected[i] << " within "
        << bound;
  }
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 1.0 / 256;
    case DType::f16: return 1.0 / 2048;
    case DType::f32: return std::numeric_limits<float>::epsilon() / 2;
    case DType::f64: return std::numeric_limits<double>::epsilon() / 2;
    default: return 0;
  }
}

int random_int(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

Shape random_shape(std::mt19937& random, int num_dims, std::int64_t low, std::int64_t high) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(num_dims));
  for (std::int64_t& size : sizes) {
    size = std::uniform_int_distribution<std::int64_t>(low, high)(random);
  }
  return Shape(std::span<const std::int64_t>(sizes));
}

}  // namespace weft::kernels
