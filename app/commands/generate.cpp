// antichain generate goes on with a text: the network reads the tokens so far and says which one comes next,
// again and again.
//
//   tokens      t0 t1 … tn−1  0  0 …     a row as long as the network's; of a longer text, its last tokens
//   logits                ↑              at the last token of the text: what comes next
//
// The zeros behind the text change no logits there, because no position of a causal network attends to a
// later one. Several ranks have a stage each, so a network may be generated from that does not fit one.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
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
#include "app/obtain/network_of_weights.h"
#include "app/obtain/whole_network.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/parse_number.h"
#include "layers/attention.h"

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

// A Text is what the network reads: a row of the last tokens so far.
class Text : public BatchSource {
 public:
  Text(std::vector<int32_t> tokens, int64_t sequence) : tokens_(std::move(tokens)), sequence_(sequence) {}
  void add(int32_t token) { tokens_.push_back(token); }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t length() const { return std::ssize(tokens_); }
  int64_t in_row() const { return std::min(length(), sequence_); }

  // Labels only fill their places: one counts, so that the loss, which nobody asks for, is a number.
  void fill(std::string_view input, int, const Tensor& out) override {
    row_.assign(size_t(out.elements()), 0);
    const std::span<int32_t> row(row_), used = row.first(size_t(in_row())),
                                        rest = row.subspan(size_t(in_row()));
    if (input == "tokens") std::copy(tokens_.end() - in_row(), tokens_.end(), used.begin());
    if (input == "labels") std::ranges::fill(row.subspan(1), -1);
    if (input == "documents") std::ranges::fill(rest, -1);
    if (input == "positions")
      for (size_t i = 0; i < row.size(); ++i) row[i] = int32_t(i);
    if (out.dtype() == DType::f32) return void(std::ranges::copy(row, out.data<float>()));
    std::ranges::copy(row, out.data<int32_t>());
  }

 private:
  std::vector<int32_t> tokens_, row_;
  const int64_t sequence_;
};

// Returns the length of a row. Throws Error where the network is none of tokens.
int64_t sequence_of(const Graph& graph) {
  const NodeId tokens = graph.find("tokens");
  if (tokens < 0 || graph[tokens].role() != Role::input || graph.shape(tokens).rank() != 2)
    throw Error(graph.model() + " reads no tokens", "give a network with an input 'tokens'", ExitCode::usage);
  for (const Node& node : graph) {
    const auto* attention = dynamic_cast<const Attention*>(node.op.get());
    if (attention && !attention->options.causal)
      throw Error(fmt::format("{} attends to later tokens in {}, so it does not say what comes next",
                              graph.model(), node.name),
                  "give a network whose attention is causal", ExitCode::usage);
    if (node.role() != Role::input) continue;
    const bool known = node.name == "tokens" || node.name == "labels" || node.name == "documents" ||
                       node.name == "positions";
    if (!known || node.signature.y.shape.rank() != 2)
      throw Error(fmt::format("{} has an input '{}', which a text does not fill", graph.model(), node.name),
                  "inputs of text are tokens, labels, documents and positions, N x T", ExitCode::usage);
  }
  return graph.shape(tokens)[1];
}

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

// Returns the logits of the token behind the text, of which only the last rank has any.
std::vector<float> next_logits(WholeNetwork& network, Text& text) {
  const std::vector<float> all = network.run(text).logits;
  const int64_t classes = network.classes(), at = text.in_row() - 1;
  const Shape shape = network.output();
  const int64_t positions = shape.elements() / classes;
  const bool classes_last = network.class_axis() == shape.rank() - 1;
  std::vector<float> logits(static_cast<size_t>(classes));
  for (int64_t k = 0; k < classes; ++k)
    logits[size_t(k)] = all[size_t(classes_last ? at * classes + k : k * positions + at)];
  return logits;
}

void run(const GenerateOptions& o, Rank& rank) {
  check_same_settings(rank, o.settings);
  const NetworkOptions form = form_of(o.weights, rank);
  const Graph model = form.made(1);
  const int64_t sequence = sequence_of(model);
  WholeNetwork network(model, parse_precision(form.precision), o.weights.file, 1, Mode::evaluate, rank,
                       default_optimiser(), Ranks::stages);
  Text text(prompt_of(o, network.classes()), sequence);
  const int64_t prompt = text.length();
  if (rank.prints()) begin_answer();
  Teller teller(rank.prints(), network.classes() == bytes_vocabulary);
  teller.tell(text.tokens());
  const int last = rank.job.size() - 1;
  while (text.length() < prompt + o.tokens) {
    const std::vector<float> logits = next_logits(network, text);
    std::string token;
    if (rank.job.rank() == last) token = std::to_string(choose_token(logits, o.sampling, text.length()));
    rank.job.activity().doing("telling the other ranks the next token");
    text.add(*parse_number<int32_t>(rank.job.broadcast(token, last)));
    teller.tell(std::span(text.tokens()).last(1));
  }
  teller.end();
  if (!rank.prints()) return;
  const auto generated = text.tokens().begin() + prompt;
  const nlohmann::ordered_json json = {{"model", model.model()},
                                       {"prompt", std::vector<int32_t>(text.tokens().begin(), generated)},
                                       {"tokens", std::vector<int32_t>(generated, text.tokens().end())}};
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
