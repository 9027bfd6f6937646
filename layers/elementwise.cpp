#include "layers/elementwise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <sstream>

#include "framework/error.h"
#include "layers/check_inputs.h"

namespace antichain {
namespace {

using Program = ElementwiseProgram;

struct FunctionFacts {
  std::string_view name;
  int operands;
  double flops;
  std::string_view slopes[3];  // the formulas of the operands' gradients
};
constexpr FunctionFacts all_functions[] = {
#define ROW(name, operands, flops, value, da, db, dc) {#name, operands, flops, {#da, #db, #dc}},
#include "layers/elementwise_table.inc"
#undef ROW
};
const FunctionFacts& facts_of(ElementwiseFunction f) { return all_functions[size_t(f)]; }

// Returns whether a formula of the table names a variable of one letter.
bool names(std::string_view formula, char variable) {
  const auto in_word = [&](size_t i) {
    return i < formula.size() && (std::isalnum(formula[i]) || formula[i] == '_');
  };
  for (size_t i = 0; i < formula.size(); ++i)
    if (formula[i] == variable && !in_word(i - 1) && !in_word(i + 1)) return true;
  return false;
}

// Reads the steps of a formula one after the other.
class FormulaReader {
 public:
  Program read(const ElementwiseOptions& options) && {
    program_.has_parameter = options.parameter.has_value();
    if (options.steps.empty()) throw Error("elementwise wants at least one step, such as \"add x0 x1\"");
    for (const std::string& text : options.steps) read_step(text);
    if (program_.has_parameter && !parameter_is_used_)
      throw Error("elementwise has a parameter that no step uses", "a step uses it by the name p");
    return program_;
  }

 private:
  void read_step(const std::string& text) {
    text_ = &text;
    std::istringstream words(text);
    std::string name, word;
    words >> name;
    const auto found = std::ranges::find(all_functions, name, &FunctionFacts::name);
    if (found == std::end(all_functions)) {
      std::vector<std::string_view> known;
      for (const FunctionFacts& f : all_functions) known.push_back(f.name);
      throw Error(fmt::format("elementwise has no function '{}'", name),
                  fmt::format("known are {}", fmt::join(known, ", ")));
    }
    if (program_.steps == Program::most_steps) fail(fmt::format("{} steps are the most", program_.steps));
    Program::Step step{ElementwiseFunction(found - std::begin(all_functions)), uint8_t(found->operands), {}};
    int operands = 0;
    while (words >> word) {
      if (operands == found->operands) fail(fmt::format("{} has {} operands", name, found->operands));
      step.operands[operands++] = uint8_t(place_of(word));
    }
    if (operands != found->operands) fail(fmt::format("{} wants {} operands", name, found->operands));
    for (; operands < 3; ++operands) step.operands[operands] = step.operands[0];
    program_.step[program_.steps++] = step;
  }

  int place_of(const std::string& word) {
    if (word == "p") {
      if (!program_.has_parameter) fail("it uses the parameter p, which the node does not have");
      parameter_is_used_ = true;
      return Program::parameter;
    }
    if (word[0] == 'x') {
      const int input = number_behind(word, Program::most_inputs, "inputs");
      program_.inputs = std::max(program_.inputs, input + 1);
      return input;
    }
    if (word[0] == 's') return Program::first_step + number_behind(word, program_.steps, "steps before it");
    float number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size())
      fail(fmt::format("'{}' is no operand: operands are x0, s0, p and numbers", word));
    if (program_.numbers == Program::most_numbers)
      fail(fmt::format("{} numbers are the most", program_.numbers));
    program_.number[program_.numbers] = number;
    return Program::first_number + program_.numbers++;
  }

  int number_behind(const std::string& word, int count, std::string_view of) const {
    int number = -1;
    const auto [end, error] = std::from_chars(word.data() + 1, word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || number < 0 || number >= count)
      fail(fmt::format("'{}' is not one of the {} {}", word, count, of));
    return number;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(fmt::format("the step \"{}\" of elementwise can't be read: {}", *text_, why));
  }

  Program program_;
  bool parameter_is_used_ = false;
  const std::string* text_ = nullptr;
};

// Returns the parameter's shape with an axis of extent 1 for each axis of y behind it.
Shape aligned_parameter(const ElementwiseOptions& o, int rank) {
  const int axis = o.parameter_axis < 0 ? rank - 1 : o.parameter_axis;
  std::vector<int64_t> extents(o.parameter->begin(), o.parameter->end());
  if (axis >= rank || int(extents.size()) > axis + 1)
    throw Error(
        fmt::format("the parameter of {} can't end at axis {} of {} axes", o.parameter->str(), axis, rank));
  extents.resize(extents.size() + size_t(rank - 1 - axis), 1);
  return Shape(extents);
}

// Returns a step's words with `renamed` applied to each operand.
template <class F>
std::string with_operands(const std::string& step, const F& renamed) {
  std::istringstream words(step);
  std::string text, word;
  words >> text;
  while (words >> word) text += " " + renamed(word);
  return text;
}

}  // namespace

Elementwise::Elementwise(ElementwiseOptions o)
    : options(std::move(o)), program(FormulaReader().read(options)) {}

std::string Elementwise::str() const {
  std::string text = fmt::format("elementwise({}", fmt::join(options.steps, "; "));
  if (options.parameter)
    text += fmt::format("; p {}{} {}", options.parameter->str(),
                        options.parameter_axis < 0 ? "" : fmt::format(" at axis {}", options.parameter_axis),
                        antichain::str(options.parameter_init));
  return text + ")";
}

Signature Elementwise::infer(std::span<const Shape> x) const {
  check_inputs("elementwise", x, program.inputs, 0);
  Shape y = x[0];
  const auto fit = [&](std::string_view what, const Shape& shape) {
    const int ahead = y.rank() - shape.rank();
    for (int axis = 0; axis < shape.rank(); ++axis) {
      int64_t& extent = y[axis + ahead];
      if (extent == 1) extent = shape[axis];
      if (shape[axis] != extent && shape[axis] != 1)
        throw Error(fmt::format("{} of {} can't be repeated to {}: {}", what, shape.str(), y.str(), str()));
    }
  };
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].rank() != y.rank() || x[i][0] != y[0])
      throw Error(fmt::format(
          "the inputs of elementwise have equally many samples and one rank, unlike {} and {}: {}",
          x[0].str(), x[i].str(), str()));
    fit(fmt::format("x{}", i), x[i]);
  }
  Signature s;
  if (options.parameter) {
    const Shape p = aligned_parameter(options, y.rank());
    if (p.rank() == y.rank() && p[0] != 1)
      throw Error(fmt::format("the parameter of {} has no samples, so it can't be repeated to {}: {}",
                              p.str(), y.str(), str()));
    fit("the parameter", p);
    s.params = {{"", *options.parameter, options.parameter_init}};
  }
  s.y = {.shape = y};
  for (int i = 0; i < program.steps; ++i)
    s.forward_flops += facts_of(program.step[i].function).flops * double(y.elements());
  return s;
}

std::shared_ptr<const Op> Elementwise::then(const Op& op, int input) const {
  const auto* next = dynamic_cast<const Elementwise*>(&op);
  if (!next || next->options.parameter) return nullptr;
  const bool fits = program.steps + next->program.steps <= Program::most_steps &&
                    program.numbers + next->program.numbers <= Program::most_numbers &&
                    program.inputs + next->program.inputs - 1 <= Program::most_inputs;
  if (!fits) return nullptr;
  ElementwiseOptions both = options;
  const std::string mine = fmt::format("s{}", program.steps - 1), its = fmt::format("x{}", input);
  for (const std::string& step : next->options.steps)
    both.steps.push_back(with_operands(step, [&](const std::string& word) -> std::string {
      if (word == its) return mine;
      if (word[0] != 'x' && word[0] != 's') return word;
      const int number = std::stoi(word.substr(1));
      if (word[0] == 's') return fmt::format("s{}", program.steps + number);
      return fmt::format("x{}", program.inputs + number - (number > input ? 1 : 0));
    }));
  return std::make_shared<Elementwise>(std::move(both));
}

std::vector<Repeated> repeated(const Elementwise& op, std::span<const Shape> x) {
  std::vector<Shape> operands(x.begin(), x.end());
  const Shape y = op.infer(x).y.shape;
  if (op.options.parameter) operands.push_back(aligned_parameter(op.options, y.rank()));
  std::vector<Repeated> all;
  std::vector<int64_t> next(operands.size(), 1);
  for (const Shape& shape : operands)
    all.push_back({.axes = 0, .elements = shape.elements(), .whole = shape == y});
  // From the innermost axis outwards; Repeated has the innermost first until the end.
  for (int axis = y.rank() - 1; axis >= 0; --axis) {
    if (y[axis] == 1) continue;
    std::vector<int64_t> strides;
    bool continues = all[0].axes > 0;
    for (size_t i = 0; i < operands.size(); ++i) {
      const int own = axis - (y.rank() - operands[i].rank());
      const int64_t extent = own < 0 ? 1 : operands[i][own];
      strides.push_back(extent == 1 ? 0 : next[i]);
      next[i] *= extent;
      const Repeated& r = all[i];
      const size_t last = size_t(r.axes) - 1;
      continues = continues && strides[i] == r.strides[last] * r.extents[last];
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      Repeated& r = all[i];
      if (continues) {
        r.extents[size_t(r.axes) - 1] *= y[axis];
      } else {
        r.extents[size_t(r.axes)] = y[axis];
        r.strides[size_t(r.axes++)] = strides[i];
      }
    }
  }
  for (Repeated& r : all) {
    if (r.axes == 0) r.extents[0] = 1, r.axes = 1;
    std::reverse(r.extents.begin(), r.extents.begin() + r.axes);
    std::reverse(r.strides.begin(), r.strides.begin() + r.axes);
  }
  return all;
}

PlacesRead read_by_backward(const ElementwiseProgram& program) {
  PlacesRead read{}, varies{};
  std::fill_n(varies.begin(), Program::first_number, true);
  for (int s = 0; s < program.steps; ++s) {
    const Program::Step& step = program.step[s];
    for (int k = 0; k < step.count; ++k) {
      if (!varies[step.operands[k]]) continue;
      const size_t me = size_t(Program::first_step + s);
      varies[me] = true;
      const std::string_view slope = facts_of(step.function).slopes[k];
      for (int other = 0; other < step.count; ++other)
        if (names(slope, char('a' + other))) read[step.operands[other]] = true;
      if (names(slope, 'y')) read[me] = true;
    }
  }
  for (int s = program.steps - 1; s >= 0; --s)
    if (read[size_t(Program::first_step + s)])
      for (const uint8_t operand : program.step[s].operands) read[operand] = true;
  return read;
}

bool is_linear(const ElementwiseProgram& program) {
  const PlacesRead read = read_by_backward(program);
  return std::none_of(read.begin(), read.begin() + Program::first_number, std::identity());
}

NodeId elementwise(Graph& graph, std::string name, std::vector<NodeId> x, ElementwiseOptions options) {
  return graph.add(std::move(name), std::make_shared<Elementwise>(std::move(options)), std::move(x));
}

}  // namespace antichain
