// Lists the cases of operators that give samples other shapes: constants, permute, reshape, slice, means over
// axes, and products of matrices.
#include "layers/class_token.h"
#include "layers/constant.h"
#include "layers/gather.h"
#include "layers/input.h"
#include "layers/matmul.h"
#include "layers/mean.h"
#include "layers/permute.h"
#include "layers/positions.h"
#include "layers/reshape.h"
#include "layers/slice.h"
#include "tests/layers/op_cases.h"

namespace antichain::harness {
namespace {

OpCase permuted(std::string name, Shape x, std::vector<int> order) {
  return {std::move(name), std::make_shared<Permute>(std::move(order)), {x}};
}

OpCase reshaped(std::string name, Shape x, std::vector<int64_t> shape) {
  return {std::move(name), std::make_shared<Reshape>(std::move(shape)), {x}};
}

OpCase sliced(std::string name, Shape x, SliceOptions options) {
  return {std::move(name), std::make_shared<Slice>(options), {x}};
}

OpCase averaged(std::string name, Shape x, std::vector<int> axes, bool keep_dims = false) {
  return {std::move(name), std::make_shared<Mean>(std::move(axes), keep_dims), {x}};
}

OpCase gathered(std::string name, Shape x, GatherOptions options) {
  return {std::move(name), std::make_shared<Gather>(std::move(options)), {x}};
}

// Returns so many places of `extent`.
std::vector<int64_t> every_third(int64_t count, int64_t extent) {
  std::vector<int64_t> table;
  for (int64_t i = 0; i < count; ++i) table.push_back(3 * i % extent);
  return table;
}

// Returns the operator that a function adds to a graph.
template <class F>
OpCase added(std::string name, Shape x, F&& add) {
  Graph graph(name);
  const NodeId in = graph.add("x", std::make_shared<Input>(TensorSpec{.shape = x}), {});
  return {std::move(name), graph[add(graph, in)].op, {x}};
}

// Errors are relative to the largest number, and a sum of few products is nearly exact.
OpCase matrices(std::string name, Shape a, Shape b, MatmulOptions options = {}) {
  return {std::move(name), std::make_shared<Matmul>(options), {a, b}};
}

OpCase constant_of(std::string name, Shape x, ConstantOptions options) {
  return {std::move(name), std::make_shared<Constant>(std::move(options)), {x}};
}

}  // namespace

std::vector<OpCase> shape_cases() {
  return {constant_of("constant_zeros", {3, 20, 4, 5}, {.shape = {7}, .values = {0}}),
          constant_of("constant_numbers", {2, 5}, {.shape = {2, 3}, .values = {1, -2, 0.5f, 3, 4, -0.25f}}),
          constant_of("constant_number", {3, 4}, {.shape = {}, .values = {1.5f}}),
          reshaped("reshape_to_one_number", {4, 1}, {}),
          {"class_token", std::make_shared<ClassToken>(ClassTokenOptions{}), {{5, 7, 24}}},
          {"class_token_odd", std::make_shared<ClassToken>(ClassTokenOptions{}), {{3, 1, 9}}},
          gathered("gather_columns", {3, 5, 9}, {.axis = 2, .table = {0, 3, 3, 8, 1, 3}}),
          gathered("gather_rolled", {2, 4, 3, 5}, {.axis = 1, .table = {2, 3, 0, 1}}),
          gathered("gather_of_rows", {5, 17}, {.table = every_third(40, 17)}),
          added("positions", {3, 5, 24},
                [](Graph& g, NodeId x) { return add_positions(g, "wpe", x, {.rows = 9}); }),
          added("positions_all", {2, 7, 9}, [](Graph& g, NodeId x) { return add_positions(g, "wpe", x); }),
          added("relative_bias", {2, 3, 4, 5},
                [](Graph& g, NodeId x) {
                  return add_relative_bias(g, "bias", x, {.rows = 7, .table = every_third(20, 7)});
                }),
          matrices("matmul", {3, 5, 7}, {3, 7, 4}),
          matrices("matmul_heads", {2, 3, 9, 16}, {2, 3, 9, 16}, {.transpose_b = true}),
          matrices("matmul_gram", {2, 40, 33}, {2, 40, 35}, {.transpose_a = true}),
          matrices("matmul_both_transposed", {2, 2, 2, 6, 5}, {2, 2, 2, 3, 6}, {true, true}),
          matrices("matmul_of_one", {4, 1, 1}, {4, 1, 8}),
          permuted("permute_channels_last", {3, 20, 7, 5}, {0, 2, 3, 1}),
          permuted("permute_channels_first", {2, 7, 5, 17}, {0, 3, 1, 2}),
          permuted("permute_heads", {2, 9, 4, 8}, {0, 2, 1, 3}),
          permuted("permute_nothing", {3, 16, 2, 2}, {0, 1, 2, 3}),
          permuted("permute_rows", {5, 17}, {0, 1}),
          permuted("permute_tokens", {3, 12, 20}, {0, 2, 1}),
          permuted("permute_shuffle", {2, 4, 10, 3, 5}, {0, 2, 1, 3, 4}),
          permuted("permute_all_of_five", {3, 2, 4, 5, 3}, {0, 4, 2, 1, 3}),
          permuted("permute_windows", {2, 3, 4, 2, 5, 3}, {0, 1, 3, 2, 4, 5}),
          permuted("permute_all_of_six", {2, 3, 4, 2, 5, 3}, {0, 5, 3, 1, 4, 2}),
          reshaped("reshape_to_windows", {3, 6, 8, 5}, {2, 3, 2, 4, 5}),
          reshaped("reshape_to_rows", {3, 10, 3, 5}, {-1}),
          reshaped("reshape_to_images", {3, 40}, {-1, 2, 2}),
          reshaped("reshape_pixel", {5, 32, 1, 1}, {32}),
          reshaped("reshape_groups", {2, 20, 3, 5}, {4, 5, 3, 5}),
          reshaped("reshape_tokens", {2, 16, 4, 4}, {16, -1}),
          sliced("slice_channels_of_blocks", {3, 48, 5, 4}, {.begin = 16, .end = 32}),
          sliced("slice_channels_to_the_end", {3, 40, 5, 4}, {.begin = 32}),
          sliced("slice_channels_cutting_blocks", {3, 40, 5, 4}, {.begin = 5, .end = -7}),
          sliced("slice_every_second_channel", {2, 32, 3, 3}, {.begin = 1, .step = 2}),
          sliced("slice_rows_of_images", {3, 20, 9, 4}, {.axis = 2, .begin = 2, .end = 7}),
          sliced("slice_every_third_row", {3, 20, 9, 4}, {.axis = 2, .begin = 1, .step = 3}),
          sliced("slice_columns", {2, 16, 5, 8}, {.axis = 3, .begin = -3}),
          sliced("slice_every_second_column", {2, 17, 5, 7}, {.axis = 3, .step = 2}),
          sliced("slice_all", {2, 17, 2, 2}, {}),
          sliced("slice_of_rows", {5, 17}, {.begin = 3, .end = 11}),
          sliced("slice_one_token", {3, 12, 20}, {.end = 1}),
          sliced("slice_of_five", {2, 3, 4, 5, 6}, {.axis = 3, .begin = 1, .end = 4, .step = 2}),
          averaged("mean_of_pixels", {3, 32, 7, 5}, {2, 3}),
          averaged("mean_of_pixels_odd", {3, 17, 7, 5}, {2, 3}),
          averaged("mean_of_pixels_kept", {3, 40, 7, 5}, {2, 3}, true),
          averaged("mean_of_channels", {2, 20, 9, 8}, {1}),
          averaged("mean_of_channels_kept", {2, 20, 9, 8}, {1}, true),
          averaged("mean_of_rows_of_images", {2, 17, 9, 8}, {2}),
          averaged("mean_of_columns_kept", {2, 20, 9, 8}, {3}, true),
          averaged("mean_of_channels_and_columns", {2, 10, 5, 7}, {1, 3}),
          averaged("mean_of_samples", {3, 20, 7, 5}, {1, 2, 3}),
          averaged("mean_of_many", {2, 130, 31, 29}, {1, 2}),
          averaged("mean_of_row", {5, 1000}, {1}),
          averaged("mean_of_tokens", {3, 49, 70}, {1}),
          averaged("mean_of_single_pixels", {3, 20, 1, 1}, {2, 3}),
          averaged("mean_of_one", {3, 1, 4, 4}, {1}),
          sliced("slice_of_six", {2, 3, 2, 4, 5, 6}, {.axis = 4, .begin = 1, .end = 4, .step = 2}),
          matrices("matmul_of_windows", {2, 2, 2, 3, 6, 5}, {2, 2, 2, 3, 5, 4}),
          averaged("mean_of_two_of_five", {2, 3, 4, 5, 6}, {2, 4}),
          averaged("mean_of_two_of_six", {2, 3, 4, 2, 5, 6}, {2, 4, 5})};
}

}  // namespace antichain::harness
