// Tests sets of text: what is packed, and which rows training and evaluation read of it.
#include "data/token_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "data/loader.h"
#include "data/pack_text.h"
#include "framework/files/hdf5_arrays.h"
#include "tests/data/temporary_folder.h"
#include "tests/expect_error.h"

namespace antichain {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Numbers = std::vector<int32_t>;

void write_text(const std::string& file, const std::string& text) {
  write_bytes(file, {text.begin(), text.end()});
}

// A set of ten documents, "0", "11", "222" … of digits, one behind the other: 55 tokens, of which the last 15
// are for tests.
struct TenDocuments {
  TemporaryFolder folder;
  std::string file = folder.str() + "/set.h5";

  TenDocuments() {
    std::vector<std::string> texts;
    for (int d = 0; d < 10; ++d) {
      texts.push_back(folder.str() + "/" + std::to_string(d));
      write_text(texts.back(), std::string(size_t(d) + 1, char('0' + d)));
    }
    const PackedText packed = pack_text(texts, file, {.validation = 15.0 / 55});
    EXPECT_EQ(packed.train_tokens, 40);
    EXPECT_EQ(packed.test_tokens, 15);
    EXPECT_EQ(packed.documents, 10);
  }
};

Numbers row(const DataSet& set, const std::string& array, int64_t index) {
  Numbers numbers(size_t(set.arrays()[0].spec.shape[0]));
  set.read(find_array(set, array), index, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

std::string text_of(const Numbers& tokens) { return {tokens.begin(), tokens.end()}; }

TEST(TokenSet, AStreamIsCutIntoRowsWhateverTheDocuments) {
  const TenDocuments ten;
  const TokenSplits set = read_token_set(ten.file, 8, Rows::stream);
  EXPECT_TRUE(is_token_set(ten.file));
  EXPECT_EQ(set.train->classes(), 256);
  EXPECT_EQ(set.train->tokenizer(), "bytes");
  EXPECT_EQ(set.train->tokens(), 40);
  EXPECT_EQ(set.train->documents(), 9) << "the ninth goes on in the other split";
  EXPECT_EQ(set.train->size(), 4) << "a row less, so that the first may begin at any of eight tokens";
  EXPECT_EQ(text_of(row(*set.train, "tokens", 1)), "33444445");
  EXPECT_EQ(text_of(row(*set.train, "labels", 1)), "34444455");
  EXPECT_EQ(text_of(row(*set.train, "tokens", 4 + 1)), "34444455") << "one token later";
  EXPECT_THAT(row(*set.train, "documents", 1), Each(0)) << "a row is one document";
  EXPECT_THAT(row(*set.train, "positions", 1), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(TokenSet, EvaluationHasEveryLabelOnce) {
  const TenDocuments ten;
  for (const Rows rows : {Rows::stream, Rows::packed, Rows::padded}) {
    const TokenSplits set = read_token_set(ten.file, 4, rows);
    std::string labels;
    for (int64_t i = 0; i < set.test->size(); ++i)
      for (const int32_t label : row(*set.test, "labels", i))
        if (label >= 0) labels += char(label);
    // "88888" goes on from the other split.
    EXPECT_EQ(labels, rows == Rows::stream ? "88889999999999" : "8888999999999") << int(rows);
  }
  const TokenSplits set = read_token_set(ten.file, 4, Rows::stream);
  EXPECT_EQ(set.test->size(), 4);
  EXPECT_THAT(row(*set.test, "tokens", 3), ElementsAre('9', '9', '9', 0)) << "the last one is filled up";
  EXPECT_THAT(row(*set.test, "labels", 3), ElementsAre('9', '9', -1, -1));
  EXPECT_THAT(row(*set.test, "documents", 3), ElementsAre(0, 0, 0, -1));
}

TEST(TokenSet, PackedDocumentsAreKeptApart) {
  const TenDocuments ten;
  const auto set = read_token_set(ten.file, 8, Rows::packed).train;
  EXPECT_EQ(text_of(row(*set, "tokens", 0)), "01122233");
  EXPECT_THAT(row(*set, "labels", 0), ElementsAre(-1, '1', -1, '2', '2', -1, '3', '3'));
  EXPECT_THAT(row(*set, "documents", 0), ElementsAre(0, 1, 1, 2, 2, 2, 3, 3));
  EXPECT_THAT(row(*set, "positions", 0), ElementsAre(0, 0, 1, 0, 1, 2, 0, 1));
  EXPECT_THAT(row(*set, "labels", 1), ElementsAre('3', -1, '4', '4', '4', '4', -1, '5'));
  EXPECT_THAT(row(*set, "positions", 1), ElementsAre(0, 1, 0, 1, 2, 3, 4, 0))
      << "documents number from the row on";
}

TEST(TokenSet, APaddedRowHasOneDocumentOrAPartOfIt) {
  const TenDocuments ten;
  const auto set = read_token_set(ten.file, 4, Rows::padded).train;
  std::vector<std::string> rows;
  for (int64_t i = 0; i < set->size(); ++i) {
    std::string text;
    for (const int32_t token : row(*set, "tokens", i))
      if (token != 0) text += char(token);
    rows.push_back(text);
  }
  EXPECT_THAT(rows,
              ElementsAre("11", "222", "3333", "4444", "5555", "55", "6666", "666", "7777", "7777", "8888"))
      << "of a document of one token nothing is learnt, and the last token is only a label";
  EXPECT_THAT(row(*set, "labels", 0), ElementsAre('1', -1, -1, -1));
  EXPECT_THAT(row(*set, "documents", 0), ElementsAre(0, 0, -1, -1));
  EXPECT_THAT(row(*set, "positions", 5), ElementsAre(0, 1, 0, 0));
  EXPECT_THAT(row(*set, "labels", 3), ElementsAre('4', '4', '4', '4'))
      << "the next row has the label's token";
}

// Loaders of other micro-batches, of a later beginning or of labels alone fill the same rows.
TEST(TokenSet, BatchesFollowFromSeedAndPosition) {
  const TenDocuments ten;
  const auto set = read_token_set(ten.file, 4, Rows::stream).train;
  const auto batch = [&](const std::string& input, int64_t epoch, int microbatches, uint64_t seed) {
    Loader loader(set, {.batch = 4, .microbatches = microbatches, .seed = seed});
    std::string text;
    for (int m = 0; m < microbatches; ++m) {
      const Tensor out = Tensor::host({{4 / microbatches, 4}, DType::i32});
      loader.fill(input, {epoch, 1}, m, out);
      text.append(out.data<int32_t>(), out.data<int32_t>() + out.elements());
    }
    return text;
  };
  std::set<std::string> different;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    EXPECT_EQ(batch("tokens", epoch, 1, 7), batch("tokens", epoch, 4, 7));
    const std::string tokens = batch("tokens", epoch, 1, 7), labels = batch("labels", epoch, 2, 7);
    for (size_t r = 0; r < 16; r += 4) EXPECT_EQ(tokens.substr(r + 1, 3), labels.substr(r, 3));
    different.insert(tokens);
  }
  EXPECT_GT(different.size(), 6u) << "epochs begin at other tokens, in another order";
  EXPECT_NE(batch("tokens", 0, 1, 7), batch("tokens", 0, 1, 8));
  // An epoch has no token twice.
  std::map<int64_t, int> seen;
  for (int64_t i = 0; i < set->size(); ++i) ++seen[set->drawn(i, 7, 3) % set->size()];
  EXPECT_EQ(int64_t(seen.size()), set->size());
}

TEST(TokenSet, ASeparatorEndsADocument) {
  TemporaryFolder folder;
  const std::string file = folder.str() + "/set.h5", text = folder.str() + "/text";
  // A block of the file ends within a separator.
  const std::string first(size_t(4 << 20) - 1, 'a');
  write_text(text, first + "\n\nb\n\n\n\ncc\n\n");
  const PackedText packed = pack_text({text, text}, file, {.separator = "\n\n"});
  EXPECT_EQ(packed.documents, 8) << "an empty one is its separator; nothing follows the last";
  ArrayReader reader(file);
  const ArrayReader::Opened opened = reader.open("train/documents", ArrayType::i64);
  std::vector<int64_t> starts(size_t(opened.spec.shape[0]));
  reader.read(opened, 0, std::as_writable_bytes(std::span(starts)));
  const int64_t n = 4 << 20, whole = n + 1 + 3 + 2 + 4;
  ASSERT_GE(starts.size(), 5u);
  starts.resize(5);
  EXPECT_THAT(starts, ElementsAre(0, n + 1, n + 4, n + 6, whole));
}

TEST(TokenSet, WiderTokensComeFromElsewhere) {
  TemporaryFolder folder;
  const std::string file = folder.str() + "/set.h5";
  const auto write = [&](std::vector<int64_t> tokens, std::vector<int64_t> starts, double vocabulary) {
    ArrayWriter writer(file,
                       {{.path = "train/tokens", .shape = {std::ssize(tokens)}, .type = ArrayType::i64},
                        {.path = "train/documents", .shape = {std::ssize(starts)}, .type = ArrayType::i64},
                        {.path = "test/tokens", .shape = {std::ssize(tokens)}, .type = ArrayType::i64},
                        {.path = "test/documents", .shape = {std::ssize(starts)}, .type = ArrayType::i64}});
    for (const size_t split : {0, 2}) {
      writer.append(split, std::as_bytes(std::span(tokens)));
      writer.append(split + 1, std::as_bytes(std::span(starts)));
    }
    writer.set({"tokenizer", "gpt2"});
    writer.set({"vocabulary", std::vector<double>{vocabulary}});
    writer.finish();
  };
  write({15496, 995, 50256, 7}, {0, 3}, 50257);
  const auto set = read_token_set(file, 2, Rows::stream).train;
  EXPECT_EQ(set->name(), "set");
  EXPECT_EQ(set->tokenizer(), "gpt2");
  EXPECT_THAT(row(*set, "tokens", 0), ElementsAre(15496, 995));
  EXPECT_THAT(row(*set, "labels", 1), ElementsAre(50256, 7)) << "shifted by one";
  expect_error([&] { read_token_set(file, 3, Rows::stream); },
               {"4 tokens", "less than two rows of 3", "--sequence"});
  write({1, 2, 3, 300}, {0}, 256);
  const auto wrong = read_token_set(file, 2, Rows::padded).train;
  expect_error([&] { row(*wrong, "tokens", 1); }, {"token 3 of 'train/tokens' is 300", "vocabulary has 256"});
  for (const std::vector<int64_t>& starts : std::vector<std::vector<int64_t>>{{1}, {0, 2, 2}, {0, 4}}) {
    write({1, 2, 3, 4}, starts, 256);
    expect_error([&] { read_token_set(file, 1, Rows::stream); }, {"'train/documents' does not ascend"});
  }
  write({1, 2, 3, 4}, {0}, 2.5);
  expect_error([&] { read_token_set(file, 1, Rows::stream); }, {"lacks the attribute vocabulary"});
}

TEST(TokenSet, TextThatCantBePackedIsRefused) {
  TemporaryFolder folder;
  const std::string file = folder.str() + "/set.h5", text = folder.str() + "/text";
  expect_error([&] { pack_text({text}, file); }, {"can't read " + text});
  write_text(text, "");
  expect_error([&] { pack_text({text}, file); }, {text + " is empty"});
  write_text(text, "abcdefgh");
  expect_error([&] { pack_text({text}, file); }, {"8 bytes", "7 for training and 1 for validation"});
}

}  // namespace
}  // namespace antichain
