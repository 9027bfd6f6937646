// A schedule's text has one line a rank and one word an action. It reads back exactly.
//
// A line "steps" says that the micro-batches are those of so many steps in a row.
// A line "delays" names by stage how many updates old the weights are that it trains with, where any are not
// the newest; "forward-delays" says that only its forwards read them. A line "predict" after it names how
// these weights are predicted.
//
//   word      = stage letter [micro-batch, or the bucket of an all-reduce] [":" message arrow rank]
//   message   = "a" node                 the output of a node (a number, as in the plan)
//             | "a" node "." consumer    the same for the stage of this consumer, where the receiving rank
//                                        has several stages that use it
//             | "g" node "." consumer    its gradient, folded down to this consumer
//             | "w" node "." number      the gradient of a weight that several nodes have, folded down to
//                                        this node, whose parameter of this number it is
//   arrow     = ">" to a rank | "<" from a rank
//
//   0F3            stage 0's forward of micro-batch 3
//   0S3:a17>1      stage 0 sends the output of node 17, micro-batch 3, to rank 1
//   0R3:g17.21<1   stage 0 waits for rank 1's gradient of it, folded down to consumer 21
//   0R0:w21.0<1    stage 0 waits for rank 1's gradient of a weight, folded down to node 21
//   0A             stage 0's weight gradients are added up over its replicas (all-reduce)
//   0A2            those of its bucket 2, where there are several
//   0U             stage 0 updates its weights
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <sstream>

#include "framework/error.h"
#include "framework/prediction.h"
#include "pipeline/schedule/schedule.h"

namespace antichain {
namespace {

// The legend is in the order of the verbs. It prints, parses, and heads every printed schedule.
struct Letter {
  Verb verb;
  char letter;
  bool of_microbatch;
  char arrow;  // 0: carries no message
  std::string_view meaning;
};
constexpr std::array<Letter, 10> letters = {{
    {Verb::load, 'L', true, 0, "load"},
    {Verb::recv, 'R', true, '<', "receive"},
    {Verb::forward, 'F', true, 0, "forward"},
    {Verb::backward, 'B', true, 0, "backward"},
    {Verb::backward_input, 'I', true, 0, "its input half"},
    {Verb::backward_weight, 'W', true, 0, "its weight half"},
    {Verb::send, 'S', true, '>', "send"},
    {Verb::reduce, 'A', false, 0, "all-reduce over the replicas"},
    {Verb::vote, 'V', false, 0, "vote of all ranks whether to update"},
    {Verb::update, 'U', false, 0, "update"},
}};

constexpr std::string_view flows = "agw";  // in their order

constexpr int largest_number = 9'999'999;
constexpr int largest_microbatches = 65'536;
constexpr int largest_delay = 1'024;
constexpr std::string_view delays = "delays", forward_delays = "forward-delays", predict = "predict";

bool has(const Schedule& schedule, Verb verb) {
  return std::ranges::any_of(schedule.ranks, [&](const auto& actions) {
    return std::ranges::any_of(actions, [&](const Action& a) { return a.verb == verb; });
  });
}

bool has_weights(const Schedule& schedule) {
  return std::ranges::any_of(schedule.ranks, [](const auto& actions) {
    return std::ranges::any_of(actions, [](const Action& a) { return a.message.flow == Flow::weight; });
  });
}

// The legend leaves out the all-reduce where no stage has replicas, the vote where there is none, and weights
// where none is shared.
std::string legend(const Schedule& schedule) {
  std::string text = "# <stage><letter><micro-batch>:";
  for (const Letter& l : letters)
    if (!joins(l.verb) || has(schedule, l.verb))
      text += fmt::format(" {} {}{}", l.letter, l.meaning, l.letter == 'U' ? "\n" : ",");
  return text +
         "# messages: a<node> its output, g<node>.<consumer> its gradient folded down to that consumer; " +
         (has_weights(schedule) ? "w<node>.<number> the gradient of its shared weight; " : "") +
         ">rank to, <rank from\n";
}

// A Reader reads a word from the left.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}
  bool empty() const { return rest_.empty(); }
  bool eat(char c) {
    const bool there = !rest_.empty() && rest_[0] == c;
    if (there) rest_.remove_prefix(1);
    return there;
  }
  std::optional<char> letter() {
    if (rest_.empty()) return {};
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  // Reads a number as print writes it: without a sign or leading zeros.
  std::optional<int> number() {
    size_t digits = 0;
    int64_t value = 0;
    while (digits < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[digits])) &&
           value <= largest_number)
      value = value * 10 + (rest_[digits++] - '0');
    const bool leading_zero = digits > 1 && rest_[0] == '0';
    if (digits == 0 || leading_zero || value > largest_number) return {};
    rest_.remove_prefix(digits);
    return int(value);
  }

 private:
  std::string_view rest_;
};

std::optional<Message> read_message(Reader& word) {
  Message message;
  const auto found = flows.find(word.letter().value_or(' '));
  if (found == flows.npos) return {};
  message.flow = Flow(found);
  const std::optional<int> tensor = word.number();
  if (!tensor) return {};
  message.tensor = *tensor;
  if (!word.eat('.')) return message.flow != Flow::activation ? std::optional<Message>() : message;
  const std::optional<int> consumer = word.number();
  if (!consumer) return {};
  message.consumer = *consumer;
  return message;
}

const Letter* find_letter(std::optional<char> c) {
  for (const Letter& l : letters)
    if (c == l.letter) return &l;
  return nullptr;
}

}  // namespace

std::optional<Action> parse_action(std::string_view text) {
  Reader word(text);
  Action action;
  const auto into = [](int& field, std::optional<int> value) { return value && ((field = *value), true); };
  if (!into(action.stage, word.number())) return {};
  const Letter* letter = find_letter(word.letter());
  if (!letter) return {};
  action.verb = letter->verb;
  if (letter->of_microbatch && !into(action.microbatch, word.number())) return {};
  if (action.verb == Verb::reduce && !word.empty() && !into(action.bucket, word.number())) return {};
  if (letter->arrow) {
    if (!word.eat(':')) return {};
    const std::optional<Message> message = read_message(word);
    if (!message || !word.eat(letter->arrow) || !into(action.peer, word.number())) return {};
    action.message = *message;
  }
  return word.empty() ? std::optional(action) : std::nullopt;
}

namespace {

// A Parser reads a schedule line by line. Every error names the place.
class Parser {
 public:
  Parser(const std::string& text, std::string origin) : lines_(text), origin_(std::move(origin)) {}

  Schedule parse() {
    for (std::string line; std::getline(lines_, line);) {
      ++line_;
      std::istringstream words(line);
      std::string first;
      if (!(words >> first) || first[0] == '#') continue;
      if (first == "microbatches")
        read_microbatches(words);
      else if (first == "steps")
        read_steps(words);
      else if (first == delays || first == forward_delays)
        read_delays(words, first);
      else if (first == predict)
        read_predict(words);
      else if (first == "rank")
        read_rank(words);
      else
        fail(first, "a line starts with \"microbatches\", \"steps\", \"delays\", \"predict\", \"rank\" or #");
    }
    if (schedule_.microbatches == 0) fail("", "the line \"microbatches <number>\" is missing");
    if (schedule_.ranks.empty()) fail("", "there is no line \"rank 0: …\"");
    check_peers();
    return schedule_;
  }

 private:
  [[noreturn]] void fail(const std::string& word, const std::string& why) const {
    const std::string quoted = word.empty() ? "" : fmt::format("\"{}\": ", word);
    throw Error(fmt::format("{}:{}: {}{}", origin_, line_, quoted, why));
  }

  void read_microbatches(std::istringstream& words) {
    std::string word, more;
    words >> word;
    Reader reader(word);
    const std::optional<int> number = reader.number();
    if (!number || !reader.empty() || *number < 1 || *number > largest_microbatches)
      fail(word, fmt::format("the number of micro-batches is not from 1 to {}", largest_microbatches));
    if (words >> more) fail(more, "nothing may follow the number of micro-batches");
    if (schedule_.microbatches != 0) fail("microbatches", "given twice");
    if (!schedule_.ranks.empty()) fail("microbatches", "comes before the ranks");
    schedule_.microbatches = *number;
  }

  void read_steps(std::istringstream& words) {
    std::string word, more;
    words >> word;
    Reader reader(word);
    const std::optional<int> number = reader.number();
    if (schedule_.microbatches == 0) fail("steps " + word, "the line \"microbatches <number>\" comes first");
    if (!number || !reader.empty() || *number < 1 || schedule_.microbatches % *number != 0)
      fail(word, fmt::format("not a number of steps that share {} micro-batches", schedule_.microbatches));
    if (words >> more) fail(more, "nothing may follow the number of steps");
    if (!schedule_.ranks.empty()) fail("steps", "comes before the ranks");
    schedule_.steps = *number;
  }

  void read_delays(std::istringstream& words, const std::string& first) {
    if (!schedule_.delays.empty()) fail(first, "delays are given twice");
    if (!schedule_.ranks.empty()) fail(first, "comes before the ranks");
    for (std::string word; words >> word;) {
      Reader reader(word);
      const std::optional<int> delay = reader.number();
      if (!delay || !reader.empty() || *delay > largest_delay)
        fail(word, fmt::format("not a delay from 0 to {}", largest_delay));
      schedule_.delays.push_back(*delay);
    }
    if (schedule_.delays.empty()) fail(first, "a delay for each stage is missing");
    schedule_.stashes = first == delays;
  }

  void read_predict(std::istringstream& words) {
    std::string name, more;
    words >> name;
    if (schedule_.delays.empty())
      fail(fmt::format("{} {}", predict, name), "the line \"delays\" comes first");
    if (!schedule_.ranks.empty() || schedule_.predict)
      fail(fmt::format("{} {}", predict, name), "comes once, before the ranks");
    const auto known = std::ranges::find(prediction_methods(), name, &PredictionMethod::name);
    if (known == prediction_methods().end())
      fail(fmt::format("{} {}", predict, name), "there is no such prediction");
    if (words >> more) fail(more, "nothing may follow the prediction");
    if (known->stashes != schedule_.stashes)
      fail(fmt::format("{} {}", predict, name),
           fmt::format("its delays are \"{}\"", known->stashes ? delays : forward_delays));
    schedule_.predict = &*known;
  }

  void read_rank(std::istringstream& words) {
    std::string word;
    words >> word;
    if (schedule_.microbatches == 0) fail("rank " + word, "the line \"microbatches <number>\" comes first");
    const std::string expected = fmt::format("{}:", schedule_.ranks.size());
    if (word != expected)
      fail("rank " + word, fmt::format("ranks are in order: \"rank {}\" is next", expected));
    schedule_.ranks.emplace_back();
    line_of_rank_.push_back(line_);
    while (words >> word) schedule_.ranks.back().push_back(read_word(word));
  }

  Action read_word(const std::string& word) const {
    const std::optional<Action> action = parse_action(word);
    if (!action) fail(word, "not an action such as 0F3, 0S3:a17>1, 0R3:g17.21<1 or 0U");
    if (action->microbatch >= schedule_.microbatches)
      fail(word, fmt::format("there are {} micro-batches, counted from 0", schedule_.microbatches));
    return *action;
  }

  void check_peers() {
    for (size_t r = 0; r < schedule_.ranks.size(); ++r)
      for (const Action& action : schedule_.ranks[r]) {
        line_ = line_of_rank_[r];
        if (action.peer >= int(schedule_.ranks.size()))
          fail(print(action), fmt::format("there are {} ranks, counted from 0", schedule_.ranks.size()));
      }
  }

  std::istringstream lines_;
  std::string origin_;
  int line_ = 0;
  std::vector<int> line_of_rank_;
  Schedule schedule_;
};

}  // namespace

std::string print(const Action& action) {
  const Letter& letter = letters[size_t(action.verb)];
  std::string word = fmt::format("{}{}", action.stage, letter.letter);
  if (letter.of_microbatch) word += fmt::format("{}", action.microbatch);
  if (action.bucket >= 0) word += fmt::format("{}", action.bucket);
  if (!letter.arrow) return word;
  const Message& message = action.message;
  word += fmt::format(":{}{}", flows[size_t(message.flow)], message.tensor);
  if (message.consumer >= 0) word += fmt::format(".{}", message.consumer);
  return word + fmt::format("{}{}", letter.arrow, action.peer);
}

std::string print(const Schedule& schedule) {
  std::string text = legend(schedule) + fmt::format("microbatches {}\n", schedule.microbatches);
  if (schedule.steps > 1) text += fmt::format("steps {}\n", schedule.steps);
  if (!schedule.delays.empty())
    text +=
        fmt::format("{} {}\n", schedule.stashes ? delays : forward_delays, fmt::join(schedule.delays, " "));
  if (schedule.predict) text += fmt::format("{} {}\n", predict, schedule.predict->name);
  for (size_t r = 0; r < schedule.ranks.size(); ++r) {
    text += fmt::format("rank {}:", r);
    for (const Action& action : schedule.ranks[r]) text += " " + print(action);
    text += "\n";
  }
  return text;
}

Schedule parse_schedule(const std::string& text, const std::string& origin) {
  return Parser(text, origin).parse();
}

}  // namespace antichain
