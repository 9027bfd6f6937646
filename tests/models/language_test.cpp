// Compares small transformers with those of Hugging Face and torchvision (tests/golden/language.py), on the
// same weights and batches: loss and gradients in double precision with theirs in float64, the engine's
// float32 with double precision, and the tokens with which GPT-2 goes on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "framework/backend.h"
#include "framework/error.h"
#include "models/bert.h"
#include "models/gpt.h"
#include "models/llama.h"
#include "models/vit.h"
#include "tests/layers/reference/reference.h"
#include "tests/models/golden.h"
#include "tests/models/graph_run.h"
#include "tests/models/judged_engine.h"

namespace antichain {
namespace {

constexpr int words = 37, length = 11, samples = 3, golden_batches = 4;

Graph network(const std::string& name, int tokens = length, int microbatch = samples, bool packed = false) {
  const ModelOptions o = {.microbatch = microbatch,
                          .classes = 10,
                          .image = 32,
                          .sequence = tokens,
                          .vocabulary = words,
                          .packed = packed,
                          .dropout = 0};
  const bool tied = !name.ends_with("_untied");
  if (name.starts_with("gpt2"))
    return gpt_network(name, {.layers = 2, .heads = 2, .width = 24, .positions = 80, .tied = tied}, o);
  if (name.starts_with("llama"))
    return llama_network(
        name, {.layers = 2, .heads = 4, .kv_heads = 2, .width = 32, .hidden = 48, .tied = tied}, o);
  if (name == "bert")
    return bert_network(name, {.layers = 2, .heads = 2, .width = 24, .hidden = 40, .positions = 16}, o);
  ANTICHAIN_CHECK(name == "vit", "language.py has a network more");
  return vit_network(name, {.layers = 2, .heads = 2, .width = 24}, 8, o);
}

int whole(const std::string& name, int64_t index) { return int((drawn_golden(name, index) + 1) / 2 * words); }

// Returns the label of a position, or −100.
int label_of(int batch, int sample, int position, bool padded) {
  if (sample == 0 ? position >= 2 : position % 3 == 0) return -100;
  if (padded && position >= length - 2 * sample) return -100;
  return whole(fmt::format("labels {}", batch), sample * length + position);
}

// Fills what language.py draws.
Start start_of(const std::string& name, int batch) {
  return [=](const Tensor& plain, std::string_view of) {
    if (plain.dtype() == DType::f32 && of == "images") {
      for (int64_t i = 0; i < plain.elements(); ++i)
        plain.data<float>()[i] = float(drawn_golden(fmt::format("images {}", batch), i));
      return;
    }
    if (plain.dtype() == DType::f32) return draw_golden(plain, of);
    if (name == "vit") return;
    for (int i = 0; i < samples * length; ++i) {
      const int sample = i / length, position = i % length;
      int32_t& value = plain.data<int32_t>()[i];
      if (of == "tokens") value = whole(fmt::format("tokens {}", batch), i);
      if (of == "labels") value = label_of(batch, sample, position, name == "bert");
      if (of == "documents") value = position < length - 2 * sample ? 0 : -1;
      if (of == "token_types") value = position >= length / 2;
    }
  };
}

int labels_that_count(const std::string& name) {
  if (name == "vit") return samples;
  int count = 0;
  for (int i = 0; i < samples * length; ++i)
    count += label_of(0, i / length, i % length, name == "bert") >= 0;
  return count;
}

using Gradients = std::map<std::string, std::vector<double>>;

double sum_of_squares(const std::vector<double>& x) {
  return std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
}

double squared_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

class Language : public ::testing::TestWithParam<GoldenNetwork> {};

// PyTorch's eps are doubles, ours are float32, and rotary positions are float32 with both: hence 1e-6.
TEST_P(Language, InDoublePrecisionGivesTheirLossAndGradients) {
  const std::string& name = GetParam().name;
  const GraphResults ours = run_graph(network(name), reference::backend(), start_of(name, 0));
  const double loss = std::accumulate(ours.losses.begin(), ours.losses.end(), 0.0) / labels_that_count(name);
  EXPECT_NEAR(loss / GetParam().loss, 1, 1e-6);
  EXPECT_EQ(ours.gradients.size(), GetParam().gradients.size());
  double all = 0;
  for (const auto& [of, gradient] : GetParam().gradients) all += gradient.norm * gradient.norm;
  for (const auto& [of, gradient] : GetParam().gradients) {
    ASSERT_TRUE(ours.gradients.contains(of)) << of;
    EXPECT_NEAR(std::sqrt(sum_of_squares(ours.gradients.at(of))), gradient.norm, 1e-6 * std::sqrt(all)) << of;
  }
}

// All gradients together: 1.5 times PyTorch's error. A single tensor of two dozen numbers has an error that
// is a matter of chance, so that its limit is three times PyTorch's.
TEST_P(Language, ErrorsAreAtMostOneAndAHalfTimesPyTorchs) {
  std::string why;
  const Backend* engine = judged_engine(why);
  if (!engine) GTEST_SKIP() << why;
  const std::string& name = GetParam().name;
  const Graph graph = network(name);
  std::map<std::string, double> sums;
  double together = 0;
  for (int batch = 0; batch < golden_batches; ++batch) {
    const Gradients right = run_graph(graph, reference::backend(), start_of(name, batch)).gradients;
    const Gradients ours = run_graph(graph, *engine, start_of(name, batch)).gradients;
    double all = 0;
    for (const auto& [of, gradient] : right) all += sum_of_squares(gradient);
    for (const auto& [of, gradient] : right) {
      const double error = squared_distance(ours.at(of), gradient) / all / golden_batches;
      sums[of] += error, together += error;
    }
  }
  EXPECT_LE(std::sqrt(together), 1.5 * GetParam().error);
  RecordProperty("ratio", std::to_string(std::sqrt(together) / GetParam().error));
  for (const auto& [of, gradient] : GetParam().gradients)
    EXPECT_LE(std::sqrt(sums.at(of)), 3 * gradient.error) << of;
}

INSTANTIATE_TEST_SUITE_P(All, Language, ::testing::ValuesIn(read_golden_language().networks),
                         ::testing::PrintToStringParamName());

// Documents of a row, one behind the other, or each in a row of its own: the loss of a row is a sum over its
// labels that count, which have the same gradients either way.
TEST(PackedDocuments, HaveTheSumOfTheGradientsOfSeparateOnes) {
  std::string why;
  const Backend* engine = judged_engine(why);
  if (!engine) GTEST_SKIP() << why;
  const std::vector<int> lengths = {4, 1, 6, 9};  // the last three tokens only pad
  constexpr int row = 23;
  for (const std::string name : {"gpt2", "llama"}) {
    // Runs the documents from `first` to before `end`, with the divisor of a row's mean taken away.
    const auto run = [&](const Backend& backend, size_t first, size_t end) {
      std::vector<int> document, place;
      for (size_t d = first; d < end; ++d)
        for (int i = 0; i < lengths[d]; ++i) document.push_back(int(d)), place.push_back(i);
      int labels = 0;
      const Start start = [&](const Tensor& plain, std::string_view of) {
        if (plain.dtype() == DType::f32) return draw_golden(plain, of);
        for (int i = 0; i < row; ++i) {
          const bool used = i < int(document.size());
          const int d = used ? document[size_t(i)] : -1, at = used ? place[size_t(i)] : 0;
          const bool counts = used && at + 1 < lengths[size_t(d)];
          int32_t& value = plain.data<int32_t>()[i];
          if (of == "tokens") value = used ? whole("tokens", 100 * d + at) : 0;
          if (of == "labels") value = counts ? whole("tokens", 100 * d + at + 1) : -1;
          if (of == "documents") value = d;
          if (of == "positions") value = at;
          labels += of == "labels" && counts;
        }
      };
      Gradients gradients = run_graph(network(name, row, 1, true), backend, start).gradients;
      for (auto& [of, gradient] : gradients)
        for (double& value : gradient) value *= labels;
      return gradients;
    };
    const auto differ = [&](const Backend& backend) {
      const Gradients packed = run(backend, 0, lengths.size());
      Gradients sum;
      for (size_t d = 0; d < lengths.size(); ++d) {
        if (lengths[d] < 2) continue;  // it has no label
        for (const auto& [of, gradient] : run(backend, d, d + 1)) {
          sum[of].resize(gradient.size());
          for (size_t i = 0; i < gradient.size(); ++i) sum[of][i] += gradient[i];
        }
      }
      double apart = 0, all = 0;
      for (const auto& [of, gradient] : packed)
        apart += squared_distance(gradient, sum.at(of)), all += sum_of_squares(gradient);
      return std::sqrt(apart / all);
    };
    // The divisor of the loss is a float32 factor, 1 / labels, which differs between the runs.
    EXPECT_LT(differ(reference::backend()), 6e-8) << name << ", in double precision";
    EXPECT_LT(differ(*engine), 1e-6) << name << ", within the rounding of float32";
  }
}

// Later tokens change nothing at a position, so that the rest of the window may be anything.
TEST(Continuation, IsTheirs) {
  std::string why;
  const Backend* engine = judged_engine(why);
  if (!engine) GTEST_SKIP() << why;
  const std::vector<int> theirs = read_golden_language().continuation;
  const int window = int(theirs.size());
  const Graph graph = network("gpt2", window, 1);
  std::vector<int> ours(theirs.begin(), theirs.begin() + 5);
  while (int(ours.size()) < window) {
    const Start start = [&](const Tensor& plain, std::string_view of) {
      if (plain.dtype() == DType::f32) return draw_golden(plain, of);
      for (int i = 0; i < window; ++i) plain.data<int32_t>()[i] = i < int(ours.size()) ? ours[size_t(i)] : 0;
    };
    const std::vector<double> logits = run_graph(graph, *engine, start).logits;
    const auto last = logits.begin() + int64_t(ours.size() - 1) * words;
    ours.push_back(int(std::max_element(last, last + words) - last));
  }
  EXPECT_EQ(ours, theirs);
}

}  // namespace
}  // namespace antichain
