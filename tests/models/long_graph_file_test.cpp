// Tests how long it takes to read a graph file, which a build with sanitizers does not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "models/graph_file.h"

namespace antichain {
namespace {

// A linear reader takes some 10 µs a node. A quadratic one would take minutes, so the limit may be generous.
TEST(LongGraphFile, AHundredThousandNodesAreReadInSeconds) {
  constexpr int nodes = 100'000;
  std::string text = R"({"format": "antichain graph", "version": 1, "model": "long", "inputs": [
    {"name": "images", "shape": [2, 4, 4], "dtype": "float32"},
    {"name": "labels", "shape": [], "dtype": "int32"}],
    "nodes": [{"name": "n0", "op": "relu", "inputs": ["images"]})";
  for (int i = 1; i < nodes; ++i)
    text += fmt::format(
        ",\n{{\"name\": \"n{}\", \"op\": \"activate\", \"inputs\": [\"n{}\"], "
        "\"options\": {{\"function\": \"silu\"}}}}",
        i, i - 1);
  text += fmt::format(R"(, {{"name": "flatten", "op": "flatten", "inputs": ["n{}"]}},
    {{"name": "loss", "op": "softmax_cross_entropy", "inputs": ["flatten", "labels"]}}]}})",
                      nodes - 1);
  const auto start = std::chrono::steady_clock::now();
  const GraphFile file(text, "long.json");
  const Graph graph = file.graph({.microbatch = 2});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_EQ(graph.size(), nodes + 4);
  EXPECT_EQ(graph.find("n99999"), nodes + 1);
  EXPECT_LT(seconds, 20);
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace antichain
