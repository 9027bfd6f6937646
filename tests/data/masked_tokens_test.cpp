// Tests which tokens of a text are hidden, and what the network is to find.
#include "data/masked_tokens.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "data/array_input.h"
#include "data/pack_text.h"
#include "tests/data/temporary_folder.h"

namespace antichain {
namespace {

constexpr int64_t row_tokens = 64;

std::vector<int32_t> masked_row(const DataSet& set, const std::string& array, int64_t index) {
  std::vector<int32_t> numbers(static_cast<size_t>(row_tokens));
  set.read(find_array(set, array), index, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

// 20,000 letters, one document.
struct Letters {
  TemporaryFolder folder;
  std::string file = folder.str() + "/set.h5";
  explicit Letters(const std::string& separator = "") {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += i % 100 == 99 ? '\n' : char('a' + i % 7);
    write_bytes(folder.str() + "/text", {text.begin(), text.end()});
    pack_text({folder.str() + "/text"}, file, {.separator = separator});
  }
  TokenSplits rows(Rows how = Rows::stream) const { return read_token_set(file, row_tokens, how); }
};

// Of 17,984 tokens shares are within five deviations.
TEST(MaskedTokens, AreASeventhAndMostOfThemHidden) {
  const Letters letters;
  const auto plain = letters.rows().train, set = masked(plain);
  EXPECT_EQ(set->classes(), 257) << "bytes have no mask of their own";
  EXPECT_EQ(set->mask(), 256);
  std::map<std::string, double> count;
  for (int64_t r = 0; r < set->size(); ++r) {
    const auto right = masked_row(*plain, "tokens", r), seen = masked_row(*set, "tokens", r),
               labels = masked_row(*set, "labels", r);
    for (size_t i = 0; i < right.size(); ++i) {
      if (labels[i] < 0) {
        EXPECT_EQ(seen[i], right[i]);
        continue;
      }
      EXPECT_EQ(labels[i], right[i]);
      ++count["chosen"], ++count[seen[i] == 256 ? "hidden" : seen[i] == right[i] ? "kept" : "replaced"];
    }
    EXPECT_EQ(masked_row(*set, "token_types", r), std::vector<int32_t>(size_t(row_tokens)));
    EXPECT_EQ(masked_row(*set, "positions", r), masked_row(*plain, "positions", r));
  }
  const double all = double(set->size() * row_tokens);
  EXPECT_NEAR(count["chosen"] / all, 0.15, 0.014);
  EXPECT_NEAR(count["hidden"] / count["chosen"], 0.8, 0.04);
  EXPECT_NEAR(count["replaced"] / count["chosen"], 0.1, 0.03);
}

TEST(MaskedTokens, FollowFromSeedEpochAndPlace) {
  const Letters letters;
  const auto set = masked(letters.rows().train), again = masked(letters.rows().train);
  const auto drawn = [](const DataSet& of, uint64_t seed, int64_t epoch) {
    return masked_row(of, "labels", of.drawn(3, seed, epoch));
  };
  EXPECT_EQ(drawn(*set, 1, 5), drawn(*again, 1, 5));
  EXPECT_NE(drawn(*set, 1, 5), drawn(*set, 2, 5));
  EXPECT_NE(drawn(*set, 1, 5), drawn(*set, 1, 6));
  const auto padded = masked(letters.rows(Rows::padded).train);
  EXPECT_NE(drawn(*padded, 1, 5), drawn(*padded, 1, 6)) << "the same rows are masked anew in each epoch";
}

TEST(MaskedTokens, ArePaddingNowhere) {
  const Letters letters("\n");
  const auto set = masked(letters.rows(Rows::padded).train);
  for (int64_t r = 0; r < set->size(); ++r) {
    const auto documents = masked_row(*set, "documents", r), labels = masked_row(*set, "labels", r),
               tokens = masked_row(*set, "tokens", r);
    for (size_t i = 0; i < documents.size(); ++i)
      if (documents[i] < 0) {
        EXPECT_EQ(labels[i], -1);
        EXPECT_EQ(tokens[i], 0);
      }
  }
}

}  // namespace
}  // namespace antichain
