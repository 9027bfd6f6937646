// A network that keeps keys and values goes on with a text as one that reads a whole row for each token.
#include "app/obtain/next_logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "app/run.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

constexpr int row_length = 24;

struct Continued {
  std::vector<int32_t> text;
  std::vector<std::vector<float>> logits;  // behind each beginning of the text
  int kept = 0;                            // how often only new tokens were read
};

Continued go_on(const WeightsOptions& weights, Reading reading, int ranks, size_t prompt, size_t tokens) {
  Continued all;
  std::mutex mutex;
  run_job({.command = "generate", .local = ranks}, [&](Rank& rank) {
    NextLogits next(weights, rank, reading);
    std::vector<int32_t> text;
    for (size_t i = 0; i < prompt; ++i) text.push_back(int32_t(i * i * 7 + i) % 256);
    const int last = rank.job.size() - 1;
    std::vector<std::vector<float>> logits;
    int kept = 0;
    while (text.size() < prompt + tokens) {
      logits.push_back(next.of(text));
      kept += next.keeps();
      const auto token = std::ranges::max_element(logits.back()) - logits.back().begin();
      text.push_back(
          std::stoi(rank.job.broadcast(rank.job.rank() == last ? std::to_string(token) : "", last)));
    }
    const std::scoped_lock lock(mutex);
    if (rank.job.rank() == last) all = {text, logits, kept};
  });
  return all;
}

class NextLogitsOf : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    weights_.network.model = GetParam();
    weights_.network.sequence = row_length, weights_.network.vocabulary = 256;
    weights_.model_given = true;
    weights_.file = folder_.str() + "/weights.h5";
    std::vector<std::string> words = {"antichain", "export", "--model",     GetParam(),     "--sequence",
                                      "24",        "--out",  weights_.file, "--vocabulary", "256"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    ASSERT_EQ(run(int(argv.size()), argv.data(), {}), 0);
  }
  const TemporaryFolder folder_;
  WeightsOptions weights_;
};

// The tiles of sums differ, so the logits are equal to within the rounding of float32.
TEST_P(NextLogitsOf, AreThoseOfWholeRowsBeforeAndBehindTheEndOfARow) {
  const Continued whole = go_on(weights_, Reading::whole_rows, 1, 7, 25);
  const Continued kept = go_on(weights_, Reading::new_tokens, 1, 7, 25);
  EXPECT_EQ(whole.kept, 0);
  EXPECT_EQ(kept.kept, row_length - 7 + 1) << "until the row is full";
  EXPECT_EQ(kept.text, whole.text);
  float largest = 0, difference = 0;
  for (size_t i = 0; i < whole.logits.size(); ++i)
    for (size_t k = 0; k < whole.logits[i].size(); ++k) {
      largest = std::max(largest, std::abs(whole.logits[i][k]));
      difference = std::max(difference, std::abs(whole.logits[i][k] - kept.logits[i][k]));
    }
  EXPECT_LT(difference, 1e-5f * largest);
  EXPECT_EQ(go_on(weights_, Reading::new_tokens, 3, 7, 25).logits, kept.logits) << "stages of one network";
  EXPECT_EQ(go_on(weights_, Reading::new_tokens, 1, 1, 4).kept, 4) << "a prompt of one token";
}

INSTANTIATE_TEST_SUITE_P(All, NextLogitsOf, ::testing::Values("gpt_nano", "llama"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace antichain
