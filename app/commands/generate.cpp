// antichain generate goes on with a text: the network reads the tokens so far and says which one comes next,
// again and again (app/obtain/next_logits.h). Several ranks have a stage each, so a network may be generated
// from that does not fit one.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/job/preflight.h"
#include "app/obtain/choose_token.h"
#include "app/obtain/next_logits.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/parse_number.h"

namespace antichain {
namespace {

constexpr int64_t bytes_vocabulary = 256;

struct GenerateOptions {
  WeightsOptions weights;
  MachineOptions machine;
  std::string prompt, json_file;
  std::vector<std::string> prompt_tokens;
  int64_t tokens = 100;
  SamplingOptions sampling;
  std::string settings;  // all settings, compared between ranks
};

std::vector<int32_t> prompt_of(const GenerateOptions& o, int64_t vocabulary) {
  std::vector<int32_t> tokens;
  if (o.prompt_tokens.empty()) {
    if (vocabulary != bytes_vocabulary)
      throw Error(fmt::format("--prompt is a text of bytes, but the network has a vocabulary of {} tokens",
                              grouped(vocabulary)),
                  "give --prompt-tokens, or start python3 -m antichain.generate with the tokenizer",
                  ExitCode::usage);
    for (const char byte : o.prompt) tokens.push_back(uint8_t(byte));
  }
  for (const std::string& word : o.prompt_tokens) {
    const auto token = parse_number<int32_t>(word);
    if (!token || *token < 0 || *token >= vocabulary)
      throw Error(
          fmt::format("--prompt-tokens has '{}', but the network knows tokens 0 to {}", word, vocabulary - 1),
          "write numbers with commas between", ExitCode::usage);
    tokens.push_back(*token);
  }
  return tokens;
}

// Tells what was generated, as it comes: bytes as text, and other tokens as numbers.
class Teller {
 public:
  Teller(bool tells, bool bytes) : tells_(tells), bytes_(bytes) {}
  void tell(std::span<const int32_t> tokens) {
    for (const int32_t token : tokens) {
      if (!tells_) return;
      if (bytes_)
        std::fputc(is_control(token) ? '?' : token, stdout);
      else
        fmt::print("{}{}", first_ ? "" : ",", token);
      first_ = false;
    }
    std::fflush(stdout);
  }
  void end() const {
    if (tells_) fmt::print("\n");
  }

 private:
  // A terminal would obey it.
  static bool is_control(int32_t byte) { return (byte < 32 && byte != '\n' && byte != '\t') || byte == 127; }
  bool tells_, bytes_, first_ = true;
};

void run(const GenerateOptions& o, Rank& rank) {
  check_same_settings(rank, o.settings);
  NextLogits next(o.weights, rank);
  std::vector<int32_t> text = prompt_of(o, next.vocabulary());
  const int64_t prompt = std::ssize(text);
  Teller teller(rank.prints(), next.vocabulary() == bytes_vocabulary);
  const int last = rank.job.size() - 1;
  while (std::ssize(text) < prompt + o.tokens) {
    const std::vector<float> logits = next.of(text);
    if (std::ssize(text) == prompt) {
      if (rank.prints()) begin_answer();
      teller.tell(text);
    }
    std::string token;
    if (rank.job.rank() == last) token = std::to_string(choose_token(logits, o.sampling, std::ssize(text)));
    rank.job.activity().doing("telling the other ranks the next token");
    text.push_back(*parse_number<int32_t>(rank.job.broadcast(token, last)));
    teller.tell(std::span(text).last(1));
  }
  teller.end();
  if (!rank.prints()) return;
  const nlohmann::ordered_json json = {{"model", next.graph().model()},
                                       {"prompt", std::vector<int32_t>(text.begin(), text.begin() + prompt)},
                                       {"tokens", std::vector<int32_t>(text.begin() + prompt, text.end())}};
  write_output(o.json_file, json.dump() + "\n");
}

}  // namespace

void add_generate(CLI::App& app) {
  auto options = std::make_shared<GenerateOptions>();
  GenerateOptions& o = *options;
  CLI::App& command =
      add_command(app, "generate", "go on with a text, by a network of tokens whose weights are in a file",
                  "antichain generate --weights checkpoints --prompt 'In the beginning ' --tokens 200");
  add_weights_options(command, o.weights);
  const OptionGroup add(command, "Text");
  CLI::Option* prompt = add("--prompt TEXT", o.prompt, {}, "what to go on with, of a vocabulary of bytes");
  CLI::Option* tokens =
      add("--prompt-tokens NUMBERS", o.prompt_tokens, {}, "the same as tokens, with commas between");
  tokens->excludes(prompt);
  add("--tokens N", o.tokens, whole_between(1, 10'000'000), "how many to generate");
  add("--temperature X", o.sampling.temperature, number_between(0, 1000),
      "0: the likeliest token follows; else it is drawn, by softmax(logits / X)");
  add("--top-k N", o.sampling.top_k, whole_between(0, 10'000'000),
      "draw from the N likeliest tokens alone [0: from all]");
  add("--seed N", o.sampling.seed, whole_between(0, INT64_MAX), "of what is drawn");
  add_machine_options(command, o.machine);
  add_precision_option(command, o.weights.network.precision);
  add_output_option(command, "--json", o.json_file, "write the tokens of the prompt, and those generated");
  show_first(command, {"--model", "--graph", "--weights", "--prompt", "--prompt-tokens", "--tokens",
                       "--temperature", "--top-k", "--seed", "--local", "--json"});
  command.callback([options, &command, prompt, tokens] {
    settle(command, options->weights);
    if (options->prompt.empty() && options->prompt_tokens.empty())
      throw Error("a text to go on with is missing",
                  prompt->count() + tokens->count() > 0 ? "give one token at least"
                                                        : "give --prompt or --prompt-tokens",
                  ExitCode::usage);
    if (options->sampling.top_k > 0 && options->sampling.temperature == 0)
      throw Error("--top-k says what the next token is drawn from, but none is drawn",
                  "say --temperature 1, or leave it out", ExitCode::usage);
    options->settings = settings_of(command);
    check_writable({options->json_file});
    run_job(options->machine, [&](Rank& rank) { run(*options, rank); });
  });
}

}  // namespace antichain
