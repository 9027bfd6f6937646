// Text becomes a set of tokens, and a network of tokens is trained on it, evaluated, and goes on with a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/files/weights.h"
#include "framework/json.h"
#include "tests/app/program.h"

namespace antichain {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A row is eight tokens. Each one's logits depend on it and on the one before.
constexpr const char* of_two_tokens = R"({"format": "antichain graph", "version": 1, "model": "two_tokens",
  "inputs": [{"name": "tokens", "shape": [8], "dtype": "float32"},
             {"name": "labels", "shape": [8], "dtype": "int32"}],
  "nodes": [
    {"name": "wave", "op": "elementwise", "inputs": ["tokens"], "options": {"steps": ["sin x0"]}},
    {"name": "line", "op": "reshape", "inputs": ["wave"], "options": {"shape": [1, 1, 8]}},
    {"name": "pair", "op": "conv2d", "inputs": ["line"],
     "options": {"out": 16, "kernel": [1, 2], "pad": {"before": [0, 1], "after": [0, 0]}}},
    {"name": "act", "op": "relu", "inputs": ["pair"]},
    {"name": "head", "op": "conv2d", "inputs": ["act"], "options": {"out": 256, "kernel": 1}},
    {"name": "logits", "op": "reshape", "inputs": ["head"], "options": {"shape": [256, 8]}},
    {"name": "loss", "op": "softmax_cross_entropy", "inputs": ["logits", "labels"],
     "options": {"ignore_index": -100}}]})";

// Attention in both directions: tokens are masked, and found again.
constexpr const char* of_both_directions = R"({"format": "antichain graph", "version": 1, "model": "both",
  "inputs": [{"name": "tokens", "shape": [16], "dtype": "int32"},
             {"name": "labels", "shape": [16], "dtype": "int32"},
             {"name": "token_types", "shape": [16], "dtype": "int32"}],
  "nodes": [
    {"name": "words", "op": "embedding", "inputs": ["tokens"], "options": {"rows": 257, "width": 24}},
    {"name": "types", "op": "embedding", "inputs": ["token_types"], "options": {"rows": 2, "width": 24}},
    {"name": "sum", "op": "add", "inputs": ["words", "types"]},
    {"name": "qkv", "op": "linear", "inputs": ["sum"], "options": {"out": 72}},
    {"name": "attention", "op": "attention", "inputs": ["qkv"], "options": {"heads": 2}},
    {"name": "logits", "op": "linear", "inputs": ["attention"], "options": {"out": 257}},
    {"name": "loss", "op": "softmax_cross_entropy", "inputs": ["logits", "labels"],
     "options": {"ignore_index": -100, "classes_last": true}}]})";

class TextCommands : public ProgramTest {
 protected:
  void SetUp() override {
    write_file(path("net.json"), of_two_tokens);
    std::string text;
    for (int i = 0; i < 150; ++i) text += i % 3 == 0 ? "abc abc\n\n" : "abcd ";
    write_file(path("book.txt"), text);
    const std::string packed = ran("data tokens --text book.txt --document-separator '\\n\\n' --out set.h5");
    EXPECT_THAT(packed, HasSubstr("set.h5: 855 tokens for training and 95 for tests, 51 documents"));
  }
  const std::string train_ =
      "train --graph net.json --dataset hdf5:set.h5 --batch 8 --microbatches 2 "
      "--lr 0.1 --seed 3 --evaluate-every 20 ";
  std::string state(const std::string& name) const { return json(name).at("state"); }
};

TEST_F(TextCommands, ASetSaysWhatIsInIt) {
  EXPECT_THAT(ran("data show set.h5"), AllOf(HasSubstr("set, text in a vocabulary of 256 tokens (bytes)"),
                                             HasSubstr("855"), HasSubstr("95")));
  expect_refused("data tokens --text book.txt --out book.txt", 2, "would replace book.txt");
  expect_refused("data tokens --text net.json book.txt --out book.txt", 2, "book.txt");
  expect_refused("data tokens --text none --out x.h5", 3, "can't read none");
}

TEST_F(TextCommands, TrainingTellsPerplexityAndTokensAndIsResumedInTheMiddleOfAnEpoch) {
  const std::string said = ran(train_ + "--steps 60 --json one.json --metrics one.jsonl --results kept");
  EXPECT_THAT(said, AllOf(HasSubstr("105 rows of 8 tokens for training and 12 for tests"),
                          HasSubstr("test loss"), HasSubstr("perplexity"), HasSubstr("tokens/s")));
  const Json one = json("one.json");
  const double loss = one.at("final_test_loss");
  EXPECT_LT(loss, std::log(256.0) - 1) << "it learns";
  EXPECT_DOUBLE_EQ(one.at("final_test_perplexity"), std::exp(loss));
  EXPECT_DOUBLE_EQ(one.at("median_tokens_per_s"), 8 * one.at("median_sequences_per_s").get<double>());
  const std::string metrics = read_file(path("one.jsonl"));
  EXPECT_THAT(metrics, AllOf(HasSubstr("\"tokens_per_s\""), HasSubstr("\"sequences_per_s\""),
                             HasSubstr("\"test_perplexity\"")));

  ran(train_ + "--steps 20 --checkpoint ck --local 2");
  ran(train_ + "--steps 60 --resume auto --checkpoint ck --json two.json --local 3");
  EXPECT_EQ(state("two.json"), state("one.json")) << "an epoch has 13 steps";

  const std::string evaluated = ran(
      "evaluate --graph net.json --weights kept/weights.h5 --dataset hdf5:set.h5 --batch 5 --json e.json");
  EXPECT_THAT(evaluated,
              AllOf(HasSubstr("two_tokens on 12 test rows of 8 tokens of set"), HasSubstr("perplexity")));
  EXPECT_NEAR(json("e.json").at("loss"), loss, 1e-5) << "all labels count once, however batches are cut";
}

TEST_F(TextCommands, DocumentsInRowsOfTheirOwnAreAnotherTraining) {
  ran(train_ + "--steps 2 --json stream.json");
  ran(train_ + "--steps 2 --json padded.json --pad");
  EXPECT_NE(state("padded.json"), state("stream.json"));
  ran(train_ + "--steps 2 --json two.json --pad --local 2");
  EXPECT_EQ(state("padded.json"), state("two.json"));
  expect_refused(train_ + "--steps 2 --pack", 2, "two_tokens has no input 'documents'");
  expect_refused(train_ + "--steps 2 --flip", 2, "images with one label are augmented");
  expect_refused("train --model resnet20 --dataset hdf5:set.h5", 2, "is text, but resnet20 reads no tokens");
  expect_refused("train --model resnet20 --dataset synthetic --pad", 2, "--pad says how text is cut");
}

TEST_F(TextCommands, AGptKeepsPackedDocumentsApart) {
  const std::string how =
      "train --model gpt_nano --sequence 16 --dataset hdf5:set.h5 --batch 4 --microbatches 2 --steps 4 "
      "--lr 0.001 ";
  ran(how + "--pack --json one.json --checkpoint ck");
  ran(how + "--pack --json three.json --local 3");
  ran(how + "--json stream.json");
  EXPECT_EQ(state("three.json"), state("one.json"));
  EXPECT_NE(state("stream.json"), state("one.json"));
  EXPECT_THAT(ran("evaluate --weights ck --dataset hdf5:set.h5 --pack --batch 4"),
              AllOf(HasSubstr("gpt_nano on 6 test rows of 16 tokens"), HasSubstr("perplexity")));
  const std::string go_on = "generate --weights ck --prompt abc --tokens 20 ";
  EXPECT_EQ(ran(go_on), ran(go_on + "--local 4"));
  expect_refused(how + "--vocabulary 100", 2, "has a vocabulary of 100 tokens, but set.h5 one of 256");
  expect_refused("train --model gpt_nano --dataset synthetic", 2, "'gpt_nano' reads tokens");
}

// A document of one token has no label.
TEST_F(TextCommands, ABatchWithoutLabelsHasALossOfZero) {
  write_file(path("letters.txt"), std::string(80, 'x'));
  ran("data tokens --text letters.txt --document-separator x --out letters.h5");
  const std::string how =
      "train --model gpt_nano --sequence 2 --dataset hdf5:letters.h5 --batch 4 --microbatches 2 --steps 2 ";
  ran(how + "--pack --metrics steps.jsonl");
  EXPECT_THAT(read_file(path("steps.jsonl")), AllOf(HasSubstr("\"loss\":0.0"), Not(HasSubstr("null"))));
  expect_refused(how + "--pad", 3, "/train has no document of two tokens");
}

TEST_F(TextCommands, TheOrderOfAnEpochsRowsIsInTheMemory) {
  write_file(path("long.txt"), std::string(890'000, 'a'));  // 100,000 rows for training
  ran("data tokens --text long.txt --out long.h5");
  const auto predicted = [&](const std::string& set) -> double {
    ran("train --graph net.json --batch 8 --steps 1 --dataset hdf5:" + set + " --json memory.json");
    return json("memory.json").at("process_memory").at(0).at("estimated_bytes");
  };
  EXPECT_NEAR(predicted("long.h5") - predicted("set.h5"), 800'000, 10'000);
}

TEST_F(TextCommands, ANetworkThatSeesLaterTokensFindsMaskedOnes) {
  write_file(path("both.json"), of_both_directions);
  const std::string how =
      "train --graph both.json --dataset hdf5:set.h5 --batch 4 --microbatches 2 --lr 0.03 --seed 3 "
      "--evaluate-every 20 ";
  EXPECT_THAT(ran(how + "--steps 40 --json one.json --results kept"),
              AllOf(HasSubstr("of the tokens 15 % are masked"), HasSubstr("perplexity")));
  EXPECT_LT(json("one.json").at("final_test_loss"), std::log(256.0) - 1) << "it learns";
  ran(how + "--steps 11 --checkpoint ck --local 2");
  ran(how + "--steps 40 --resume auto --checkpoint ck --json two.json --local 3");
  EXPECT_EQ(state("two.json"), state("one.json"));
  ran("evaluate --graph both.json --weights kept/weights.h5 --dataset hdf5:set.h5 --batch 4 --json e.json");
  EXPECT_NEAR(json("e.json").at("loss"), json("one.json").at("final_test_loss"), 1e-5);
  ran("data batches --dataset hdf5:set.h5 --batch 4 --sequence 16 --masked --seed 3 --out m.h5");
  const Weights batch = read_weights(path("m.h5"));
  const auto& tokens = std::get<1>(batch.find("tokens")->values);
  EXPECT_TRUE(std::ranges::count(tokens, 256) > 0);
  expect_refused("generate --graph both.json --weights kept/weights.h5 --prompt a", 2, "token_types");
}

TEST_F(TextCommands, BatchesAreTheRowsOfTrainingSteps) {
  const std::string batches = "data batches --dataset hdf5:set.h5 --batch 8 --seed 3 ";
  ran(batches + "--sequence 8 --steps 15 --out a.safetensors");
  ran(batches + "--sequence 8 --steps 1 --first-step 14 --pad --out b.h5");
  const Weights a = read_weights(path("a.safetensors")), b = read_weights(path("b.h5"));
  const NamedTensor &tokens = *a.find("tokens"), &labels = *a.find("labels");
  EXPECT_EQ(tokens.shape, (std::vector<int64_t>{120, 8}));
  const auto &now = std::get<1>(tokens.values), &next = std::get<1>(labels.values);
  for (size_t i = 0; i + 1 < now.size(); ++i) EXPECT_TRUE(i % 8 == 7 || now[i + 1] == next[i]) << i;
  for (const char* name : {"tokens", "labels", "documents", "positions"})
    EXPECT_EQ(b.find(name)->shape, (std::vector<int64_t>{8, 8})) << name;
  EXPECT_EQ(a.find("documents"), nullptr);
  expect_refused(batches + "--out c.h5", 2, "give --sequence");
  expect_refused("data batches --dataset synthetic --sequence 8 --out c.h5", 2, "is no text");
}

TEST_F(TextCommands, ANetworkGoesOnWithAText) {
  ran(train_ + "--steps 60 --results kept");
  const std::string go_on = "generate --graph net.json --weights kept/weights.h5 ";
  const std::string greedy = ran(go_on + "--prompt abc --tokens 20 --json a.json");
  EXPECT_EQ(greedy.substr(0, 3), "abc");
  EXPECT_EQ(json("a.json").at("prompt"), Json({97, 98, 99}));
  EXPECT_EQ(json("a.json").at("tokens").size(), 20u);
  EXPECT_EQ(ran(go_on + "--prompt-tokens 97,98,99 --tokens 20"), greedy);
  EXPECT_EQ(ran(go_on + "--prompt abc --tokens 20 --local 3"), greedy) << "stages of one network";
  // Of a text that is longer than a row, the last tokens count.
  std::string longer;
  for (const char byte : greedy.substr(0, 15))
    longer += (longer.empty() ? "" : ",") + std::to_string(int(byte));
  EXPECT_EQ(ran(go_on + "--tokens 8 --prompt-tokens " + longer), greedy);
  const std::string drawn = go_on + "--prompt abc --tokens 60 --temperature 1.5 ";
  const std::string once = ran(drawn + "--seed 1");
  EXPECT_EQ(ran(drawn + "--seed 1 --local 2"), once);
  EXPECT_NE(ran(drawn + "--seed 2"), once);
  EXPECT_EQ(ran(drawn + "--top-k 1").substr(0, 23), greedy.substr(0, 23));

  expect_refused(go_on, 2, "a text to go on with is missing");
  expect_refused(go_on + "--prompt-tokens 1,256", 2, "tokens 0 to 255");
  expect_refused(go_on + "--prompt a --top-k 3", 2, "none is drawn");
  expect_refused(go_on + "--prompt a --local 40", 2, "more than the network has nodes");
  ran("export --model resnet20 --out r.h5");
  expect_refused("generate --model resnet20 --weights r.h5 --prompt a", 2, "resnet20 reads no tokens");
}

}  // namespace
}  // namespace antichain
